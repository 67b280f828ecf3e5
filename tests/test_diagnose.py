"""A mistake is named if it explains the answers, and nothing is named that was not made."""

import numpy as np
import pytest
from fixtures_exercises import ASSIGNMENT, TASKS
from fixtures_exercises import values as smoothing

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted
from seqlib.judge.matrix import kill_matrix
from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply

SMOOTH = TASKS["values"]


def diagnosis_of(function, task=SMOOTH, seed=1):
    return judge(task, InProcess(function), seed).diagnosis


def mistake(name, function=None, **fields):
    return Misconception(name, f"{name} was done.", "p", "ours", function, **fields)


def make(variant, names, *, functions=(), cases=None, criteria=None, **fields):
    """Return a task on vectors whose reference is the variant without switches."""

    def draw(rng):
        return [Case((rng.standard_normal(n),), {}, f"{n} numbers") for n in (3, 5, 7)]

    return Task(
        id="toy.f",
        title="Toy",
        signature="(x)",
        equations=(),
        page="toy",
        reference=variant,
        variant=variant,
        cases=cases or draw,
        criteria=criteria or (Criterion("values", 4, "values"),),
        misconceptions=(
            *map(mistake, names),
            *(mistake(function.__name__, function) for function in functions),
        ),
        **fields,
    )


def linear(x, *, wrong=frozenset()):
    y = x if "no_two" in wrong else 2 * x
    y = y if "no_one" in wrong else y + 1
    return -y if "sign" in wrong else y


LINEAR = make(linear, ["no_two", "no_one", "sign"])


def test_one_mistake_in_another_style_is_named():
    found = diagnosis_of(lambda x: [v + 1.0 for v in x], LINEAR)
    assert (found.kind, found.names) == ("mistake", ("no_two",))
    assert found.says == ("no_two was done.",)
    assert found.pages == ("p",)


def test_two_mistakes_made_together_are_named():
    found = diagnosis_of(lambda x: -(x + 1), LINEAR)
    assert (found.kind, found.names) == ("mistake", ("no_two", "sign"))


def test_a_float32_answer_is_named_too():
    found = diagnosis_of(lambda x: x.astype(np.float32) + np.float32(1), LINEAR)
    assert found.names == ("no_two",)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 3 * x + 1,
        lambda x: 2 * x + 1.01,
        lambda x: x[::-1] * 2 + 1,
        lambda x: np.zeros_like(x),
        lambda x: np.full_like(x, np.nan),
        lambda x: np.abs(2 * x + 1),
        lambda x: x[:-1],
        lambda x: None,
        lambda x: 1 / 0,
    ],
)
def test_an_unknown_mistake_gets_no_name(function):
    assert diagnosis_of(function, LINEAR) is None


def test_a_right_answer_has_no_diagnosis():
    assert diagnosis_of(linear, LINEAR) is None


def test_a_mistake_beside_an_unknown_one_is_named_as_one_of_them():
    """In one part of the answer a known mistake, in the other something else."""
    task = TASKS["backward"]

    def student(dy, x, w):
        return x * (dy @ w.T), 1.5 * (x * x).T @ dy

    found = diagnosis_of(student, task)
    assert (found.kind, found.names) == ("partial", ("no_two",))
    lines = judge(task, InProcess(student), 1).lines()
    assert lines[-1] == (
        "One mistake, beside another one: The derivative of x * x is taken as x. "
        "See squares.html"
    )


def test_mistakes_in_different_parts_are_both_named():
    task = TASKS["backward"]
    found = diagnosis_of(lambda dy, x, w: (x * (dy @ w.T), x.T @ dy), task)
    assert (found.kind, found.names) == ("mistake", ("no_two", "not_squared"))
    lines = judge(task, InProcess(lambda dy, x, w: (x * (dy @ w.T), x.T @ dy)), 1).lines()
    assert lines[-3:] == [
        "Likely these 2 mistakes together:",
        "  - The derivative of x * x is taken as x. See squares.html",
        "  - dw is made from x itself. See squares.html",
    ]


def two_parts(x, *, wrong=frozenset()):
    first, second = (x, 3 * x) if "no_two" in wrong else (2 * x, 3 * x)
    if "exchanged" in wrong:
        return second, first
    return (first,) if "one_part" in wrong else (first, second)


TWO_PARTS = make(two_parts, ["no_two", "one_part", "exchanged"])


def test_a_missing_part_is_a_difference_too():
    found = diagnosis_of(lambda x: [2 * x], TWO_PARTS)
    assert (found.kind, found.names) == ("mistake", ("one_part",))
    found = diagnosis_of(lambda x: [x], TWO_PARTS)
    assert (found.kind, found.names) == ("mistake", ("no_two", "one_part"))
    assert diagnosis_of(lambda x: [5 * x], TWO_PARTS) is None


