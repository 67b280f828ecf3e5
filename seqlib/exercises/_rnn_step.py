"""Task: one recurrent step with the joined matrix, equation (2)."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.rnn import rnn_cell


def reference(h, x, W, b):
    """Return the next state."""
    m = len(b)
    rows = rnn_cell(x.reshape(-1, x.shape[-1]), h.reshape(-1, m), W[:, m:], W[:, :m], b, None)
    return rows.reshape(h.shape)


def variant(h, x, W, b, *, wrong=frozenset()):
    """Return the next state, with the mistakes named in ``wrong``."""
    m, d = h.shape[-1], x.shape[-1]
    W_hh, W_xh = W[:, :m], W[:, m:]
    if "inputs_first" in wrong:
        W_xh, W_hh = W[:, :d], W[:, d:]
    if "recurrent_transposed" in wrong:
        W_hh = W_hh.T
    from_state = 0 * h if "state_ignored" in wrong else h @ W_hh.T
    from_input = x @ W_xh.T
    bias = 0 if wrong & {"no_bias", "bias_after"} else 2 * b if "bias_twice" in wrong else b
    squash = _squashing(wrong)
    if "product" in wrong:
        new = squash((from_input + bias) * from_state)
    elif "tanh_of_input" in wrong:
        new = from_state + squash(from_input + bias)
    else:
        new = squash(from_state + from_input + bias)
    if "bias_after" in wrong:
        new = new + b
    return h + new if "added_to_state" in wrong else new


def _squashing(wrong):
    if "no_tanh" in wrong:
        return np.asarray
    return _logistic if "sigmoid" in wrong else np.tanh


def _logistic(a):
    return 1 / (1 + np.exp(-a))


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_drawn(rng, 3, 2, (5,)), label="m=3, d=2, 5 sequences"),
        Case(_drawn(rng, 2, 5, (3,)), label="m=2, d=5, 3 sequences"),
        Case(_drawn(rng, 5, 3, ()), label="m=5, d=3, one vector each", tag="axes"),
        Case(_drawn(rng, 3, 5, (2, 7)), label="m=3, d=5, leading axes (2, 7)", tag="axes"),
        Case(_drawn(rng, 1, 1, (1,)), label="m=1, d=1, one sequence", tag="one"),
        Case(_drawn(rng, 1, 3, (2,)), label="m=1, d=3, 2 sequences", tag="one"),
    ]


def _drawn(rng, m, d, lead):
    h = rng.uniform(-1, 1, (*lead, m))
    x = rng.standard_normal((*lead, d))
    return h, x, 0.7 * rng.standard_normal((m, m + d)), rng.standard_normal(m)


# Mistakes in the step that the task about whole sequences shares.
NO_TANH = Misconception(
    "no_tanh",
    "There is no tanh: the state is a linear function of the state before.",
    "rnn#state",
    "mila-iqia/blocks#324",
)
NO_BIAS = Misconception(
    "no_bias",
    "The bias is not added.",
    "rnn#state",
    "our own: a term of the sum left out",
)
RECURRENT_TRANSPOSED = Misconception(
    "recurrent_transposed",
    "W_hh is used transposed: in rows the state is multiplied by the transpose of W_hh.",
    "rnn#cell",
    "our own: h W for W h, unseen with a symmetric or diagonal matrix",
)

TASK = Task(
    id="rnn.rnn_step",
    title="One recurrent step",
    signature="(h, x, W, b)",
    equations=("eq-2",),
    page="rnn#cell",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 10, "states of a batch"),
        Criterion("axes", 3, "single vectors, more leading axes", tag="axes"),
        Criterion("one", 2, "a state of one number", tag="one"),
    ),
    misconceptions=(
        NO_TANH,
        Misconception(
            "sigmoid",
            "The logistic function stands in the place of tanh: all states are positive.",
            "rnn#state",
            "carpedm20/pixel-rnn-tensorflow#18",
        ),
        Misconception(
            "bias_after",
            "The bias is added after the tanh, so states can leave the range from -1 to 1.",
            "rnn#state",
            "our own: the bias outside of the bracket",
        ),
        NO_BIAS,
        Misconception(
            "bias_twice",
            "The bias is added twice, once to the part of the state and once to that of the "
            "input.",
            "rnn#one-matrix",
            "onnx/onnx#1127",
        ),
        Misconception(
            "inputs_first",
            "Input and state are joined in the other order, [x, h], so both meet the columns "
            "of W that belong to the other.",
            "rnn#one-matrix",
            "ZacBi/CS224n-2019-solutions#1",
        ),
        RECURRENT_TRANSPOSED,
        Misconception(
            "tanh_of_input",
            "The tanh is taken of the input's part and the bias alone, and the part of the "
            "state is added outside of it.",
            "rnn#state",
            "lmjohns3/theanets#109",
        ),
        Misconception(
            "product",
            "The part of the state is multiplied with that of the input, not added to it.",
            "rnn#state",
            "keras-team/keras#1231",
        ),
        Misconception(
            "state_ignored",
            "The state before the step does not enter: the result depends on the input alone.",
            "rnn#state",
            "karpathy/makemore#3",
        ),
        Misconception(
            "added_to_state",
            "The old state is added to the result of the tanh.",
            "rnn#state",
            "our own: += in the place of =",
        ),
    ),
    options={"axes": ("sequence", "component")},
    shortcuts=("seqlib.np.rnn_cell", "seqlib.np.rnn", "torch.nn.RNNCell", "torch.nn.RNN"),
)
