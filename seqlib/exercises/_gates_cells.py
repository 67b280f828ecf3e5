"""What the LSTM and GRU tasks share: the nonlinearities, the vector [h, x], saturated gates."""

import itertools

import numpy as np

from seqlib.exercises.record import Misconception


def sigmoid(a, wrong=frozenset()):
    """Return the logistic function; the mistake overflows for large sums."""
    if "naive_sigmoid" in wrong:
        with np.errstate(all="ignore"):
            return np.exp(a) / (1 + np.exp(a))
    return 0.5 * (1 + np.tanh(0.5 * a))


def tanh(a, wrong=frozenset()):
    """Return tanh; the mistakes overflow for large sums, of either sign or positive ones."""
    with np.errstate(all="ignore"):
        if "naive_tanh" in wrong:
            return (np.exp(a) - np.exp(-a)) / (np.exp(a) + np.exp(-a))
        if "naive_tanh_of_square" in wrong:
            return (np.exp(2 * a) - 1) / (np.exp(2 * a) + 1)
    return np.tanh(a)


def joined(h, x, wrong=frozenset()):
    """Return [h, x] for each row, or [x, h] if that mistake is among ``wrong``."""
    return np.concatenate([x, h] if "columns_x_first" in wrong else [h, x], axis=-1)


def taken_apart(dz, h, x, wrong=frozenset()):
    """Return the gradients of h and of x from that of [h, x]."""
    if "columns_x_first" in wrong:
        D = x.shape[-1]
        return dz[:, D:], dz[:, :D]
    H = h.shape[-1]
    return dz[:, :H], dz[:, H:]


def summed(da, z, wrong=frozenset()):
    """Return the gradient of a matrix from that of its sums ``da`` and its inputs ``z``."""
    dW = da.T @ z
    return dW / len(da) if "mean_over_batch" in wrong else dW


def normal(rng, *shape):
    """Draw an array; a matrix of n columns has entries near 1 / sqrt(n)."""
    return rng.standard_normal(shape)


def matrices(rng, count, H, D):
    """Draw matrices on [h, x] whose sums are of order 1, so that no gate is saturated."""
    return [normal(rng, H, H + D) / np.sqrt(H + D) for _ in range(count)]


def signs(rng, *choices):
    """Return one array for each of ``choices``; together they hold all combinations once."""
    table = np.array(list(itertools.product(*choices)), dtype=float)
    return rng.permutation(table).T


COLUMNS = Misconception(
    "columns_x_first",
    "The vectors are joined as [x, h], but the first H columns of the matrices belong to h.",
    "lstm#columns",
    "ZacBi/CS224n-2019-solutions#1",
)
NAIVE_SIGMOID = Misconception(
    "naive_sigmoid",
    "The sigmoid is computed as exp(a) / (1 + exp(a)), which is inf / inf = NaN for large a.",
    "lstm#saturation",
    "FederatedAI/FATE#65",
)
NAIVE_TANH = Misconception(
    "naive_tanh",
    "The tanh is computed from exp(a) and exp(-a), one of which overflows for sums that are "
    "large in either direction: inf / inf is NaN.",
    "lstm#saturation",
    "tiny-dnn/tiny-dnn#347",
)
NAIVE_TANH_OF_SQUARE = Misconception(
    "naive_tanh_of_square",
    "The tanh is computed from exp(2a), which overflows for large positive sums: inf / inf is "
    "NaN.",
    "lstm#saturation",
    "triton-lang/triton#8551",
)
MEAN = Misconception(
    "mean_over_batch",
    "The gradients of the parameters are averaged over the batch, not summed; the gradient "
    "that comes in may hold such a factor already.",
    "lstm#backward",
    "kvfrans/notes#5",
)
