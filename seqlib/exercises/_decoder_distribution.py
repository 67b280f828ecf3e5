"""Task: from logits to the distribution that the next token is drawn from."""

import numpy as np

from seqlib.exercises._decoder_sampling_mistakes import MISCONCEPTIONS
from seqlib.exercises.record import Case, Criterion, Task


def reference(logits, temperature, top_k, top_p, allowed):
    """Return the probabilities of the next token, one row for each row of logits."""
    rows = [_row(z, temperature, top_k, top_p, allowed) for z in np.asarray(logits, float)]
    return np.stack(rows)


def _row(z, temperature, top_k, top_p, allowed):
    z = np.where(allowed, z, -np.inf)
    order = np.argsort(-z, kind="stable")  # best first; lower id first in a tie
    p = np.zeros(len(z))
    if temperature == 0:
        p[order[0]] = 1.0
        return p
    p = np.exp((z - z.max()) / temperature)
    p /= p.sum()
    if top_k is not None:
        p[order[top_k:]] = 0
        p /= p.sum()
    if top_p is not None:
        before = np.cumsum(p[order]) - p[order]  # the mass of all better tokens
        p[order[before >= top_p]] = 0
        p /= p.sum()
    return p


def variant(logits, temperature, top_k, top_p, allowed, *, wrong=frozenset()):
    """Return the probabilities with the mistakes named in ``wrong``."""
    z = np.array(logits, dtype=float)
    may = ~allowed if "polarity" in wrong else allowed
    if "forbidden_as_0" in wrong:
        z = z * may
    elif not wrong & {"allowed_ignored", "forbidden_last", "forbidden_last_kept"}:
        z = np.where(may, z, -np.inf)
    p = np.stack([_varied(row, temperature, top_k, top_p, wrong) for row in z])
    if "over_batch" in wrong and temperature > 0 and top_k is None and top_p is None:
        e = np.exp((z - z.max()) / temperature)
        p = e / e.sum(axis=0, keepdims=True)
    if wrong & {"forbidden_last", "forbidden_last_kept"}:
        p = p * allowed
    if "forbidden_last" in wrong:
        p = p / p.sum(axis=-1, keepdims=True)
    return p


def _varied(z, temperature, top_k, top_p, wrong):
    """Return one row."""
    if temperature == 0 and "zero_divides" not in wrong:
        best = np.flatnonzero(z == z.max())
        if "greedy_highest_id" in wrong:
            best = best[-1:]
        if "greedy_shared" not in wrong:
            best = best[:1]
        p = np.zeros(len(z))
        p[best] = 1 / len(best)
        return p
    if "temperature_multiplied" in wrong:
        scaled = z * temperature
    else:
        scaled = z if "temperature_ignored" in wrong else z / temperature
    shift = 0.0 if "no_shift" in wrong else scaled.max()
    p = np.exp(scaled - shift)
    p /= p.sum()
    original = p
    if top_k is not None:
        p = _top_k(p, scaled, top_k, wrong)
    if top_p is not None:
        p = _top_p(p, original, top_p, wrong)
    return p


def _top_k(p, z, k, wrong):
    order = np.argsort(-z, kind="stable")
    if "top_k_smallest" in wrong:
        order = order[np.isfinite(z[order])][::-1]
    keep = np.zeros(len(z), bool)
    if "top_k_above_V" in wrong:
        keep[order] = z[order] >= z[order][k - 1]
        keep[order[k:]] = False
    else:
        keep[order[: k - 1 if "top_k_one_less" in wrong and k > 1 else k]] = True
    if "top_k_ties_kept" in wrong:
        keep = z >= z[keep].min()
    if "top_k_logits_0" in wrong:
        rest = np.where(keep, z, 0.0)
        p = np.exp(rest - rest.max())
        return p / p.sum()
    p = np.where(keep, p, 0.0)
    return p if "not_renormalised" in wrong else p / p.sum()


def _top_p(p, original, top_p, wrong):
    order = np.argsort(-p, kind="stable")
    if "top_p_in_id_order" in wrong:
        order = np.arange(len(p))
    source = original if "top_p_of_original" in wrong else p
    mass = np.cumsum(source[order])
    before = mass - source[order]
    keep = before < top_p
    if "top_p_crossing_dropped" in wrong:
        keep = mass <= top_p
        keep[0] = True  # as everyone adds when a row comes out empty
    if "top_p_one_more" in wrong:
        keep = np.append(True, keep[:-1])
    if "top_p_threshold" in wrong:
        keep = p[order] >= top_p
        keep[0] = True
    q = np.where(keep, p[order], 0.0)
    if "not_renormalised" not in wrong:
        q = q / q.sum()
    if "sorted_result" in wrong:
        return q
    result = np.empty_like(q)
    result[order] = q
    return result


