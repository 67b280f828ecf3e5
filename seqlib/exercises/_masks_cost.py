"""Task: the operations and the bytes of one layer, with all tokens or with new ones alone."""

from seqlib.exercises.record import Case, Criterion, Misconception, Task

PARTS = ("projections", "attention", "feed_forward", "score_bytes", "cache_bytes")


def reference(B, n_q, n_k, d, H, F, itemsize):
    """Return the operations of three parts, and the bytes of two arrays."""
    return variant(B, n_q, n_k, d, H, F, itemsize)


def variant(B, n_q, n_k, d, H, F, itemsize, *, wrong=frozenset()):
    """Return the counts, with the mistakes named in ``wrong``."""
    add = 1 if "multiply_add_one" in wrong else 2
    rows = 1 if "batch_ignored" in wrong else B
    counts = {
        "projections": rows * add * d * d * _projected_rows(n_q, n_k, wrong),
        "attention": rows * add * _pairs(n_q, n_k, wrong) * _width(d, H, wrong),
        "feed_forward": rows * add * n_q * _feed_forward(d, F, wrong),
    }
    sizes = {
        "score_bytes": rows * n_q * n_k * (1 if "score_heads" in wrong else H),
        "cache_bytes": rows * _cached(n_q, n_k, d, H, wrong),
    }
    item = 1 if "numbers_counted" in wrong else itemsize
    return counts | {name: item * size for name, size in sizes.items()}


def _projected_rows(n_q, n_k, wrong):
    """Return how many rows are multiplied by a (d, d) matrix."""
    if "projections_three" in wrong:
        return 3 * n_q
    return 2 * n_q + 2 * n_k if "past_projected" in wrong else 4 * n_q


def _pairs(n_q, n_k, wrong):
    if "causal_pairs" in wrong:
        return n_q * n_k - n_q * (n_q - 1) // 2
    if "square_of_queries" in wrong:
        return n_q**2
    return n_k**2 if "square_of_keys" in wrong else n_q * n_k


def _width(d, H, wrong):
    """Return the multiplications for one pair: scores and output, of all heads together."""
    products = 1 if "scores_alone" in wrong else 2
    if "heads_multiply" in wrong:
        return products * d * H
    return products * d // H if "one_head" in wrong else products * d


def _feed_forward(d, F, wrong):
    inner = 4 * d if "four_d" in wrong else F
    return (1 if "one_matrix" in wrong else 2) * d * inner


def _cached(n_q, n_k, d, H, wrong):
    tokens = n_q if "cache_new_alone" in wrong else n_k
    heads = H if "cache_heads" in wrong else 1
    return (1 if "cache_keys_alone" in wrong else 2) * tokens * d * heads


def cases(rng):
    """Draw inputs for one run: different primes, so that no two products agree."""

    def sizes(past, B=None):
        b, n, H, width, F = (int(p) for p in rng.permutation([3, 5, 7, 11, 13])[:5])
        itemsize = int(rng.choice([2, 4]))
        return b if B is None else B, n, n + past, H * width, H, F, itemsize

    def case(values, tag="base"):
        B, n_q, n_k, d, H, F, itemsize = values
        label = f"B={B}, n_q={n_q}, n_k={n_k}, d={d}, H={H}, F={F}, {itemsize} bytes"
        return Case(values, label=label, tag=tag)

    return [
        case(sizes(0)),
        case(sizes(0, B=1)),
        case((1, 1, 1, 1, 1, 1, 4)),
        case(sizes(17), "past"),
        case((3, 1, 19, 14, 2, 23, 2), "past"),
    ]


