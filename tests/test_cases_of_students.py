"""Faults of other courses' graded notebooks (group B) that concern all tasks alike."""

import numpy as np
import pytest

from seqlib.exercises import ASSIGNMENTS, get_assignment, get_task
from seqlib.judge.compare import difference
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

TASKS = [task for name in ASSIGNMENTS for task in get_assignment(name).tasks]
MODULES = [task for task in TASKS if task.kind == "module"]


@pytest.mark.parametrize("task", MODULES, ids=lambda task: task.id)
def test_b01_modules_are_compared_without_dropout(task):
    """The place of a dropout cannot be told from an expected output (cs231n#278)."""
    found = {case.kwargs["mode"] for case in task.cases(np.random.default_rng(0))}
    assert found == {"eval"}


def test_b01_there_is_a_module_to_compare():
    assert MODULES


@pytest.mark.parametrize("error", [2.3e-5, 1e-3])
def test_b03_rounding_of_another_processor_is_no_mistake(error, rng):
    """84 of 3072 entries of a float32 block differed by at most 2.3e-5 (cs336#49)."""
    task = get_task("layers.pre_norm_stack")
    expected = rng.standard_normal((4, 12, 64))
    got = expected.astype(np.float32)
    places = rng.choice(got.size, 84, replace=False)
    got.flat[places] += np.float32(error) * rng.choice([-1, 1], 84).astype(np.float32)
    said = difference(expected, got, task.tolerance, single=True)
    assert (said is None) == (error < 1e-4)


def test_b12_each_gradient_is_reported_by_itself():
    """One number for all says nothing of where the mistakes are (Andrew-Ng-notes#10)."""
    task = get_task("bptt.rnn_step_backward")

    def planted(*args):
        parts = dict(zip(task.options["parts"], task.reference(*args), strict=True))
        parts["dW_xh"] = 2 * parts["dW_xh"]
        parts["db_h"] = 4 * parts["db_h"]
        return tuple(parts.values())

    passed = {c.name: c.passed for c in judge(task, InProcess(planted), 0).criteria}
    assert passed == {
        "values": False,
        **{"dh_prev": True, "dx": True, "dW_hh": True, "dW_xh": False, "db_h": False},
    }


def test_b16_torch_seeds_decide_no_comparison():
    """Inputs come from NumPy's generator, whose stream is the same everywhere."""
    task = MODULES[0]
    one, other = (task.cases(np.random.default_rng(5)) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        for name, value in a.kwargs["state"].items():
            np.testing.assert_array_equal(value, b.kwargs["state"][name])
