"""The assignment ``attention``: from weighted averages to multi-head attention."""

from seqlib.exercises import (
    _attention_backward,
    _attention_count,
    _attention_heads,
    _attention_multihead,
    _attention_scaled,
    _attention_simple,
)
from seqlib.exercises.record import Assignment, Written

WHY_SCALING = Written(
    id="why_scaling",
    points=10,
    rubric=(
        "1 point: (a) computes the divisor from the weights: ln(0.7311 / 0.2689) = 1.000, and "
        "4 / 1.000 = 4",
        "2 points: (a) names both mistakes that divide by 4: sqrt(d) = sqrt(16), and d_k = 4 "
        "without its root (1 point each)",
        "3 points: (b) right code 0.804 and 0.196; sqrt(d) 0.731 and 0.269; d_k 0.622 and "
        "0.378 (1 point each, errors below 0.002)",
        "2 points: (c) derivatives a(1 - a): 0.105 scaled and 1.1e-7 unscaled (1 point each, "
        "two digits)",
        "1 point: (c) concludes that without the scale this query and these keys get almost no "
        "gradient, so W_q and W_k hardly change",
        "1 point: (d) names sizes that tell all three apart: more than one head, d_k > 1 and "
        "d not equal to d_k^2",
    ),
)

ASSIGNMENT = Assignment(
    name="attention",
    title="Attention by hand",
    tasks=(
        _attention_simple.TASK,
        _attention_scaled.TASK,
        _attention_backward.TASK,
        _attention_heads.SPLIT,
        _attention_heads.MERGE,
        _attention_multihead.TASK,
        _attention_count.TASK,
    ),
    written=(WHY_SCALING,),
    grants=("seqlib.np.softmax", "seqlib.np.scaled_dot_product_attention"),
    hours=5.0,
)
