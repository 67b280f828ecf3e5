import { compute } from "./numbers/gradient.js";
import { BLUE, ORANGE, TEXT, axes, dots, drawing, legend, line } from "./svg.js";
import { number, plural, power, wholeTicks } from "./svg.js";

/** The decades that the axis shows; below them stands 0. */
function decades({ norms, sigma }) {
  const found = norms.filter((value) => value > 1e-15).map(Math.log10);
  const bound = Math.log10(sigma || 1) * (norms.length - 1);
  const high = Math.min(Math.max(...found, bound, 1), 24);
  return [Math.floor(Math.min(...found, -1)), Math.ceil(high)];
}

function draw(result, width) {
  const { norms, sigma, rho } = result;
  const T = norms.length - 1;
  const [low, high] = decades(result);
  const stride = Math.ceil((high - low) / 7);
  const yTicks = [[low - 1, "0"]];
  for (let e = low; e <= high; e++) if (e % stride === 0) yTicks.push([e, power(e)]);
  const bounds = [["bound: σmax to the lag", TEXT, "2 3"], ["ρ to the lag", TEXT, "7 4"]];
  const key = legend([["norm of the Jacobian", BLUE], ...bounds], 60, 14, width - 70);
  const top = key.bottom + 12;
  const box = axes({
    left: 60,
    top,
    width: width - 74,
    height: 230,
    x: { range: [0, T], ticks: wholeTicks(0, T), label: "lag, steps" },
    y: { range: [low - 1, high + 1], ticks: yTicks, label: "norm (logarithmic)" },
  });
  const place = (value, lag) => {
    const logarithm = value < 1e-15 ? low - 1 : Math.log10(value);
    return [box.px(lag), box.py(Math.min(Math.max(logarithm, low - 1), high + 1))];
  };
  const powers = (base, dash) => line(norms.map((_, lag) => place(base ** lag, lag)), TEXT, dash);
  const points = norms.map(place);
  const body =
    key.body + box.body + powers(sigma, "2 3") + powers(rho, "7 4") + line(points, BLUE) +
    dots(points, BLUE) + dots([points[T]], ORANGE, 4.5);
  return drawing(width, top + 274, body);
}

function reason({ sigma, stepRadius }) {
  if (sigma < 1) return "σmax is below 1, which proves that it vanishes";
  const factor = number(stepRadius);
  const growth = factor === "1" ? "stays" : stepRadius > 1 ? "grows" : "vanishes";
  return `in the long run a step multiplies by the spectral radius of DW, ${factor}: it ${growth}`;
}

function say(result) {
  const { W, norms, rho, sigma, slopes } = result;
  const T = norms.length - 1;
  const matrix = W.map((row) => row.map(number).join(", ")).join("; ");
  return (
    `Norm of the Jacobian over ${plural(T, "step")}: ` +
    `${number(norms[T] < 1e-15 ? 0 : norms[T])}. ` +
    `W = (${matrix}) has ρ = ${number(rho)} and σmax = ${number(sigma)}; the slopes at the ` +
    `arguments are ${slopes.map(number).join(" and ")}; ${reason(result)}.`
  );
}

const start = { rho: 0, sigma: 6, degrees: -45, a1: 0, a2: 2, steps: 20 };
const identity = { ...start, rho: 1.5, sigma: 1.5, degrees: 0, a2: 0 };

export default {
  title: "Vanishing and exploding gradients of a network with two units",
  examples: {
    "ρ = 0, explodes": start,
    "The same, not driven": { ...start, a2: 0 },
    "σmax = 10, vanishes": { ...start, sigma: 10, degrees: 0 },
    "1.5 times the identity": identity,
    "The same, saturated": { ...identity, a1: 1.5, a2: -1.5 },
  },
  controls: [
    { key: "rho", label: "Spectral radius ρ of W", min: 0, max: 3, step: 0.1 },
    { key: "sigma", label: "Largest singular value σmax of W", min: 0, max: 10, step: 0.1 },
    { key: "degrees", label: "Axes of W turned by (degrees)", min: -90, max: 90, step: 15 },
    { key: "a1", label: "Drive: argument of tanh in unit 1", min: -3, max: 3, step: 0.1 },
    { key: "a2", label: "Drive: argument of tanh in unit 2", min: -3, max: 3, step: 0.1 },
    { key: "steps", label: "Length (steps)", min: 1, max: 50 },
  ],
  // No matrix has a singular value below its spectral radius.
  fix({ rho, sigma }, key) {
    if (rho <= sigma) return {};
    return key === "rho" ? { sigma: rho } : { rho: sigma };
  },
  compute,
  draw,
  say,
};
