"""The assignment ``bptt``: gradients through time, checked, cut short and clipped."""

from seqlib.exercises import (
    _bptt_checker,
    _bptt_clip,
    _bptt_full,
    _bptt_jacobian,
    _bptt_step,
    _bptt_truncated,
)
from seqlib.exercises.record import Assignment, Written

WHICH_MISTAKE = Written(
    id="which_mistake",
    points=10,
    rubric=(
        "2 points: (a) the four terms 0.6, 0.256, 0.0346, 0.0092 and their sum 0.8998 (1 point "
        "for da_4 ... da_1 = 1, 0.32, 0.0576, 0.0184, 1 point for terms and sum)",
        "3 points: (b) A goes back two steps only; B takes each step alone, the gradient from "
        "the next step is missing; C lacks the derivative of tanh (1 point each)",
        "2 points: (c) 0.6 for A and for B, 0.7216 for right code",
        "1 point: (c) says why: the term that A has and B lacks is da_3 h_2, which is 0",
        "1 point: (d) 0.0092 for 4 steps, and at most 0.5^20 = 9.5e-7 for 20 steps",
        "1 point: (d) clipping multiplies all of the gradient by one number of at most 1, so "
        "the share of the early steps stays as small as it is",
    ),
)

ASSIGNMENT = Assignment(
    name="bptt",
    title="Backpropagation through time",
    tasks=(
        _bptt_checker.TASK,
        _bptt_step.TASK,
        _bptt_full.TASK,
        _bptt_truncated.TASK,
        _bptt_jacobian.TASK,
        _bptt_clip.TASK,
    ),
    written=(WHICH_MISTAKE,),
    grants=("seqlib.np.rnn",),
    hours=5.0,
)
