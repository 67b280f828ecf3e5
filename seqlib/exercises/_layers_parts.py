"""The functions that a layer is made of, as handles: a student's code can only call them."""

import math

import numpy as np

from seqlib.np.attention import scaled_dot_product_attention
from seqlib.np.feedforward import feed_forward
from seqlib.subject.values import Handle


def attention(rng, d):
    """Return a self-attention with weights of its own, for tokens of width ``d``."""
    W_q, W_k, W_v = rng.standard_normal((3, d, d)) / math.sqrt(d)

    def attend(X):
        X = np.asarray(X)
        wide = X.astype(np.float64)
        Y = scaled_dot_product_attention(wide @ W_q, wide @ W_k, wide @ W_v)
        return Y.astype(X.dtype)

    return Handle(attend)


def mlp(rng, d):
    """Return a feed-forward network with weights of its own, for tokens of width ``d``."""
    w_1, w_2 = rng.standard_normal((2 * d, d)), rng.standard_normal((d, 2 * d)) / math.sqrt(d)
    b_1, b_2 = rng.standard_normal(2 * d), rng.standard_normal(d)

    def forward(X):
        X = np.asarray(X)
        return feed_forward(X.astype(np.float64), w_1, b_1, w_2, b_2).astype(X.dtype)

    return Handle(forward)
