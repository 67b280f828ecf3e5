// What the numbers of several figures need. Nothing here knows of the page.

/** Something that the reader typed cannot be used; the message is shown. */
export class InputError extends Error {}

/**
 * Return a source of uniform numbers in (0, 1), the same in every browser.
 * Lehmer's generator with the multiplier 48271: Park and Miller (1993), Communications of the
 * ACM 36. All products stay below 2^53, so they are exact.
 */
export function uniform(seed) {
  let state = 1 + 104729 * seed;
  const next = () => (state = (48271 * state) % 2147483647) / 2147483647;
  for (let i = 0; i < 8; i++) next(); // small seeds start close together
  return next;
}

/** Return n normal numbers from a source of uniform ones (Box and Muller, 1958). */
export function normal(next, n) {
  const draw = () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
  return Array.from({ length: n }, draw);
}

/** Return the rows of a flat array. */
export function rows(flat, width) {
  return range(0, flat.length / width).map((i) => flat.slice(i * width, (i + 1) * width));
}

export const sum = (values) => values.reduce((total, value) => total + value, 0);
export const mean = (values) => sum(values) / values.length;

export function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

export const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

export const sigmoid = (a) => (1 + Math.tanh(a / 2)) / 2;

/** Softmax of one row; a row of -Infinity gives zeros. */
export function softmax(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - top));
  const total = sum(powers);
  return powers.map((power) => power / total);
}
