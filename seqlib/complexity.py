"""Operations and memory of attention, of a Transformer layer and of recurrent layers, counted.

One multiplication and one addition are two floating-point operations (FLOPs), so a product of
an (m, k) and a (k, n) matrix has 2 m k n of them. An elementwise function such as exp or tanh
counts as one operation per number, and so do a maximum and a sum over a row. The forward pass
is counted; the backward pass of a matrix product is two products of the same size.
"""

from dataclasses import dataclass

from seqlib._check import check_choice, check_divisible, check_positive

__all__ = ["Cost", "attention_cost", "layer_cost", "rnn_cost"]


@dataclass(frozen=True)
class Cost:
    """Operations of one step, and the memory of its result.

    Attributes
    ----------
    flops : int
        Floating-point operations, forward.
    bytes : int
        Size of the result, which the backward pass needs.
    """

    flops: int
    bytes: int

    def __add__(self, other):
        return Cost(self.flops + other.flops, self.bytes + other.bytes)


def attention_cost(T, S, K, *, width=None, n_head=1, batch=1, itemsize=4):
    r"""Cost of each step of scaled dot-product attention.

    .. math:: S = Q K^\top / \sqrt{d_k}, \qquad A = \mathrm{softmax}(S), \qquad Y = A V

    Parameters
    ----------
    T, S : int
        Number of queries and of keys.
    K : int
        Width of queries and keys of one head.
    width : int, optional
        Width of the values of one head; K if not given.
    n_head, batch : int, default=1
        Number of heads and of sequences; both multiply everything.
    itemsize : int, default=4
        Bytes of one number.

    Returns
    -------
    dict of str to Cost
        ``"scores"``: 2 T S K for the product and T S for the scale.
        ``"softmax"``: maximum, difference, exp, sum and quotient, 5 T S.
        ``"output"``: 2 T S ``width``.

    Raises
    ------
    ValueError
        If a size is not a positive integer.

    References
    ----------
    Lecture notes, section 8, the table of complexities.
    """
    width = K if width is None else width
    sizes = {"T": T, "S": S, "K": K, "width": width, "n_head": n_head}
    _check_positive(**sizes, batch=batch, itemsize=itemsize)
    copies = batch * n_head
    return {
        "scores": Cost(copies * T * S * (2 * K + 1), copies * T * S * itemsize),
        "softmax": Cost(copies * 5 * T * S, copies * T * S * itemsize),
        "output": Cost(copies * 2 * T * S * width, copies * T * width * itemsize),
    }


def layer_cost(T, D, *, n_head=1, F=None, activation="gelu", batch=1, itemsize=4):
    r"""Cost of each step of a Transformer layer with self-attention, without the norms.

    The matrix products of attention are :math:`4 n^2 d`, the four projections
    :math:`8 n d^2`: equal at :math:`n = 2d`. With F = 4 D the feed-forward network adds
    :math:`16 n d^2`: attention equals all other products at :math:`n = 6d`.

    Parameters
    ----------
    T : int
        Number of tokens.
    D : int
        Width of the model.
    n_head : int, default=1
        Number of heads; divides D. It changes the softmax alone.
    F : int, optional
        Width of the inner layer; 4 D if not given.
    activation : {"relu", "gelu", "swiglu"}, default="gelu"
        With ``"swiglu"`` the feed-forward network has three matrices instead of two.
    batch, itemsize : int
        As in :func:`attention_cost`.

    Returns
    -------
    dict of str to Cost
        ``"projections"`` (queries, keys, values and output), ``"scores"``, ``"softmax"``,
        ``"output"`` and ``"feed_forward"``.

    Raises
    ------
    ValueError
        If a size is not a positive integer or ``n_head`` does not divide D.

    References
    ----------
    Lecture notes, sections 8 and 9.
    """
    F = 4 * D if F is None else F
    _check_positive(T=T, D=D, F=F, batch=batch, itemsize=itemsize)
    check_divisible("D", D, "n_head", n_head)
    check_choice("activation", activation, ("relu", "gelu", "swiglu"))
    matrices, elementwise = (3, 2) if activation == "swiglu" else (2, 1)
    attention = attention_cost(T, T, D // n_head, n_head=n_head, batch=batch, itemsize=itemsize)
    tokens = batch * T
    inner = (matrices - 1) * F  # numbers of a token before the activation
    return {
        "projections": Cost(tokens * 8 * D * D, tokens * 4 * D * itemsize),
        **attention,
        "feed_forward": Cost(
            tokens * (2 * matrices * D * F + elementwise * F), tokens * (inner + D) * itemsize
        ),
    }


def rnn_cost(T, D, H, *, kind="rnn", batch=1, itemsize=4):
    r"""Cost of a recurrent layer.

    .. math:: \text{per step: } 2 g H (D + H) \text{ for the matrix products}

    with g = 1, 3, 4 blocks of rows for ``"rnn"``, ``"gru"``, ``"lstm"``.

    Parameters
    ----------
    T : int
        Number of steps.
    D, H : int
        Width of the input and of the state.
    kind : {"rnn", "gru", "lstm"}, default="rnn"
        The cell.
    batch, itemsize : int
        As in :func:`attention_cost`.

    Returns
    -------
    dict of str to Cost
        ``"input"``: the products with ``weight_ih``, for all steps at once. ``"state"``: those
        with ``weight_hh``, one step after another. ``"gates"``: everything elementwise; its
        memory are the gates and states that backpropagation through time keeps.

    Raises
    ------
    ValueError
        If a size is not a positive integer or ``kind`` is unknown.

    References
    ----------
    Lecture notes, sections 2 to 4.
    """
    _check_positive(T=T, D=D, H=H, batch=batch, itemsize=itemsize)
    check_choice("kind", kind, ("rnn", "gru", "lstm"))
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    # Additions of the two products and the two biases, the nonlinearities, then the products
    # and sums of the gates: GRU r * h, z * h~, 1 - z, (1 - z) * h, +; LSTM f * c, i * c~, +,
    # tanh(c), o * tanh(c).
    elementwise = 3 * gates + gates + {"rnn": 0, "gru": 5, "lstm": 5}[kind]
    kept = {"rnn": 1, "gru": 3 + 1, "lstm": 4 + 2}[kind]  # gates, and states
    steps = batch * T
    return {
        "input": Cost(steps * 2 * gates * H * D, steps * gates * H * itemsize),
        "state": Cost(steps * 2 * gates * H * H, batch * gates * H * itemsize),
        "gates": Cost(steps * elementwise * H, steps * kept * H * itemsize),
    }


def _check_positive(**sizes):
    for name, value in sizes.items():
        check_positive(name, value)
