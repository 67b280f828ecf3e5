"""Task: count the parameters of a multi-head attention layer."""

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(d, H, d_k, d_v, bias=False):
    """Return the number of parameters of one multi-head attention layer."""
    weights = H * d * (2 * d_k + d_v) + H * d_v * d
    biases = H * (2 * d_k + d_v) + d
    return weights + (biases if bias else 0)


def variant(d, H, d_k, d_v, bias=False, *, wrong=frozenset()):
    """Return the count, with the mistakes named in ``wrong``."""
    value = d_k if "values_like_keys" in wrong else d_v
    heads = 1 if "one_head" in wrong else H
    out = 1 if "one_head_output" in wrong else H
    count = heads * d * (2 * d_k + value) + out * value * d
    if "no_output" in wrong:
        count -= out * value * d
    if "output_square" in wrong:
        count += d * d - out * value * d
    if "square" in wrong:
        count = 4 * d**2
    if "bias_ignored" in wrong or not (bias or "bias_always" in wrong):
        return count
    last = H * value if "output_bias_width" in wrong else d
    if "no_output_bias" in wrong:
        last = 0
    if "biases_of_width_d" in wrong:
        return count + 4 * d
    return count + heads * (2 * d_k + value) + last


def cases(rng):
    """Draw inputs for one run: five different primes, so that no two products agree."""
    primes = [3, 5, 7, 11, 13, 17, 19, 23]
    draws = [tuple(int(p) for p in rng.permutation(primes)[:4]) for _ in range(4)]
    return [
        *(Case(sizes, label=_sizes(*sizes)) for sizes in draws[:2]),
        Case((8, 2, 4, 4), label=_sizes(8, 2, 4, 4)),
        *(Case((*s, True), label=f"{_sizes(*s)}, biases", tag="bias") for s in draws[2:]),
    ]


def _sizes(d, H, d_k, d_v):
    return f"d={d}, H={H}, d_k={d_k}, d_v={d_v}"


TASK = Task(
    id="attention.count_parameters",
    title="Count the parameters",
    signature="(d, H, d_k, d_v, bias=False)",
    equations=("eq-8", "eq-11"),
    page="multihead#parameters",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 3, "weights"),
        Criterion("bias", 2, "weights and biases", tag="bias"),
    ),
    misconceptions=(
        Misconception(
            "no_output",
            "The output matrix is not counted.",
            "multihead#output",
            "jwallbridge/translob#4",
        ),
        Misconception(
            "one_head",
            "The projections to queries, keys and values are counted for one head.",
            "multihead#projection",
            "SamLynnEvans/Transformer#4",
        ),
        Misconception(
            "one_head_output",
            "The output matrix is counted with the rows of one head.",
            "multihead#output",
            "Artaches/SSAN-self-attention-sentiment-analysis-classification#3",
        ),
        Misconception(
            "square",
            "The count is 4 d^2, which holds only where H d_k = H d_v = d.",
            "multihead#parameters",
            "pytorch/pytorch#60853",
        ),
        Misconception(
            "output_square",
            "The output matrix is counted as d x d, although H d_v need not be d.",
            "multihead#output",
            "labmlai/annotated_deep_learning_paper_implementations#180",
        ),
        Misconception(
            "values_like_keys",
            "The values are counted with the width of the keys.",
            "multihead#projection",
            "lucidrains/flash-attention-jax#15",
        ),
        Misconception(
            "bias_ignored",
            "The biases are not counted.",
            "multihead#parameters",
            "facebookresearch/fairseq2#887",
        ),
        Misconception(
            "bias_always",
            "The biases are counted although bias is False.",
            "multihead#parameters",
            "facebookresearch/fairseq2#887",
        ),
        Misconception(
            "output_bias_width",
            "The bias of the output is counted with the width of the concatenated heads.",
            "multihead#parameters",
            "our own: a bias has the width of what comes out",
        ),
        Misconception(
            "biases_of_width_d",
            "The biases are counted as four vectors of width d, which holds only where "
            "H d_k = H d_v = d.",
            "multihead#parameters",
            "pytorch/pytorch#60853",
        ),
        Misconception(
            "no_output_bias",
            "The bias of the output is not counted; those of the projections are.",
            "multihead#parameters",
            "facebookresearch/fairseq2#887",
        ),
    ),
)
