// A stack of causal Transformer layers at its start: the gradient of each layer, both forms.
// The stack of seqlib/experiments/depth.py with half its width: it is computed while one drags.
// A part returns { y, back }; back turns the gradient of y into those of its input and matrix.
import { dot, mean, normal, range, rows, softmax, uniform } from "./arrays.js";

const V = 16; // tokens; the task is to give back the one of LAG steps before
const LAG = 2;
const [B, T, D, F, EPS] = [4, 8, 16, 64, 1e-5];
const HEADS = [0, 1];
const K = D / HEADS.length;

const transpose = (x) => x[0].map((_, i) => x.map((row) => row[i]));
const timesT = (x, W) => x.map((row) => W.map((weights) => dot(row, weights))); // x W^T
const add = (a, b) => a.map((row, m) => row.map((value, i) => value + b[m][i]));

/** x W^T: x (rows, inner), W (outer, inner) as in torch.nn.Linear. */
function linear(x, W) {
  const back = (dy) => [timesT(dy, transpose(W)), timesT(transpose(dy), transpose(x))];
  return { y: timesT(x, W), back };
}

function centre(row) {
  const mu = mean(row);
  return row.map((v) => v - mu);
}

/** Layer normalisation with gain 1 and shift 0. */
function norm(x) {
  const centred = x.map(centre);
  const rstd = centred.map((row) => 1 / Math.sqrt(dot(row, row) / D + EPS));
  const y = centred.map((row, m) => row.map((v) => v * rstd[m]));
  const back = (dy) =>
    dy.map((d, m) => {
      const viaMean = mean(d);
      const viaVar = dot(d, y[m]) / D;
      return d.map((v, i) => rstd[m] * (v - viaMean - y[m][i] * viaVar));
    });
  return { y, back };
}

/** The rows of the same sequence up to row m: what its query may attend to. */
const past = (m) => range(m - (m % T), m + 1);

/** Causal self-attention without biases. */
function attention(x, { inProj, outProj }) {
  const qkv = linear(x, inProj); // (rows, 3D): queries, keys, values
  const part = (m, h, which) => qkv.y[m].slice(which * D + h * K, which * D + (h + 1) * K);
  const scores = (m, h) => past(m).map((s) => dot(part(m, h, 0), part(s, h, 1)) / Math.sqrt(K));
  const weights = x.map((_, m) => HEADS.map((h) => softmax(scores(m, h))));
  const average = (m, h) =>
    timesT([weights[m][h]], transpose(past(m).map((s) => part(s, h, 2))))[0];
  const heads = linear(x.map((_, m) => HEADS.flatMap((h) => average(m, h))), outProj);
  const back = (dy) => {
    const [dHeads] = heads.back(dy);
    const dqkv = x.map(() => Array(3 * D).fill(0));
    const put = (m, h, which, vector, factor) =>
      vector.forEach((v, c) => (dqkv[m][which * D + h * K + c] += factor * v));
    const through = (m, h) => {
      const d = dHeads[m].slice(h * K, (h + 1) * K);
      const a = weights[m][h];
      const da = past(m).map((s) => dot(d, part(s, h, 2)));
      past(m).forEach((s, j) => {
        const ds = (a[j] * (da[j] - dot(a, da))) / Math.sqrt(K);
        put(m, h, 0, part(s, h, 1), ds);
        put(s, h, 1, part(m, h, 0), ds);
        put(s, h, 2, d, a[j]);
      });
    };
    x.forEach((_, m) => HEADS.forEach((h) => through(m, h)));
    return qkv.back(dqkv);
  };
  return { y: heads.y, back };
}

function feedForward(x, { linear1, linear2 }) {
  const inner = linear(x, linear1);
  const outer = linear(inner.y.map((row) => row.map((v) => Math.max(v, 0))), linear2);
  const back = (dy) => {
    const [dInner, dLinear2] = outer.back(dy);
    const da = dInner.map((row, m) => row.map((v, i) => (inner.y[m][i] > 0 ? v : 0)));
    return [inner.back(da)[0], dLinear2];
  };
  return { y: outer.y, back };
}

/** One part f of a layer with its residual and its norm. */
function withNorm(f, x, form) {
  if (form === "pre") {
    const n = norm(x);
    const inner = f(n.y);
    const back = (dy) => {
      const [dNormed, dW] = inner.back(dy);
      return [add(dy, n.back(dNormed)), dW];
    };
    return { y: add(x, inner.y), back };
  }
  const inner = f(x);
  const n = norm(add(x, inner.y));
  const back = (dy) => {
    const dSum = n.back(dy);
    const [dx, dW] = inner.back(dSum);
    return [add(dSum, dx), dW];
  };
  return { y: n.y, back };
}

/** Draw ids and parameters: matrices from Glorot's uniform distribution, biases 0. */
export function draw(depth, seed, shrink) {
  const next = uniform(seed);
  const flat = (outer, inner, bound) =>
    rows(range(0, outer * inner).map(() => bound * (2 * next() - 1)), inner);
  const glorot = (outer, inner) => flat(outer, inner, Math.sqrt(6 / (outer + inner)));
  const factor = shrink ? 1 / Math.sqrt(2 * depth) : 1;
  const last = (outer, inner) => glorot(outer, inner).map((row) => row.map((v) => factor * v));
  return {
    ids: range(0, B * T).map(() => Math.floor(V * next())),
    embedding: rows(normal(next, V * D), D),
    positions: rows(normal(next, T * D), D),
    head: flat(V, D, 1 / Math.sqrt(D)),
    layers: range(0, depth).map(() => ({
      inProj: glorot(3 * D, D),
      outProj: last(D, D),
      linear1: glorot(F, D),
      linear2: last(D, F),
    })),
  };
}

/** Mean loss of the steps from LAG on, in nats, and its gradient at the logits. */
function crossEntropy(logits, ids) {
  const count = B * (T - LAG);
  let loss = 0;
  const dLogits = logits.map((row, m) => {
    if (m % T < LAG) return row.map(() => 0);
    const p = softmax(row);
    const target = ids[m - LAG];
    loss -= Math.log(p[target]) / count;
    return p.map((value, j) => (value - (j === target)) / count);
  });
  return [loss, dLogits];
}

const length = (row) => Math.sqrt(dot(row, row));
const deviation = (row) => length(centre(row)) / Math.sqrt(row.length);

/** Size of the tokens behind each layer, loss, and gradient norm of each layer's linear2. */
export function start(form, { ids, embedding, positions, head, layers }, final) {
  let x = ids.map((id, m) => embedding[id].map((v, i) => v + positions[m % T][i]));
  const parts = layers.flatMap((params) =>
    [attention, feedForward].map((f) => {
      const done = withNorm((input) => f(input, params), x, form);
      x = done.y;
      return done;
    }),
  );
  const top = form === "pre" && final ? norm(x) : { y: x, back: (dy) => dy };
  const logits = linear(top.y, head);
  const [loss, dLogits] = crossEntropy(logits.y, ids);
  let dx = top.back(logits.back(dLogits)[0]);
  const gradients = parts.reduceRight((found, { back }) => {
    const [below, dW] = back(dx);
    dx = below;
    return [length(dW.flat()), ...found];
  }, []);
  const second = (values) => values.filter((_, i) => i % 2); // of the two parts of a layer
  const sizes = parts.map(({ y }) => deviation(y.flat()));
  return { loss, gradients: second(gradients), sizes: second(sizes) };
}

export function compute({ depth, seed, shrink, final }) {
  const params = draw(depth, seed, shrink);
  return { depth, pre: start("pre", params, final), post: start("post", params, final) };
}
