import { compute } from "./numbers/sampling.js";
import { BLUE, ORANGE, TEXT, axes, drawing, label, legend, number, rect, ticks } from "./svg.js";

function draw({ before, probabilities, removed }, width) {
  const names = [["before, at temperature 1", TEXT, "box"], ["drawn with", BLUE, "box"]];
  const key = legend(names, 58, 14, width - 64);
  const [top, height] = [key.bottom + 22, 200];
  const ids = before.map((_, id) => [id + 0.5, id]);
  const high = Math.max(...before, ...probabilities);
  const box = axes({
    left: 58,
    top,
    width: width - 66,
    height,
    x: { range: [0, before.length], ticks: ids, label: "token id" },
    y: { range: [0, high], ticks: ticks(0, high), label: "probability" },
  });
  const cell = box.px(1) - box.px(0);
  const bar = (from, value, color) =>
    rect(box.px(from), box.py(value), cell * 0.36, top + height - box.py(value), color);
  const bars = before.map((value, id) => {
    const both = bar(id + 0.12, value, TEXT) + bar(id + 0.5, probabilities[id], BLUE);
    const middle = box.px(id + 0.68);
    const bold = { fill: ORANGE, "font-weight": "bold" };
    if (removed[id]) return both + label(middle, top + 195, removed[id].at(-1), "middle", bold);
    if (cell < 60) return both;
    return both + label(middle, box.py(probabilities[id]) - 5, probabilities[id].toFixed(3));
  });
  return drawing(width, top + height + 42, key.body + box.body + bars.join(""));
}

function say({ probabilities, removed, left, entropy }) {
  const best = Math.max(...probabilities);
  const cuts = ["top-k", "top-p"].flatMap((name) => {
    const ids = removed.flatMap((by, id) => (by === name ? [id] : []));
    return ids.length ? [`${name} removes ${ids.join(", ")}`] : [];
  });
  return (
    `${left} of ${probabilities.length} tokens ${left === 1 ? "is" : "are"} left; the best, ` +
    `id ${probabilities.indexOf(best)}, has ${number(best)}. Entropy: ${number(entropy)} nats.` +
    (cuts.length ? ` By id: ${cuts.join("; ")}.` : "")
  );
}

const start = { q: "0.4 0.3 0.2 0.1", temperature: 1, k: 16, p: 1 };
const twelve = "0.03 0.22 0.05 0.31 0.02 0.14 0.01 0.08 0.06 0.04 0.03 0.01";

export default {
  title: "The distribution that the next token is drawn with",
  examples: {
    "Twelve tokens, top-p 0.9": { ...start, q: twelve, p: 0.9 },
    "Four tokens of the page": start,
    "Temperature 0.5": { ...start, temperature: 0.5 },
    "Top-k 2, then top-p 0.5": { ...start, k: 2, p: 0.5 },
    "Equal tokens: the lower id": { ...start, q: "1 2 2 2 1", k: 2 },
  },
  controls: [
    { key: "q", label: "Probabilities before, in any unit, up to 16", rows: 2 },
    { key: "temperature", label: "Temperature τ", min: 0, max: 3, step: 0.05 },
    { key: "k", label: "Top-k: tokens to keep", min: 1, max: 16 },
    { key: "p", label: "Top-p: probability to keep", min: 0.05, max: 1, step: 0.05 },
  ],
  compute,
  draw,
  say,
  read: ({ probabilities }) => `Probabilities by id: ${probabilities.map(number).join(", ")}`,
};
