import { compute } from "./numbers/depth.js";
import { BLUE, ORANGE, axes, dots, drawing, label, legend, line } from "./svg.js";
import { number, plural, wholeTicks } from "./svg.js";

/** One curve for each form against the layers, on a logarithmic axis. */
function panel({ pre, post, depth }, name, top, width, title, unit) {
  const last = Math.max(depth, 2);
  const values = [...pre[name], ...post[name]].map(Math.log10);
  const [low, high] = [Math.min(...values) - 0.1, Math.max(...values) + 0.1];
  const yTicks = [-3, -2, -1, 0, 1, 2]
    .flatMap((e) => [1, 2, 3, 5].map((factor) => factor * 10 ** e))
    .map((value) => [Math.log10(value), number(value)])
    .filter(([value]) => value >= low && value <= high);
  const box = axes({
    left: 62,
    top: top + 22,
    width: width - 76,
    height: 130,
    x: { range: [1, last], ticks: wholeTicks(1, last), label: "layer" },
    y: { range: [low, high], ticks: yTicks, label: unit },
  });
  let body = label(62 + (width - 76) / 2, top + 12, title) + box.body;
  for (const [found, color, dash] of [[pre, BLUE], [post, ORANGE, "6 3"]]) {
    const points = found[name].map((value, i) => [box.px(i + 1), box.py(Math.log10(value))]);
    body += line(points, color, dash) + dots(points, color, 2.5);
  }
  return body;
}

function draw(result, width) {
  const key = legend([["pre-norm", BLUE], ["post-norm", ORANGE, "6 3"]], 62, 14, width - 70);
  const body =
    key.body +
    panel(result, "gradients", 22, width, "gradient of the second feed-forward matrix", "norm") +
    panel(result, "sizes", 228, width, "size of the tokens behind the layer", "deviation");
  return drawing(width, 424, body);
}

function say({ depth, pre, post }) {
  const ends = ({ gradients }) =>
    `${number(gradients[0])} in the first layer and ${number(gradients[depth - 1])} in the last`;
  return (
    `${plural(depth, "layer")}. Gradient norm, pre-norm: ${ends(pre)}; ` +
    `post-norm: ${ends(post)}. Tokens behind the last layer: size ` +
    `${number(pre.sizes[depth - 1])} and ${number(post.sizes[depth - 1])}. ` +
    `Loss at the start: ${number(pre.loss)} and ${number(post.loss)} nats; ` +
    "knowing nothing costs ln 16 = 2.77."
  );
}

const start = { depth: 12, seed: 0, shrink: false, final: true };

export default {
  title: "Gradients of a fresh stack of Transformer layers, pre-norm and post-norm",
  examples: {
    "12 layers": start,
    "2 layers": { ...start, depth: 2 },
    "32 layers": { ...start, depth: 32 },
    "32 layers, last matrices shrunk": { ...start, depth: 32, shrink: true },
    "32 layers, no final norm": { ...start, depth: 32, final: false },
  },
  controls: [
    { key: "depth", label: "Layers L", min: 1, max: 32 },
    { key: "seed", label: "Seed of weights and tokens", min: 0, max: 19 },
    { key: "shrink", label: "Last matrix of each part times 1/√(2L), as in GPT-2" },
    { key: "final", label: "Norm behind the pre-norm stack" },
  ],
  compute,
  draw,
  say,
};
