// The common drawing of the figures on LSTM and GRU.
import { sum } from "./numbers/arrays.js";
import { compute } from "./numbers/gates.js";
import { BLUE, GREEN, ORANGE, TEXT, axes, dots, drawing, label } from "./svg.js";
import { legend, line, number, plural, rect, ticks, tile } from "./svg.js";

const LEFT = 52;
const HEIGHT = 170;
export const CONTENT = "0.8 -0.4 0.6 -0.9 0.3 0.5 -0.7 0.9 -0.3 0.4 -0.6 0.2";

export const bias = (key, text) => ({ key, label: `${text}: bias`, min: -6, max: 6, step: 0.5 });
export const effect = (key, text) =>
  ({ key, label: `${text}: weight of the mark`, min: -12, max: 12 });

function inputsPanel({ inputs, follow }, top, place, cell) {
  const middle = top + 32;
  const largest = Math.max(1, ...inputs.map(([u]) => Math.abs(u)));
  const end = place(inputs.length) - LEFT;
  let body = label(LEFT - 8, middle + 4, "u", "end") + rect(LEFT, middle - 0.5, end, 1, TEXT);
  inputs.forEach(([u, marked], t) => {
    const height = (28 * Math.abs(u)) / largest;
    const color = t + 1 === follow ? ORANGE : BLUE;
    const from = u > 0 ? middle - height : middle;
    body += rect(place(t + 0.2), from, cell * 0.6, height, color);
    if (marked) body += label(place(t + 0.5), top + 76, "▲", "middle", { fill: GREEN });
  });
  return body + label(LEFT - 8, top + 76, "mark", "end");
}

function gatesPanel({ steps }, top, place, cell) {
  const names = Object.keys(steps[0].gates);
  const body = names.map((name, row) => {
    const y = top + 24 * row;
    const tiles = steps.map(({ gates }, t) => {
      const text = cell > 30 ? gates[name].toFixed(2) : "";
      return tile(place(t) + 1, y, cell - 2, 22, gates[name], text);
    });
    return label(LEFT - 8, y + 16, name, "end") + tiles.join("");
  });
  return { body: body.join(""), bottom: top + 24 * names.length };
}

/** The bars of one step: what is left of each writing, up or down from 0 by its sign. */
function heap(parts, follow, py, x, width) {
  const heights = { 1: 0, "-1": 0 };
  return parts.map((part, s) => {
    const sign = part < 0 ? -1 : 1;
    const from = py(heights[sign]);
    heights[sign] += part;
    const to = py(heights[sign]);
    if (Math.abs(to - from) < 0.2) return "";
    const color = s + 1 === follow ? ORANGE : BLUE;
    const look = { "fill-opacity": s === parts.length - 1 ? "1" : "0.6" };
    return rect(x, Math.min(from, to), width, Math.abs(to - from), color, look);
  });
}

function memoryPanel({ kind, steps, shares, follow }, top, place, cell) {
  const [T, lstm] = [steps.length, kind === "lstm"];
  const side = (sign) => shares.map((parts) => sum(parts.map((part) => Math.max(sign * part, 0))));
  const [low, high] = [-Math.max(0.5, ...side(-1)), Math.max(0.5, ...side(1))];
  const stride = cell < 24 ? 2 : 1;
  const times = steps.map((_, t) => [t + 0.5, t % stride ? "" : t + 1]);
  const box = axes({
    left: LEFT,
    top,
    width: place(T) - LEFT,
    height: HEIGHT,
    x: { range: [0, T], ticks: times, label: "step t" },
    y: { range: [low, high], ticks: ticks(low, high), label: lstm ? "cell state C" : "state h" },
  });
  const bars = shares.flatMap((parts, t) =>
    heap(parts, follow, box.py, place(t + 0.2), cell * 0.6),
  );
  const curve = (name) => steps.map((step, t) => [place(t + 0.5), box.py(step[name])]);
  const shown = lstm ? line(curve("h"), GREEN, "5 3") : "";
  const memory = curve("memory");
  return box.body + bars.join("") + shown + line(memory, TEXT) + dots(memory, TEXT, 3.5);
}

function draw(result, width) {
  const { kind, steps, follow } = result;
  const lstm = kind === "lstm";
  const cell = Math.min((width - LEFT - 6) / steps.length, 52);
  const place = (t) => LEFT + t * cell;
  const names = [
    [`left of step ${follow}`, ORANGE, "box"],
    ["left of other steps", BLUE, "box"],
    [lstm ? "C, their sum" : "h, their sum", TEXT],
    ...(lstm ? [["h, what is shown", GREEN, "5 3"]] : []),
  ];
  const gates = gatesPanel(result, 92, place, cell);
  const key = legend(names, LEFT, gates.bottom + 20, width - LEFT);
  const top = key.bottom + 12;
  const body =
    inputsPanel(result, 4, place, cell) +
    gates.body +
    key.body +
    memoryPanel(result, top, place, cell);
  return drawing(width, top + HEIGHT + 42, body);
}

function say({ kind, steps, shares, follow, kept }) {
  const T = steps.length;
  const { memory, h } = steps[T - 1];
  const after = T - follow;
  const factors = kind === "lstm" ? "forget gates" : "1 − z";
  const product = after ? `, since the product of their ${factors} is ${number(kept)}` : "";
  return (
    `Step ${follow} wrote ${number(steps[follow - 1].write)}; of it ` +
    `${number(shares[T - 1][follow - 1])} is left after ${plural(after, "more step")}${product}. ` +
    `After step ${T}: ${kind === "lstm" ? `C = ${number(memory)} and ` : ""}h = ${number(h)}.`
  );
}

/** The figure of one kind of cell, with its examples and gates. */
export function gatedFigure(kind, { title, examples, controls }) {
  return {
    title,
    examples,
    controls: [
      { key: "content", label: "Contents u, up to 16 numbers", rows: 2 },
      { key: "marks", label: "Marked steps", rows: 1 },
      ...controls,
      { key: "v", label: "Weight of h in the candidate", min: -3, max: 3, step: 0.5 },
      { key: "follow", label: "Follow the writing of step", min: 1, max: 16 },
    ],
    limits: ({ content }) => ({ follow: Math.min(content.trim().split(/[\s,;]+/).length, 16) }),
    compute: (state) => compute(kind, state),
    draw,
    say,
  };
}
