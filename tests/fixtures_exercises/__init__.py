"""One small exercise per kind of task, about anything but the course's topics.

They show that judge and grader know nothing of what they judge.
"""

from fixtures_exercises import (
    backward,
    module,
    sampling,
    sorters,
    text,
    training,
    values,
)
from seqlib.exercises.record import Assignment

TASKS = {
    made.TASK.kind: made.TASK
    for made in (values, backward, sampling, text, module, sorters, training)
}
ASSIGNMENT = Assignment(
    name="fixtures", title="Fixtures", tasks=tuple(TASKS.values()), torch=True
)
