"""The assignment ``layers``: norms, the feed-forward network, and the layers made of them."""

from seqlib.exercises import (
    _layers_feed_forward,
    _layers_layer_norm,
    _layers_layer_norm_backward,
    _layers_post_norm,
    _layers_pre_norm,
    _layers_rms_norm,
    _layers_rms_norm_backward,
)
from seqlib.exercises.record import Assignment, Written

WHICH_DIVISOR = Written(
    id="which_divisor",
    points=10,
    rubric=(
        "1 point: (a) computes both divisors, 1.5 / 1.5 = 1.000 and 1.5 / 1.732 = 0.866",
        "1 point: (a) names the mistake: the variance is 3/3 in place of 3/4, divided by d - 1",
        "2 points: (b) the factor sqrt(d / (d - 1)): 1.155 at d = 4, 1.00098 at d = 512 (1 "
        "point each, one unit of the last digit)",
        "2 points: (c) eps inside the root 0.0474, outside 1.553 (1 point each, errors below "
        "1 %)",
        "1 point: (c) names the mistake: eps is added to the deviation, outside of the root",
        "2 points: (d) a row whose variance is near eps, with the four first entries computed; "
        "for 0.003 (3, 1, 1, 1): 1.0995, 1.0324, 1.7254 and 1.7321",
        "1 point: (d) says why the two rows above fail: beside a large variance eps is not "
        "seen, and beside eps a small variance is not seen",
    ),
)

ASSIGNMENT = Assignment(
    name="layers",
    title="Norms and layers",
    tasks=(
        _layers_layer_norm.TASK,
        _layers_layer_norm_backward.TASK,
        _layers_rms_norm.TASK,
        _layers_rms_norm_backward.TASK,
        _layers_feed_forward.TASK,
        _layers_post_norm.TASK,
        _layers_pre_norm.TASK,
    ),
    written=(WHICH_DIVISOR,),
    grants=("seqlib.np.layer_norm", "seqlib.np.rms_norm"),
    hours=5.0,
)