def test_an_answer_with_a_part_too_many_is_not_explained_completely():
    found = diagnosis_of(lambda x: (x, 3 * x, x), TWO_PARTS)
    assert (found.kind, found.names) == ("partial", ("no_two",))


def parts(x, *, wrong=frozenset()):
    a, b, c = x + 1, x + 2, x + 3
    if wrong & {"minus", "minus_all"}:
        a = -a
    if wrong & {"half", "minus_all"}:
        b = b / 2 if "half" in wrong else -b
    return a, b, c


def unknown_third(*names):
    """Make these mistakes, and an unknown one in the third part."""
    return lambda x: (*parts(x, wrong=set(names))[:2], 7 * x)


def test_mistakes_beside_an_unknown_one_are_named_if_they_do_not_overlap():
    task = make(parts, ["minus", "half"])
    found = diagnosis_of(unknown_third("minus", "half"), task)
    assert (found.kind, found.names) == ("partial", ("minus", "half"))


def test_a_mistake_that_explains_less_is_not_named_beside_another():
    task = make(parts, ["minus", "minus_all"])
    found = diagnosis_of(unknown_third("minus_all"), task)
    assert (found.kind, found.names) == ("partial", ("minus_all",))


def test_mistakes_that_overlap_beside_an_unknown_one_are_not_named():
    def variant(x, *, wrong=frozenset()):
        sign = -1 if wrong & {"sign", "other_sign"} else 1
        return sign * x, 2 * x, 3 * x

    task = make(variant, ["sign", "other_sign"])
    assert diagnosis_of(lambda x: (-x, 2 * x, 7 * x), task) is None


def test_a_mistake_that_is_hardly_larger_than_the_tolerance_is_not_seen():
    """An answer half way is right, and equal to the mistake within the same tolerance."""

    def variant(x, *, wrong=frozenset()):
        near = 1.5e-7 if "near" in wrong else 0.0
        return x * (1 + near), 2 * x

    task = make(variant, ["near"])
    student = lambda x: (x * (1 + 0.8e-7), 5 * x)  # noqa: E731
    assert diagnosis_of(student, task) is None


def test_zeros_are_no_two_mistakes_together():
    """The two give zeros for every input, and so does an answer that is not there."""

    def variant(x, *, wrong=frozenset()):
        y = 0 * x if "no_input" in wrong else x
        return y if "no_one" in wrong else y + 1

    def in_two_parts(x, *, wrong=frozenset()):
        return variant(x, wrong=wrong), 2 * x

    names = ["no_input", "no_one"]
    assert diagnosis_of(np.zeros_like, make(variant, names)) is None
    student = lambda x: (np.zeros_like(x), 2 * x)  # noqa: E731
    assert diagnosis_of(student, make(in_two_parts, names)) is None


def test_a_truth_value_proves_nothing_beside_an_unknown_mistake():
    """Where two answers are wrong they are the same, whatever was done."""

    def variant(x, *, wrong=frozenset()):
        return (len(x) != 5) != ("short" in wrong and len(x) < 6)

    task = make(variant, ["short"])
    assert diagnosis_of(lambda x: variant(x, wrong={"short"}), task).names == ("short",)
    assert diagnosis_of(lambda x: not variant(x), task) is None


def test_functions_take_no_part_in_pairs():
    def wrong_shape(x):
        return linear(x)[:-1]

    task = make(linear, ["no_two", "sign"], functions=(wrong_shape,))
    assert pairs_of(task) == [("no_two", "sign")]
    assert diagnosis_of(lambda x: linear(x)[:-1], task).names == ("wrong_shape",)
    assert diagnosis_of(lambda x: -linear(x)[:-1], task) is None


def test_mistakes_that_these_inputs_cannot_tell_apart_are_named_as_a_group():
    def shifted(x, *, wrong=frozenset()):
        shift = 0.0 if wrong & {"no_mean", "no_bias"} else 1.0
        return x + shift

    task = make(shifted, ["no_mean", "no_bias"])
    found = diagnosis_of(lambda x: x, task)
    assert (found.kind, found.names) == ("either", ("no_mean", "no_bias"))
    assert "One of these mistakes:" in judge(task, InProcess(lambda x: x), 1).lines()


def test_too_large_a_group_is_not_named():
    def shifted(x, *, wrong=frozenset()):
        return x if wrong else x + 1

    assert diagnosis_of(lambda x: x, make(shifted, list("abcd"))) is None


def test_of_several_fitting_pairs_the_common_mistake_is_named():
    def variant(x, *, wrong=frozenset()):
        y = x if "no_two" in wrong else 2 * x
        return -y if wrong & {"sign", "also_sign"} and "no_two" in wrong else y

    task = make(variant, ["no_two", "sign", "also_sign"])
    found = diagnosis_of(lambda x: -x, task)
    assert (found.kind, found.names) == ("partial", ("no_two",))


