// Plots as SVG text: no page is needed, so the static figures are drawn by the same lines.
// The colours are those of seqlib/experiments/style.py: they hold on light and on dark pages.
import { range } from "./numbers/arrays.js";

export const [TEXT, BLUE, ORANGE, GREEN] = ["#7b7b7b", "#2a7fbf", "#c8690a", "#118a6b"];
const [PALE, DEEP] = [[227, 238, 248], [31, 95, 148]];

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text) => String(text).replace(/[&<>"]/g, (mark) => ESCAPES[mark]);
const at = (value) => String(Math.round(value * 10) / 10);

const attributes = (given) =>
  Object.entries(given)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}="${typeof value === "number" ? at(value) : value}"`)
    .join("");

const RAISED = { ..."⁰¹²³⁴⁵⁶⁷⁸⁹", "-": "⁻" };
export const power = (exponent) => `10${String(exponent).replace(/./g, (c) => RAISED[c])}`;

/** A number for readers: three digits, and a power of ten where it is very large or small. */
export function number(value) {
  if (Number.isNaN(value) || value === 0) return String(value).replace("-", "");
  const [mantissa, exponent] = value.toExponential(2).split("e");
  const plain = exponent >= -3 && exponent <= 4;
  const text = plain ? Number(value.toPrecision(3)) : `${mantissa}·${power(Number(exponent))}`;
  return String(text).replace("-", "−");
}

/** "1 step", "2 steps". */
export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

export function label(x, y, text, anchor = "middle", more = {}) {
  return `<text${attributes({ x, y, "text-anchor": anchor, ...more })}>${escape(text)}</text>`;
}

/** The name of a vertical axis: turned, with its middle at (14, y). */
export const side = (y, text) =>
  label(14, y, text, "middle", { transform: `rotate(-90 14 ${at(y)})` });

export function rect(x, y, width, height, fill, more = {}) {
  return `<rect${attributes({ x, y, width, height, fill, ...more })}/>`;
}

export function line(points, stroke, dash, width = 2) {
  const path = points.map((point) => point.map(at).join(",")).join(" ");
  const look = { fill: "none", stroke, "stroke-dasharray": dash, "stroke-width": width };
  return `<polyline points="${path}"${attributes(look)}/>`;
}

export function dots(points, fill, r = 3) {
  return points.map(([cx, cy]) => `<circle${attributes({ cx, cy, r, fill })}/>`).join("");
}

/** A tile of a heat map: the darker, the larger the share; its number is black or white. */
export function tile(x, y, width, height, share, text) {
  const rgb = PALE.map((value, i) => Math.round(value + share * (DEEP[i] - value)));
  const ink = { fill: share > 0.55 ? "#ffffff" : "#000000" };
  const name = text && label(x + width / 2, y + height / 2 + 4, text, "middle", ink);
  return rect(x, y, width, height, `rgb(${rgb})`) + name;
}

export function drawing(width, height, body) {
  const size = { viewBox: `0 0 ${at(width)} ${at(height)}`, width, height };
  const look = { "font-family": "system-ui, sans-serif", "font-size": 12.5, fill: TEXT };
  return `<svg xmlns="http://www.w3.org/2000/svg"${attributes({ ...size, ...look })}>${body}</svg>`;
}

/**
 * Axes of a plot in the box (left, top, width, height).
 *
 * `x` and `y` are { range: [low, high], ticks: [[value, text], ...], label }.
 * Returns the SVG text and the maps from numbers to places.
 */
export function axes({ left, top, width, height, x, y }) {
  const [right, bottom] = [left + width, top + height];
  const scale = ([low, high], from, length) => (value) =>
    from + (length * (value - low)) / (high - low);
  const px = scale(x.range, left, width);
  const py = scale(y.range, bottom, -height);
  let body = line([[left, top], [left, bottom], [right, bottom]], TEXT, undefined, 1);
  for (const [value, text] of y.ticks) {
    body += rect(left, py(value) - 0.5, width, 1, TEXT, { "fill-opacity": "0.25" });
    body += label(left - 6, py(value) + 4, text, "end");
  }
  for (const [value, text] of x.ticks) {
    body += rect(px(value) - 0.5, bottom, 1, 4, TEXT) + label(px(value), bottom + 17, text);
  }
  body += label(left + width / 2, bottom + 34, x.label) + side(top + height / 2, y.label);
  return { body, px, py };
}

/** About `count` round numbers between two others. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return range(first, last + 1).map((i) => [i * step, number(i * step)]);
}

export const wholeTicks = (low, high, count) =>
  ticks(low, high, count).filter(([value]) => Number.isInteger(value));

/** Names of lines, [text, colour, dash] each, in as many rows as the width needs. */
export function legend(items, left, top, width) {
  let [x, y, body] = [left, top, ""];
  for (const [text, color, dash] of items) {
    const needed = 40 + 7 * text.length;
    if (x > left && x + needed > left + width) [x, y] = [left, y + 18];
    const sample = [[x, y - 4], [x + 22, y - 4]];
    body += dash === "box" ? rect(x, y - 9, 20, 10, color) : line(sample, color, dash);
    body += label(x + 28, y, text, "start");
    x += needed;
  }
  return { body, bottom: y };
}
