import { sum } from "./numbers/arrays.js";
import { compute } from "./numbers/attention.js";
import { ORANGE, drawing, label, number, rect, side, tile } from "./svg.js";

const [LEFT, TOP] = [74, 50];

/** One weight: a tile, framed where the key is forbidden; without weight its number or a dot. */
function square(weight, may, x, y, width, height) {
  const text = Number.isNaN(weight) ? "NaN" : weight.toFixed(2);
  if (weight > 0) {
    const frame = { stroke: ORANGE, "stroke-width": 3 };
    const mark = may ? "" : rect(x, y, width, height, "none", frame);
    return tile(x, y, width, height, weight, text) + mark;
  }
  return label(x + width / 2, y + height / 2 + 4, may || text === "NaN" ? text : "·");
}

function draw({ weights, may, isPadding }, width) {
  const n = weights.length;
  const cell = Math.min((width - LEFT - 57) / n, 54);
  const high = Math.min(cell, 40);
  const sums = LEFT + n * cell + 27;
  let body = side(TOP + (n * high) / 2, "queries");
  body += label(LEFT + (n * cell) / 2, 14, "keys") + label(sums, 36, "sum");
  weights.forEach((row, i) => {
    const name = isPadding[i] ? "pad" : i + 1;
    const middle = TOP + (i + 0.5) * high + 4;
    body += label(LEFT + (i + 0.5) * cell, 36, name) + label(LEFT - 8, middle, name, "end");
    row.forEach((weight, j) => {
      const corner = [LEFT + j * cell + 1, TOP + i * high + 1];
      body += square(weight, may[i][j], ...corner, cell - 2, high - 2);
    });
    const total = sum(row);
    const odd = total > 0.99 ? {} : { fill: ORANGE, "font-weight": "bold" };
    body += label(sums, middle, Number(total.toFixed(2)), "middle", odd);
  });
  return drawing(sums + 30, TOP + n * high + 8, body);
}

function say({ may, weights, largest, emptyRows, state }) {
  const forbidden = weights.flatMap((row, i) => row.filter((_, j) => !may[i][j]));
  const framed = forbidden.filter((weight) => weight > 0).length;
  const fate = {
    zero: "all weights are 0",
    literal: "0/0 makes the weights NaN",
    finite: `${framed} forbidden keys get weight, framed`,
  }[state.empty];
  const rows = `${emptyRows.length > 1 ? "Rows" : "Row"} ${emptyRows.join(", ")}`;
  const scaled = state.scaled ? "with" : "without";
  return (
    `${forbidden.length} of ${may.length ** 2} pairs are forbidden. ` +
    (emptyRows.length ? `${rows} may attend to nothing: ${fate}. ` : "") +
    (emptyRows.length < may.length
      ? `The largest weight of a row is ${number(largest)} on average, at width ` +
        `${state.width} ${scaled} the division by its root.`
      : "")
  );
}

const start = {
  n: 6, width: 16, scaled: true, causal: false, side: "none", pads: 2, empty: "zero", seed: 1,
};

export default {
  title: "Attention weights under masks",
  examples: {
    "Causal, padding left: empty rows": { ...start, causal: true, side: "left" },
    "Causal, padding right": { ...start, causal: true, side: "right" },
    Causal: { ...start, causal: true },
    "No mask": start,
    "No division by √dk": { ...start, width: 256, scaled: false },
  },
  controls: [
    { key: "causal", label: "Causal mask: no key after the query" },
    {
      key: "side",
      label: "Padding",
      options: [["none", "none"], ["right", "on the right"], ["left", "on the left"]],
    },
    { key: "pads", label: "Padded positions", min: 0, max: 8 },
    { key: "n", label: "Tokens", min: 1, max: 8 },
    {
      key: "empty",
      label: "A row without allowed keys",
      options: [
        ["zero", "weights 0, as in this course"],
        ["finite", "−10⁹ in place of −∞, in float32"],
        ["literal", "equation (12) literally"],
      ],
    },
    { key: "scaled", label: "Divide by √dk" },
    {
      key: "width",
      label: "Width dk of queries and keys",
      options: [1, 4, 16, 64, 256].map((width) => [width, width]),
    },
    { key: "seed", label: "Random queries and keys: draw", min: 1, max: 20 },
  ],
  limits: ({ n }) => ({ pads: n }),
  compute,
  draw,
  say,
};
