"""The assignment ``gates``: LSTM and GRU, forward and backward."""

from seqlib.exercises import (
    _gates_count,
    _gates_gru_backward,
    _gates_gru_step,
    _gates_lstm_backward,
    _gates_lstm_sequence,
    _gates_lstm_step,
)
from seqlib.exercises.record import Assignment, Written

WHAT_IS_KEPT = Written(
    id="what_is_kept",
    points=10,
    rubric=(
        "2 points: (a) f = sigma(0) = 0.5 (1 point), and 0.5^20 = 9.5e-7 (1 point)",
        "2 points: (b) 0.7311^20 = 0.00190 for b_f = 1 (1 point) and 0.9526^20 = 0.378 for "
        "b_f = 3 (1 point)",
        "1 point: (b) f = 0.5^(1/100) = 0.99309, so b_f = ln(f / (1 - f)) = 4.97",
        "1 point: (c) right code keeps 1 - sigma(-3) = 0.9526 a step, 0.378 in 20 steps",
        "1 point: (c) the classmate keeps sigma(-3) = 0.0474 a step, 3.3e-27 in 20 steps: z "
        "and 1 - z are exchanged",
        "1 point: (c) turns the sign of W_z, since 1 - sigma(a) = sigma(-a)",
        "1 point: (d) with one unit r * (w h) = w * (r h): products of numbers commute",
        "1 point: (d) an example with H = 2 whose two sums are computed and differ",
    ),
)

ASSIGNMENT = Assignment(
    name="gates",
    title="Gates by hand",
    tasks=(
        _gates_lstm_step.TASK,
        _gates_lstm_sequence.TASK,
        _gates_lstm_backward.TASK,
        _gates_gru_step.TASK,
        _gates_gru_backward.TASK,
        _gates_count.TASK,
    ),
    written=(WHAT_IS_KEPT,),
    grants=("seqlib.np.sigmoid", "seqlib.np.lstm_cell", "seqlib.np.lstm_from_notes"),
    hours=5.0,
)
