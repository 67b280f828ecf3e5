"""Task: the feed-forward network of a Transformer layer, "MLP" in equations (17) and (18)."""

import math

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance
from seqlib.np.feedforward import feed_forward


def reference(X, W_1, b_1, W_2, b_2):
    """Return GELU(X W_1 + b_1) W_2 + b_2, with the tanh form of GELU."""
    return feed_forward(X, W_1.T, b_1, W_2.T, b_2, activation="gelu_tanh")


def variant(X, W_1, b_1, W_2, b_2, *, wrong=frozenset()):
    """Return the outputs, with the mistakes named in ``wrong``."""
    inner = X @ W_1
    if not wrong & {"b_1_ignored", "b_1_after"}:
        inner = inner + b_1
    hidden = inner if wrong & {"no_activation", "activation_last"} else _gelu(inner, wrong)
    if "b_1_after" in wrong:
        hidden = hidden + b_1
    Y = hidden @ W_2
    if "b_2_ignored" not in wrong:
        Y = Y + b_2
    if wrong & {"activation_last", "activation_twice"}:
        Y = _gelu(Y, wrong)
    return Y + X if "residual" in wrong else Y


def _gelu(x, wrong):
    if "relu" in wrong:
        return np.maximum(x, 0)
    if "exact_gelu" in wrong:
        return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    if wrong & {"sigmoid_gelu", "silu"}:
        return x / (1 + np.exp(-(1.702 if "sigmoid_gelu" in wrong else 1) * x))
    cubic = 0 if "no_cube" in wrong else 0.044715 * x ** (2 if "square" in wrong else 3)
    factor = 2 / math.pi if "factor_without_root" in wrong else math.sqrt(2 / math.pi)
    phi = 1 + np.tanh(factor * (x + cubic))
    if "x_missing" in wrong:
        return 0.5 * phi
    return x * phi if "half_missing" in wrong else 0.5 * x * phi


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 5, 3, 7, biases=False), label="n=5 tokens, d=3, F=7, biases of 0"),
        Case(_args(rng, 2, 5, 11, biases=False), label="n=2 tokens, d=5, F=11, biases of 0"),
        Case(_args(rng, 1, 3, 2, biases=False), label="one token, d=3, F=2, biases of 0"),
        Case(_args(rng, 5, 3, 7), label="n=5 tokens, d=3, F=7", tag="biases"),
        Case(_args(rng, 3, 7, 2), label="n=3 tokens, d=7, F=2", tag="biases"),
        Case(_args(rng, 5, 3, 7, lead=(2,)), label="2 sequences, n=5", tag="batch"),
        Case(_args(rng, 2, 5, 3, lead=(3, 2)), label="shape (3, 2, 2, 5)", tag="batch"),
    ]


def _args(rng, n, d, F, *, biases=True, lead=()):
    X = 2 * rng.standard_normal((*lead, n, d))
    W_1 = rng.standard_normal((d, F)) / math.sqrt(d)
    W_2 = rng.standard_normal((F, d))
    b_1, b_2 = rng.standard_normal(F), rng.standard_normal(d)
    return (X, W_1, b_1, W_2, b_2) if biases else (X, W_1, 0 * b_1, W_2, 0 * b_2)


TASK = Task(
    id="layers.feed_forward",
    title="Feed-forward network",
    signature="(X, W_1, b_1, W_2, b_2)",
    equations=("eq-17", "eq-18"),
    page="transformer#feed-forward",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 5, "outputs Y without biases"),
        Criterion("biases", 3, "outputs Y with biases", tag="biases"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "no_activation",
            "There is no nonlinearity between the two products, so they are one matrix.",
            "transformer#feed-forward",
            "spring-media/TransformerTTS#102",
        ),
        Misconception(
            "activation_last",
            "The nonlinearity stands behind the second product, not between the two.",
            "transformer#feed-forward",
            "goruck/nilm#1",
        ),
        Misconception(
            "activation_twice",
            "The output goes through the nonlinearity too.",
            "transformer#feed-forward",
            "namedtensor/notation#72",
        ),
        Misconception(
            "relu",
            "The nonlinearity is ReLU, not GELU.",
            "transformer#gelu",
            "Vaswani et al. (2017), Section 3.3, where it is ReLU",
        ),
        Misconception(
            "exact_gelu",
            "The nonlinearity is the exact GELU with erf, not its form with tanh.",
            "transformer#gelu",
            "OpenNMT/CTranslate2#1658",
        ),
        Misconception(
            "sigmoid_gelu",
            "The nonlinearity is x times the sigmoid of 1.702 x, another approximation.",
            "transformer#gelu",
            "harvard-edge/cs249r_book#1154",
        ),
        Misconception(
            "silu",
            "The nonlinearity is SiLU, x times the sigmoid of x.",
            "transformer#gelu",
            "our own: the activation of LLaMA's gated network",
        ),
        Misconception(
            "square",
            "In GELU the term with 0.044715 has the square of x, not its cube.",
            "transformer#gelu",
            "hendrycks/GELUs#1",
        ),
        Misconception(
            "no_cube",
            "In GELU the term with 0.044715 is missing.",
            "transformer#gelu",
            "our own: a factor so small that it seems not to matter",
        ),
        Misconception(
            "factor_without_root",
            "In GELU the factor is 2/pi, without its root.",
            "transformer#gelu",
            "our own: the root of the formula overlooked",
        ),
        Misconception(
            "x_missing",
            "In GELU the factor x in front is missing.",
            "transformer#gelu",
            "tensorflow/tfjs#8224",
        ),
        Misconception(
            "half_missing",
            "In GELU the factor 0.5 is missing.",
            "transformer#gelu",
            "our own: twice the function keeps its form",
        ),
        Misconception(
            "b_1_ignored",
            "The bias of the first product is not used.",
            "transformer#feed-forward",
            "our own: unseen where biases are 0, as they are at the start of training",
        ),
        Misconception(
            "b_2_ignored",
            "The bias of the second product is not used.",
            "transformer#feed-forward",
            "our own: unseen where biases are 0, as they are at the start of training",
        ),
        Misconception(
            "b_1_after",
            "The bias of the first product is added behind the nonlinearity.",
            "transformer#feed-forward",
            "our own: products and biases taken apart",
        ),
        Misconception(
            "residual",
            "X is added to the output: the residual connection belongs to the layer around it.",
            "transformer#residual",
            "NVlabs/Forecasting-Model-Search#6",
        ),
    ),
    # Measured: styles in float32 differ by less than 2e-6; the two forms of GELU by up to 5e-4.
    tolerance=Tolerance(rtol32=1e-5, atol32=1e-5),
    options={"axes": ("token", "feature")},
    shortcuts=("seqlib.np.feedforward.feed_forward", "seqlib.np._rectifiers.gelu"),
)