def cases(rng):
    """Draw inputs for one run."""
    return [
        _case(rng, (1, 5), 0.7, None, None, "temperature 0.7"),
        _case(rng, (3, 7), 2.0, None, None, "temperature 2"),
        _case(rng, (2, 11), 1.3, None, None, "temperature 1.3"),
        _case(rng, (1, 1), 1.0, None, None, "one token, temperature 1"),
        _case(rng, (3, 7), 0, None, None, "temperature 0", "greedy"),
        _case(rng, (2, 5), 0, None, None, "temperature 0, two equal best", "greedy", ties=True),
        _case(rng, (3, 11), 0.8, 3, None, "top_k 3", "top_k"),
        _case(rng, (2, 7), 1.5, 2, None, "top_k 2", "top_k"),
        _case(rng, (2, 5), 1.0, 13, None, "V=5, top_k 13", "top_k"),
        _case(rng, (2, 7), 1.0, 1, None, "top_k 1, two equal best", "ties", ties=True),
        _case(rng, (2, 7), 1.0, None, 0.02, "top_p 0.02, two equal best", "ties", ties=True),
        _case(
            rng,
            (2, 7),
            1.0,
            None,
            0.6,
            "top_p 0.6, two equal behind the best",
            "ties",
            behind=True,
        ),
        _case(rng, (1, 11), 1.0, None, 0.6, "top_p 0.6", "top_p", least=3),
        _case(rng, (3, 13), 1.2, None, 0.8, "top_p 0.8", "top_p", least=4),
        _case(rng, (2, 7), 1.0, None, 0.02, "top_p 0.02", "top_p"),
        _case(rng, (1, 13), 1.0, 5, 0.7, "top_k 5 and top_p 0.7", "both", least=3),
        _case(rng, (3, 11), 1.1, 7, 0.75, "top_k 7 and top_p 0.75", "both", least=3),
        _case(rng, (3, 7), 1.0, None, None, "2 tokens not allowed", "allowed", banned=2),
        _case(rng, (2, 11), 1.0, 4, 0.8, "3 not allowed", "allowed", banned=3, least=2),
        _case(rng, (2, 5), 0.002, None, None, "temperature 0.002", "large"),
        _case(rng, (2, 7), 1.0, None, None, "logits near 1000", "large", shift=(1000, 1000)),
        _case(rng, (2, 5), 1.0, None, None, "rows near 0 and 1000", "large", shift=(0, 1000)),
    ]


def _case(rng, shape, temperature, top_k, top_p, label, tag="base", **draw):
    B, V = shape
    rows, allowed = [], np.ones(V, bool)
    allowed[rng.permutation(V)[: draw.get("banned", 0)]] = False
    for b in range(B):
        while True:
            z = 2 * rng.standard_normal(V) if tag == "large" else 1.2 * rng.standard_normal(V)
            if draw.get("banned") and b == 0:  # the best token may not be drawn
                z[np.flatnonzero(~allowed)[0]] = z.max() + 0.5
            first, *tied = rng.permutation(V)[:3]
            if draw.get("ties") or draw.get("behind"):
                z[tied] = z.max() + 0.3
            if draw.get("behind"):
                z[first] = z.max() + 0.9
                # Of the two, only the first one may stay.
                if np.count_nonzero(_row(z, temperature, top_k, top_p, allowed)) != 2:
                    continue
            if _distinct(z, temperature, top_k, top_p, allowed, draw.get("least", 0)):
                break
        rows.append(z + draw.get("shift", (0,) * B)[b])
    args = (np.array(rows), temperature, top_k, top_p, allowed)
    return Case(args, label=f"B={B}, V={V}, {label}", tag=tag)


def _distinct(z, temperature, top_k, top_p, allowed, least):
    """Whether no order of the steps is near a border, and at least ``least`` tokens stay."""
    if top_p is None:
        return True
    for ban in (allowed, np.ones_like(allowed)):
        for k in (None, top_k):
            ranked = np.sort(_row(z, temperature, k, None, ban))[::-1]
            if np.abs(np.cumsum(ranked) - top_p).min() < 0.01:
                return False
            if np.abs(ranked - top_p).min() < 0.01:
                return False
    return np.count_nonzero(_row(z, temperature, top_k, top_p, allowed)) >= least


TASK = Task(
    id="decoder.next_token_distribution",
    title="Distribution of the next token",
    signature="(logits, temperature, top_k, top_p, allowed)",
    equations=(),
    page="decoder#distribution",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 3, "temperature alone"),
        Criterion("greedy", 2, "temperature 0", tag="greedy"),
        Criterion("top_k", 2, "top_k", tag="top_k"),
        Criterion("top_p", 3, "top_p", tag="top_p"),
        Criterion("both", 2, "top_k and top_p together", tag="both"),
        Criterion("allowed", 1, "tokens that are not allowed", tag="allowed"),
        Criterion("large", 1, "large logits and low temperatures", tag="large"),
        Criterion("ties", 1, "equal logits at the border of top_k or top_p", tag="ties"),
    ),
    misconceptions=MISCONCEPTIONS,
    options={"axes": ("batch row", "token id")},
    version=2,
)