TASK = Task(
    id="masks.layer_cost",
    title="Operations and bytes",
    signature="(B, n_q, n_k, d, H, F, itemsize)",
    equations=(),
    page="complexity#flops",
    reference=reference,
    variant=variant,
    cases=cases,
    options={"parts": {name: name for name in PARTS}},
    criteria=(
        Criterion("values", 2, "operations of attention", part="attention"),
        Criterion(
            "projections", 1, "operations of the projections", part="projections", needs=()
        ),
        Criterion(
            "feed_forward",
            1,
            "operations of the feed-forward network",
            part="feed_forward",
            needs=(),
        ),
        Criterion("score_bytes", 2, "bytes of the scores", part="score_bytes", needs=()),
        Criterion("cache_bytes", 2, "bytes of the cache", part="cache_bytes", needs=()),
        Criterion("past", 2, "new tokens behind a past", tag="past", needs=()),
    ),
    misconceptions=(
        Misconception(
            "multiply_add_one",
            "A multiplication and its addition are counted as one operation, not as two.",
            "complexity#flops",
            "our own: multiply-accumulate operations, as hardware counts them",
        ),
        Misconception(
            "batch_ignored",
            "Everything is counted for one sequence; there are B.",
            "complexity#flops",
            "our own: one sequence, as in the notes' table",
        ),
        Misconception(
            "scores_alone",
            "Attention is counted by half: one of its two products is missing, or half of the "
            "pairs are left out as blocked.",
            "complexity#flops",
            "our own: QK^T alone",
        ),
        Misconception(
            "heads_multiply",
            "Attention is counted with the full width d for each head; a head has the width "
            "d/H.",
            "complexity#flops",
            "our own: d where d_h is meant",
        ),
        Misconception(
            "one_head",
            "Attention is counted for one head.",
            "complexity#flops",
            "our own: d_h, and the other heads forgotten",
        ),
        Misconception(
            "causal_pairs",
            "Only pairs that a causal mask allows are counted; the products are computed for "
            "all pairs.",
            "complexity#flops",
            "our own: the triangle counted in place of the square",
        ),
        Misconception(
            "square_of_queries",
            "Attention is counted with n_q^2 pairs; the queries see all n_k keys.",
            "complexity#flops",
            "our own: n^2, where queries and keys are as many",
        ),
        Misconception(
            "square_of_keys",
            "Attention is counted with n_k^2 pairs, as if the past had queries too.",
            "complexity#cache",
            "our own: n^2, with the n of the keys",
        ),
        Misconception(
            "projections_three",
            "Three projections are counted; the output has a matrix too.",
            "complexity#projections",
            "our own: queries, keys and values",
        ),
        Misconception(
            "past_projected",
            "Keys and values of the past are computed again; they are in the cache.",
            "complexity#cache",
            "our own: a generation without a cache",
        ),
        Misconception(
            "one_matrix",
            "The feed-forward network is counted with one matrix; it has two.",
            "complexity#layer",
            "our own: one linear map, as in a last layer",
        ),
        Misconception(
            "four_d",
            "The feed-forward network is counted with the inner width 4d; here it is F.",
            "complexity#layer",
            "our own: the usual width",
        ),
        Misconception(
            "score_heads",
            "The scores of one head are counted; each head has its own.",
            "complexity#memory",
            "our own: one matrix of scores, as in the notes' O(n^2)",
        ),
        Misconception(
            "numbers_counted",
            "Numbers are counted, not bytes.",
            "complexity#memory",
            "our own: bytes are asked for",
        ),
        Misconception(
            "cache_keys_alone",
            "The cache is counted with the keys alone; the values are kept too.",
            "complexity#cache",
            "our own: it is called a key cache",
        ),
        Misconception(
            "cache_new_alone",
            "The cache is counted for the new tokens alone.",
            "complexity#cache",
            "our own: what one call adds",
        ),
        Misconception(
            "cache_heads",
            "The cache is counted with the full width d for each head; all heads together "
            "have the width d.",
            "complexity#cache",
            "our own: d where d_h is meant",
        ),
    ),
    shortcuts=("seqlib.complexity.attention_cost", "seqlib.complexity.layer_cost"),
)
