// Weights of attention under masks, for random queries and keys.
import { dot, mean, normal, range, rows, softmax, uniform } from "./arrays.js";

/** Which positions are padding: the first or the last `pads` of n. */
export function padding(n, side, pads) {
  const isPadding = (j) => (side === "left" ? j < pads : side === "right" && j >= n - pads);
  return range(0, n).map(isPadding);
}

/** Whether each query may attend to each key. */
export function allowed({ n, causal, side, pads }) {
  const isPadding = padding(n, side, pads);
  return isPadding.map((_, i) => isPadding.map((pad, j) => !pad && !(causal && j > i)));
}

/** Weights of one row; `empty` says what a forbidden score becomes. */
export function weigh(scores, may, empty) {
  if (empty === "finite") {
    // In single precision the score is lost in -1e9.
    const sums = scores.map((s, j) => Math.fround(Math.fround(s) + (may[j] ? 0 : -1e9)));
    return softmax(sums);
  }
  if (empty === "literal" && !may.some(Boolean)) return scores.map(() => NaN);
  return softmax(scores.map((s, j) => (may[j] ? s : -Infinity)));
}

export function compute(state) {
  const { n, width, scaled, empty, seed } = state;
  const next = uniform(seed);
  const q = rows(normal(next, n * width), width);
  const k = rows(normal(next, n * width), width);
  const scale = scaled ? Math.sqrt(width) : 1;
  const may = allowed(state);
  const scores = q.map((query) => k.map((key) => dot(query, key) / scale));
  const weights = scores.map((row, i) => weigh(row, may[i], empty));
  const live = weights.filter((_, i) => may[i].some(Boolean));
  return {
    q,
    k,
    may,
    scores,
    weights,
    isPadding: padding(n, state.side, state.pads),
    emptyRows: may.flatMap((row, i) => (row.some(Boolean) ? [] : [i + 1])),
    largest: live.length ? mean(live.map((row) => Math.max(...row))) : NaN,
    state,
  };
}