def with_edge(variant, names):
    """Return a task with one case whose output may be NaN throughout."""

    def draw(rng):
        return [
            Case((rng.standard_normal(5),), {}, "5 numbers"),
            Case((np.zeros(3),), {}, "zeros", "zeros"),
        ]

    criteria = (Criterion("values", 3, "values"), Criterion("zeros", 1, "zeros", tag="zeros"))
    return make(variant, names, cases=draw, criteria=criteria)


def normalised(x, *, wrong=frozenset()):
    with np.errstate(all="ignore"):
        y = x / np.abs(x).sum()
    return y if "nan" in wrong else np.nan_to_num(y)


def test_a_match_of_nan_alone_proves_nothing():
    """All NaN fits 'NaN for zeros' where that mistake shows, but is no sign of it."""
    task = with_edge(normalised, ["nan"])
    assert diagnosis_of(lambda x: normalised(x, wrong={"nan"}), task).names == ("nan",)
    assert diagnosis_of(lambda x: np.full_like(x, np.nan), task) is None


def test_an_error_counts_as_the_same_only_with_the_same_words():
    def fragile(x, *, wrong=frozenset()):
        if "fragile" in wrong and not x.any():
            raise ValueError("the sum must not be 0")
        return normalised(x)

    def other(x):
        if not x.any():
            raise ValueError("negative dimensions")
        return normalised(x)

    task = with_edge(fragile, ["fragile"])
    assert diagnosis_of(lambda x: fragile(x, wrong={"fragile"}), task).names == ("fragile",)
    assert diagnosis_of(other, task) is None


def test_a_right_answer_within_the_tolerance_of_a_mistake_is_not_misnamed():
    """A mistake smaller than float32 rounding costs nothing, so it is no mistake's name."""

    def tiny(x, *, wrong=frozenset()):
        y = 2 * x * (1 + 1e-4 * ("tiny" in wrong))
        return y[::-1] if "reversed" in wrong else y

    task = make(tiny, ["tiny", "reversed"])
    assert diagnosis_of(lambda x: tiny(x, wrong={"tiny"}), task) is None
    found = diagnosis_of(lambda x: (2 * x[::-1]).astype(np.float32), task)
    assert (found.kind, found.names) == ("mistake", ("reversed",))


def test_an_input_without_an_answer_leaves_a_mistake_beside_an_unknown_one():
    """A loop that does not end on some inputs is no part of the mistake that is named."""

    class Slow(InProcess):
        def perform(self, request):
            if len(request["args"][0]) in (5, 7):
                return Reply(fault="timeout")
            return super().perform(request)

        def fresh(self):
            return self

    def draw(rng):
        sizes = {3: "base", 5: "slow", 7: "slow"}
        return [Case((rng.standard_normal(n),), {}, "", tag) for n, tag in sizes.items()]

    criteria = (Criterion("values", 1, "values"), Criterion("slow", 1, "slow", tag="slow"))
    task = make(linear, ["sign"], cases=draw, criteria=criteria)
    found = judge(task, Slow(lambda x: -linear(x)), 1).diagnosis
    assert (found.kind, found.names) == ("partial", ("sign",))
    assert judge(task, Slow(lambda x: 5 * x), 1).diagnosis is None


def test_unsteady_answers_are_not_diagnosed():
    """The first answers fit a mistake, the repeated ones do not."""
    seen = {}

    def unsteady(x):
        seen[x.tobytes()] = seen.get(x.tobytes(), 0) + 1
        return linear(x, wrong={"sign"}) * seen[x.tobytes()]

    assert diagnosis_of(unsteady, LINEAR) is None


def test_a_mistake_with_right_values_is_found_by_what_it_loses():
    """Values, dtype and properties together single out a mistake."""
    found = diagnosis_of(smoothing.in_place)
    assert (found.kind, found.names) == ("mistake", ("in_place",))
    found = diagnosis_of(lambda x, *, width: smoothing.variant(x, width=width).astype(float))
    assert (found.kind, found.names) == ("mistake", ("double",))

    def both(x, *, width):
        return smoothing.in_place(x, width=width).astype(float)

    assert diagnosis_of(both).kind == "property"


def test_the_property_that_fails_is_named_if_no_mistake_fits():
    def looks_far(x, *, width):
        return x + x.mean(axis=1, keepdims=True)

    found = diagnosis_of(looks_far)
    assert (found.kind, found.names) == ("property", ("causal",))
    assert found.pages == ("smoothing",)
    lines = judge(SMOOTH, InProcess(looks_far), 1).lines()
    assert lines[-1] == "What does not hold: no look ahead. See smoothing.html"


