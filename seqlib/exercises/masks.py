"""The assignment ``masks``: padding, the future, empty rows, a leak test, costs."""

from seqlib.exercises import (
    _masks_causal,
    _masks_combine,
    _masks_cost,
    _masks_leak,
    _masks_padding,
    _masks_softmax,
    _masks_softmax_backward,
)
from seqlib.exercises.record import Assignment, Written

WHOSE_MASK = Written(
    id="whose_mask",
    points=10,
    rubric=(
        "3 points: (a) A sets weights to 0 after the softmax, 1/16 and 2/16; B multiplies the "
        "blocked scores by 0, 1/5 and 2/5; C blocks the wrong keys, 5/13 and 8/13 (1 point "
        "each, with the computation)",
        "1 point: (b) right code and B keep their weights, 0.3333 and 0.6667, 0.2 and 0.4; A "
        "has 0.03125 and 0.0625",
        "1 point: (b) A lets a blocked score act, through the sum in the denominator",
        "1 point: (c) query 1 has 1/3, 0, 1/3, 1/3",
        "1 point: (c) query 2 has 1/4 everywhere; queries 3 and 4 are right, 0, 0, 1, 0 and "
        "0, 0, 1/2, 1/2",
        "1 point: (d) a leak test finds a leak: outputs at padding look at later tokens",
        "1 point: (d) the code of (c) does no harm: the loss leaves these outputs out, and no "
        "real query looks at padding",
        "1 point: (d) NaN is worse: 0 times NaN is NaN in the backward pass, which reaches the "
        "shared weights",
    ),
)

ASSIGNMENT = Assignment(
    name="masks",
    title="Masks",
    tasks=(
        _masks_padding.TASK,
        _masks_causal.TASK,
        _masks_combine.TASK,
        _masks_softmax.TASK,
        _masks_softmax_backward.TASK,
        _masks_leak.TASK,
        _masks_cost.TASK,
    ),
    written=(WHOSE_MASK,),
    hours=4.0,
)
