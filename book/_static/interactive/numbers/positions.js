// Sinusoidal positions, and the dot product of two of them.
import { dot, range } from "./arrays.js";

/** The table (T, D): sine and cosine of t base^(-2k/D) in the columns 2k and 2k + 1. */
export function sinusoidal(T, D, base) {
  const entry = (t, column) => {
    const angle = t * base ** ((-2 * Math.floor(column / 2)) / D);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  };
  return range(0, T).map((t) => range(0, D).map((column) => entry(t, column)));
}

export function compute({ T, D, base, row }) {
  const table = sinusoidal(T, D, base);
  const at = Math.min(row, T - 1);
  const last = Math.ceil(D / 2) - 1; // the slowest pair
  return {
    table,
    row: at,
    dots: table.map((other) => dot(table[at], other)),
    shortest: 2 * Math.PI,
    longest: 2 * Math.PI * base ** ((2 * last) / D),
  };
}
