// The Jacobian of a tanh network with two units, and its norm by lag.
/**
 * Return the 2 x 2 matrix with the double eigenvalue rho and the largest singular value sigma,
 * in axes that are turned by an angle. Its second singular value is rho^2 / sigma, since their
 * product is the determinant; the entry off the diagonal follows from the sum of squares.
 */
export function matrix(rho, sigma, degrees) {
  const largest = Math.max(rho, sigma);
  const off = largest === 0 ? 0 : largest - (rho * rho) / largest;
  const angle = (degrees * Math.PI) / 180;
  // Rounded, so that sine and cosine of 45 degrees are the same number.
  const [c, s] = [Math.cos(angle), Math.sin(angle)].map((v) => Math.round(v * 1e14) / 1e14);
  return [
    [rho - off * c * s, off * c * c],
    [-off * s * s, rho + off * s * c],
  ];
}

export function multiply(a, b) {
  return a.map((row) => [0, 1].map((j) => row[0] * b[0][j] + row[1] * b[1][j]));
}

/** Largest singular value of a 2 x 2 matrix. */
export function norm([[a, b], [c, d]]) {
  return (Math.hypot(a + d, b - c) + Math.hypot(a - d, b + c)) / 2;
}

/** Size of the largest eigenvalue of a 2 x 2 matrix. */
export function radius([[a, b], [c, d]]) {
  const half = (a + d) / 2;
  const inside = ((a - d) / 2) ** 2 + b * c;
  if (inside < 0) return Math.hypot(half, Math.sqrt(-inside));
  return Math.abs(half) + Math.sqrt(inside);
}

/**
 * The norm of d h_T / d h_(T - lag) for the lags 0 to T; see jacobian_norm_by_lag.
 *
 * The input holds the arguments of tanh at (a1, a2), so every step has the same Jacobian D W:
 * row i of W times the slope of unit i.
 */
export function compute({ rho, sigma, degrees, a1, a2, steps }) {
  const W = matrix(rho, sigma, degrees);
  const slopes = [a1, a2].map((a) => 1 - Math.tanh(a) ** 2);
  const step = W.map((row, i) => row.map((w) => slopes[i] * w));
  let product = [[1, 0], [0, 1]];
  const norms = [1];
  for (let lag = 1; lag <= steps; lag++) {
    product = multiply(product, step);
    norms.push(norm(product));
  }
  return { W, rho, sigma: norm(W), slopes, stepRadius: radius(step), norms };
}