def test_a_property_that_could_not_be_tried_is_not_named():
    assert diagnosis_of(lambda x, *, width: None) is None
    assert diagnosis_of(lambda x, *, width: 1 / 0) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_diagnosis_follows_from_the_seed(seed):
    def student(x, *, width):
        return smoothing.variant(x, width=width, wrong={"sum"})

    assert diagnosis_of(student, seed=seed) == diagnosis_of(student, seed=seed)


DISTORTIONS = {
    "scaled": lambda y: 1.01 * y,
    "shifted": lambda y: y + 0.01,
    "rolled": lambda y: np.roll(y, 1),
    "rounded": lambda y: np.round(y, 1),
    "squared": lambda y: y**2,
    "one_entry": lambda y: np.where(np.arange(y.size).reshape(y.shape) == 0, y + 1, y),
    "transposed": lambda y: y.T,
    "infinite": lambda y: y * np.inf,
}


@pytest.mark.parametrize("distortion", DISTORTIONS)
@pytest.mark.parametrize("kind", ["values", "backward"])
def test_a_distorted_answer_is_never_given_a_name(kind, distortion):
    task = TASKS[kind]

    def student(*args, **kwargs):
        with np.errstate(all="ignore"):
            value = task.reference(*args, **kwargs)
            parts = value if isinstance(value, tuple) else (value,)
            parts = tuple(map(DISTORTIONS[distortion], parts))
            return parts if isinstance(value, tuple) else parts[0]

    found = diagnosis_of(student, task)
    assert found is None or found.kind == "property"


# The kill matrix

MATRIX = kill_matrix(ASSIGNMENT, pairs=4)


def test_every_mistake_is_killed_and_named_as_itself():
    singles = [row for row in MATRIX if len(row.made) == 1]
    assert len(singles) == sum(len(task.misconceptions) for task in ASSIGNMENT.tasks)
    for row in singles:
        assert not row.survives, row
        assert row.lost, row
        assert row.named_as_itself, row


def test_pairs_are_sampled_and_never_named_as_another():
    pairs = [row for row in MATRIX if len(row.made) == 2]
    assert {row.task for row in pairs} >= {"fixtures.smooth", "fixtures.Gain"}
    assert not any(row.named_as_another for row in pairs)
    assert kill_matrix(ASSIGNMENT, pairs=4) == MATRIX


def test_the_matrix_shows_a_survivor_and_a_false_name():
    """The matrix is able to fail."""

    def harmless(x):
        return linear(x)

    def no_two_again(x):
        return linear(x, wrong={"no_two"})

    task = make(linear, ["no_two"], functions=(harmless, no_two_again))
    rows = {row.made[0]: row for row in kill_matrix(type(ASSIGNMENT)("toy", "Toy", (task,)))}
    assert rows["harmless"].survives
    assert not rows["no_two"].survives
    assert not rows["no_two"].named_as_itself
    assert rows["no_two"].kind == "either"


def test_the_cost_is_bounded_by_early_exits():
    """Each of 20 mistakes and 190 pairs is ruled out by its first case."""
    calls = []

    def counting(x, *, wrong=frozenset()):
        calls.append(wrong)
        return x + sum(2.0 ** int(name[1:]) for name in wrong)

    task = make(counting, [f"s{i}" for i in range(20)])
    judge(task, Trusted(lambda x: x**2), 0)
    reference_calls = 3
    assert len(calls) == reference_calls + 20 + 190
    assert function_of(task, "s1", "s2")(1.0) == 1 + 2 + 4


def rare(x, *, wrong=frozenset()):
    """Return 2 x; each mistake shows where x has as many numbers as its name says."""
    return 2 * x + sum(1.0 for name in wrong if len(x) == int(name[1:]))


@pytest.mark.parametrize("student", [lambda x: 3 * x, lambda x: 2 * x + (len(x) == 7)])
def test_an_input_that_ruled_a_mistake_out_is_tried_first_the_next_time(student):
    """The diagnosis stays; the right input rules each of the nine mistakes out at once."""
    calls = []

    def counting(x, *, wrong=frozenset()):
        calls.append(len(x))
        return rare(x, wrong=wrong)

    def cases(rng):
        return [Case((rng.standard_normal(n),)) for n in range(1, 11)]

    names = [f"n{n}" for n in range(1, 11) if n != 7]
    task = make(counting, names, cases=cases)
    found, counts = [], []
    for seed in (0, 1):
        calls.clear()
        found.append(judge(task, Trusted(student), seed).diagnosis)
        counts.append(len(calls) - 10)  # less those of the reference
    assert found == [None, None]
    pairs = 9 * 8 // 2
    assert counts[1] == len(names) + pairs <= counts[0]
