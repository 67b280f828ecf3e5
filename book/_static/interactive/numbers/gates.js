// One unit of an LSTM and of a GRU that reads a content u_t and a mark m_t at each step.
import { InputError, sigmoid } from "./arrays.js";

const CONTENT = 2; // weight of the content in the candidate

/** Split "0.8 -0.4, 1" into numbers; refuse anything else. */
export function readNumbers(text, name) {
  const words = text.trim().split(/[\s,;]+/).filter(Boolean);
  const numbers = words.map((word) => Number(word.replace("−", "-")));
  const bad = words.find((_, i) => !Number.isFinite(numbers[i]));
  if (bad !== undefined) throw new InputError(`${name} must be numbers, got “${bad}”`);
  const n = numbers.length;
  if (n > 16) throw new InputError(`${name} must be at most 16 numbers, got ${n}`);
  return numbers;
}

/** The inputs (T, 2): content, and 1 where the step is marked. */
export function readInputs({ content, marks }) {
  const values = readNumbers(content, "Contents");
  if (values.length === 0) throw new InputError("Contents must be at least one number, got none");
  const marked = new Set(readNumbers(marks, "Marked steps"));
  const T = values.length;
  const bad = [...marked].find((t) => !Number.isInteger(t) || t < 1 || t > T);
  if (bad !== undefined) throw new InputError(`Marked steps must be from 1 to ${T}, got ${bad}`);
  return values.map((u, t) => [u, marked.has(t + 1) ? 1 : 0]);
}

/** Weights in the library's packing, gates i, f, g, o. */
export function lstmWeights({ bf, wf, bi, wi, bo, v }) {
  return {
    weight_ih: [[0, wi], [0, wf], [CONTENT, 0], [0, 0]],
    weight_hh: [[0], [0], [v], [0]],
    bias: [bi, bf, 0, bo],
  };
}

/** Weights in the library's packing, gates r, z, n. */
export function gruWeights({ br, wr, bz, wz, v }) {
  return {
    weight_ih: [[0, wr], [0, wz], [CONTENT, 0]],
    weight_hh: [[0], [0], [v]],
    bias: [br, bz, 0],
  };
}

/** The sums in front of the nonlinearities, without the part of h. */
const sums = ({ weight_ih, bias }, [u, m]) =>
  weight_ih.map(([wu, wm], gate) => wu * u + wm * m + bias[gate]);

export function lstmSteps(weights, inputs) {
  const v = weights.weight_hh[2][0];
  let [h, c] = [0, 0];
  return inputs.map((x) => {
    const [ai, af, ag, ao] = sums(weights, x);
    const [i, f, o] = [ai, af, ao].map(sigmoid);
    const g = Math.tanh(ag + v * h);
    c = f * c + i * g;
    h = o * Math.tanh(c);
    return { gates: { f, i, o }, candidate: g, keep: f, write: i * g, memory: c, h };
  });
}

export function gruSteps(weights, inputs) {
  const v = weights.weight_hh[2][0];
  let h = 0;
  return inputs.map((x) => {
    const [ar, az, an] = sums(weights, x);
    const [r, z] = [ar, az].map(sigmoid);
    const n = Math.tanh(an + v * r * h); // reset before the product, as in the notes
    h = (1 - z) * h + z * n;
    return { gates: { r, z }, candidate: n, keep: 1 - z, write: z * n, memory: h, h };
  });
}

/**
 * What is left at step t of what each step s wrote: write_s times keep_(s+1) ... keep_t.
 * Entry [t][s]; each row sums to the memory after step t.
 */
export function shares(steps) {
  const table = [];
  let left = [];
  for (const { keep, write } of steps) {
    left = [...left.map((part) => part * keep), write];
    table.push(left);
  }
  return table;
}

export function compute(kind, state) {
  const inputs = readInputs(state);
  const weights = kind === "lstm" ? lstmWeights(state) : gruWeights(state);
  const steps = (kind === "lstm" ? lstmSteps : gruSteps)(weights, inputs);
  const follow = Math.min(state.follow, steps.length);
  const kept = steps.slice(follow).reduce((product, { keep }) => product * keep, 1);
  return { kind, inputs, weights, steps, shares: shares(steps), follow, kept };
}
