// From the probabilities of a model to those that the next token is drawn with.
import { InputError, sum } from "./arrays.js";
import { readNumbers } from "./gates.js";

/** Read positive numbers and turn them into logits. */
export function readLogits(text) {
  const q = readNumbers(text, "Probabilities");
  const bad = q.find((value) => value < 0);
  if (bad !== undefined) throw new InputError(`Probabilities must be at least 0, got ${bad}`);
  if (!q.some((value) => value > 0)) {
    throw new InputError("Probabilities must have one above 0, got none");
  }
  return q.map(Math.log);
}

const normalised = (p) => {
  const total = sum(p);
  return p.map((value) => value / total);
};

/**
 * Temperature, then top-k, then top-p; see next_token_distribution. Of equal logits the lower id
 * counts as the more probable.
 *
 * Returns the probabilities and what removed each token: "", "top-k" or "top-p".
 */
export function distribution(z, { temperature, k, p }) {
  const order = z.map((_, id) => id).sort((a, b) => z[b] - z[a] || a - b);
  const best = z[order[0]];
  const removed = z.map(() => "");
  let ranked = order.map((id, rank) => {
    if (temperature === 0) return rank === 0 ? 1 : 0;
    return Math.exp((z[id] - best) / temperature);
  });
  ranked = normalised(ranked);
  if (k < z.length) {
    for (const id of order.slice(k)) removed[id] ||= "top-k";
    ranked = normalised(ranked.map((value, rank) => (rank < k ? value : 0)));
  }
  if (p < 1) {
    let before = 0; // the mass of all better tokens
    const kept = ranked.map((value, rank) => {
      const stays = before < p;
      if (!stays) removed[order[rank]] ||= "top-p";
      before += value;
      return stays ? value : 0;
    });
    ranked = normalised(kept);
  }
  const probabilities = z.map(() => 0);
  order.forEach((id, rank) => (probabilities[id] = ranked[rank]));
  return { probabilities, removed };
}

export function compute(state) {
  const z = readLogits(state.q);
  const { probabilities, removed } = distribution(z, state);
  const left = probabilities.filter((value) => value > 0);
  return {
    before: distribution(z, { temperature: 1, k: Infinity, p: 1 }).probabilities,
    probabilities,
    removed,
    left: left.length,
    entropy: -sum(left.map((value) => value * Math.log(value))),
  };
}
