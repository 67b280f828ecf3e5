"""Criteria, points and messages, and that no code can talk its way to a point."""

import json
import warnings

import numpy as np
import pytest
from fixtures_exercises import TASKS
from fixtures_exercises import values as smoothing

from seqlib.exercises import get_task
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted
from seqlib.judge.result import TaskResult, address, number
from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply

SMOOTH = TASKS["values"]


def right(x, *, width):
    return smoothing.reference(x, width=width)


def changed(task=SMOOTH, **fields):
    return Task(**{**vars(task), **fields})


def result_of(function, task=SMOOTH, seed=3):
    return judge(task, InProcess(function), seed)


def message(result, name="values"):
    return next(c.message for c in result.criteria if c.name == name)


def passed(result):
    return {c.name for c in result.criteria if c.passed}


# Points


def test_a_right_answer_gets_everything_and_says_little():
    result = result_of(right)
    assert result.lines() == [
        "fixtures.smooth: 8 of 8 points",
        "[ok] 4 of 4  means",
        "[ok] 1 of 1  float32 stays float32",
        "[ok] 2 of 2  no look ahead",
        "[ok] 1 of 1  x is not modified",
    ]


def test_a_wrong_answer_is_explained_with_a_link():
    result = result_of(lambda x, *, width: smoothing.variant(x, width=width, wrong={"sum"}))
    lines = result.lines()
    assert lines[0] == "fixtures.smooth: 0 of 8 points"
    assert lines[1].startswith(
        "[--] 0 of 4  means: entry [0, 1, 0] (batch row 0, time step 1, feature 0) of the "
        "answer is "
    )
    assert lines[1].endswith(
        ", which is wrong (100 of 110 entries). Input: x of shape (5, 11, 2), width 3 "
        "(2 of 3 inputs fail)"
    )
    assert lines[3] == "[--] 0 of 2  no look ahead: counts only together with: means"
    assert lines[-1] == (
        "Likely mistake: The steps are added, not averaged. See smoothing.html#mean"
    )
    assert lines[:-1] == result.lines(diagnosis=False)


def test_the_link_leads_to_the_site_that_is_set(monkeypatch):
    assert address("smoothing") == "smoothing.html"
    monkeypatch.setenv("SEQLIB_BOOK", "https://example.org/course/")
    assert address("smoothing#mean") == "https://example.org/course/smoothing.html#mean"


def test_points_are_written_without_trailing_zeros():
    assert [number(p) for p in (0.0, 2.0, 2.5, 0.25, 10.0)] == ["0", "2", "2.5", "0.25", "10"]


def test_a_criterion_pays_only_with_what_it_needs():
    """Needs reach through: the last one needs the first through the second."""
    criteria = (
        Criterion("values", 4, "means"),
        Criterion("free", 1, "always", holds=lambda call, rng: None, needs=()),
        Criterion("second", 1, "second", holds=lambda call, rng: None),
        Criterion("third", 1, "third", holds=lambda call, rng: None, needs=("second",)),
    )
    task = changed(criteria=criteria)
    assert passed(result_of(lambda x, *, width: x, task)) == {"free"}
    assert message(result_of(lambda x, *, width: x, task), "third") == (
        "counts only together with: means"
    )
    assert result_of(right, task).score == 7.0


def test_the_score_is_a_plain_float_and_never_more_than_the_points():
    tenths = tuple(Criterion(name, 0.1, "part", needs=()) for name in ("values", *"abcdefghi"))
    result = result_of(right, changed(criteria=tenths))
    assert type(result.score) is float
    assert result.score == 1.0 == result.points
    empty = result_of(right, changed(criteria=(Criterion("values", 0, "nothing"),)))
    assert (empty.score, empty.points) == (0.0, 0.0)


def test_a_criterion_without_a_case_is_an_error_of_the_record():
    task = changed(criteria=(Criterion("values", 1, "means", tag="absent"),))
    with pytest.raises(ValueError, match=r"fixtures\.smooth: no case has the tag 'absent'"):
        result_of(right, task)


def test_a_part_that_is_missing_is_named():
    task = TASKS["text"]
    result = judge(task, InProcess(lambda text: (task.reference(text)[0],)), 1)
    assert passed(result) == {"values"}
    assert message(result, "counts").startswith("the table is missing")


# Messages when there is no answer


def boom(x, *, width):
    raise ValueError("bad\nwidth")


def stub(x, *, width):
    raise NotImplementedError


def odd(x, *, width):
    if x.shape[1] == 11:
        raise IndexError("out of range")
    return right(x, width=width)


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        (boom, "the code raised ValueError: bad width (line "),
        (stub, "not written yet: the line that raises NotImplementedError is still there."),
        (odd, "the code raised IndexError: out of range (line"),
        (lambda x, *, width: None, "the answer is None; is a return statement missing?"),
        (lambda x, *, width: (y for y in x), "is or contains a generator that has not run"),
        (lambda x, *, width: [x, {1}], "is or contains a set; return a sorted list"),
        (lambda x: x, "the code raised TypeError: "),
        (
            lambda x, *, width: (_ for _ in ()).throw(SystemExit(3)),
            "the code raised SystemExit: 3",
        ),
    ],
)
def test_no_answer_is_explained(function, phrase):
    result = result_of(function)
    assert result.score == 0
    assert phrase in message(result)


def test_one_input_without_an_answer_does_not_cost_the_others():
    assert "(1 of 3 inputs fail)" in message(result_of(odd))
    free = tuple(
        Criterion(c.name, c.points, c.says, c.tag, c.part, c.holds, (), c.dtype)
        for c in SMOOTH.criteria
    )
    assert passed(result_of(odd, changed(criteria=free))) >= {"dtype", "causal"}


class Scripted:
    """A subject that replies with one fault, and counts what it is asked."""

    def __init__(self, fault, error=None):
        self.reply = Reply(fault=fault, error=error)
        self.asked = 0

    def perform(self, request):
        self.asked += 1
        return self.reply

    def fresh(self):
        return self

    def close(self):
        pass


@pytest.mark.parametrize(
    ("fault", "asked", "phrase"),
    [
        ("interrupted", 1, "KeyboardInterrupt"),
        ("timeout", 3, "no answer within 5 s; is there a loop that does not end?"),
        ("crash", 3, "the process ended"),
        ("memory", 3, "the process ended"),
    ],
)
def test_hopeless_code_is_not_asked_again_and_again(fault, asked, phrase):
    error = {"interrupted": "KeyboardInterrupt", "timeout": None}.get(
        fault, "the process ended"
    )
    subject = Scripted(fault, error)
    result = judge(SMOOTH, subject, 0)
    assert result.score == 0
    assert subject.asked <= asked
    said = " ".join(c.message for c in result.criteria)
    assert phrase in said
    assert "not run" in said
    assert result.diagnosis is None


def test_an_endless_loop_on_special_inputs_costs_these_inputs_alone():
    class Slow(InProcess):
        def perform(self, request):
            if request["args"][0].dtype == np.float32:
                return Reply(fault="timeout")
            return super().perform(request)

        def fresh(self):
            return self

    result = judge(SMOOTH, Slow(right), 0)
    assert passed(result) == {"values", "causal", "inputs_unmodified"}


# The order of calls


def test_cases_come_in_an_order_that_follows_from_the_seed():
    def orders(seed):
        seen = []

        def spy(x, *, width):
            seen.append((x.shape, width, x.sum()))
            return right(x, width=width)

        assert result_of(spy, seed=seed).score == 8
        return seen

    assert orders(1) == orders(1)
    assert [s[:2] for s in orders(1)] != [s[:2] for s in orders(2)]
    # Some inputs come twice, and the number of calls is not always the same.
    assert len({s[2] for s in orders(1)}) < len(orders(1))
    assert len({len(orders(seed)) for seed in range(6)}) > 1


def test_an_answer_that_depends_on_the_number_of_calls_is_found():
    calls = []

    def tires(x, *, width):
        calls.append(1)
        return right(x, width=width) if len(calls) < 6 else np.zeros_like(x)

    result = result_of(tires)
    assert result.score < 8
    assert result.diagnosis is None


def test_an_answer_remembered_by_shape_is_found():
    memory = {}

    def remembers(x, *, width):
        return memory.setdefault((x.shape, width), right(x, width=width))

    assert all(
        result_of(remembers, seed=s).score == 0 for s in range(3) if memory.clear() is None
    )


def test_nondeterminism_is_reported_as_such():
    rng = np.random.default_rng(0)

    def noisy(x, *, width):
        return right(x, width=width) + 1e-3 * rng.standard_normal()

    assert message(result_of(noisy)).startswith(
        "two calls with the same input gave different answers: "
        "the function must depend on its arguments alone. Input: "
    )


def test_repeated_calls_that_are_left_out_cost_nothing():
    """One special input ends the process each time; the others are right as they were."""

    class Crashing(InProcess):
        def perform(self, request):
            if request["args"][0].dtype == np.float32:
                return Reply(fault="crash", error="the process ended")
            return super().perform(request)

        def fresh(self):
            return self

    for seed in range(10):
        result = judge(changed(criteria=SMOOTH.criteria[:2]), Crashing(right), seed)
        assert passed(result) == {"values"}, result.lines()


def test_a_repeated_call_without_an_answer_is_no_contradiction():
    class Tired(InProcess):
        """Too slow in a fresh copy, on a busy machine say."""

        def fresh(self):
            return Scripted("timeout")

    result = judge(SMOOTH, Tired(right), 0)
    assert result.score < 8
    said = " ".join(c.message for c in result.criteria)
    assert "no answer within 5 s" in said
    assert "different answers" not in said


def test_calls_in_a_fresh_copy_are_compared_too():
    class Stale(InProcess):
        """The function works only in a state that a fresh copy lacks."""

        def fresh(self):
            return InProcess(lambda x, *, width: np.zeros_like(x))

    result = judge(SMOOTH, Stale(right), 0)
    assert result.score < 8
    assert "two calls with the same input gave different answers" in " ".join(
        c.message for c in result.criteria
    )


def test_a_fresh_copy_is_closed():
    closed = []

    class Counted(InProcess):
        def fresh(self):
            return Counted(right)

        def close(self):
            closed.append(self)

    subject = Counted(right)
    judge(SMOOTH, subject, 0)
    assert len(closed) == 1
    assert closed[0] is not subject


# Notes


def test_a_changed_argument_is_a_note_where_it_is_no_criterion():
    task = changed(criteria=SMOOTH.criteria[:1])
    result = result_of(smoothing.in_place, task)
    assert result.score == 4
    assert result.notes == ("the function changes its argument x in place, for its caller too",)
    assert result_of(smoothing.in_place).notes == ()
    assert passed(result_of(smoothing.in_place)) == {"values", "dtype", "causal"}


def test_warnings_cost_nothing_and_are_shown_beside_a_wrong_answer():
    def warned(x, *, width):
        warnings.warn("old style", DeprecationWarning, stacklevel=2)
        return right(x, width=width)

    def wrong(x, *, width):
        return np.log(np.zeros_like(x))

    assert (result_of(warned).score, result_of(warned).notes) == (8.0, ())
    assert result_of(wrong).notes == (
        "your code warned: RuntimeWarning: divide by zero encountered in log",
    )


# Records


def test_a_result_survives_json():
    for function in (right, boom, smoothing.in_place, lambda x, *, width: x):
        result = result_of(function)
        assert TaskResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_the_same_seed_gives_the_same_result_for_any_subject():
    for function in (right, lambda x, *, width: x + 1):
        results = [judge(SMOOTH, subject(function), 5) for subject in (InProcess, Trusted)]
        assert results[0] == results[1]


# Code that cheats


class Yes(np.ndarray):
    """Equal to everything, close to everything, of every shape."""

    def __eq__(self, other):
        return np.ones(np.shape(other), bool).view(Yes)

    def __array_function__(self, *args, **kwargs):
        return True

    def __array_ufunc__(self, *args, **kwargs):
        return True

    __hash__ = None


def patches_numpy(x, *, width):
    for name in ("allclose", "isclose", "array_equal", "all", "any"):
        setattr(np, name, lambda *args, **kwargs: True)
    return np.zeros_like(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, *, width: x.view(Yes),
        patches_numpy,
        lambda x, *, width: np.broadcast_to(np.float64(0), x.shape),
        lambda x, *, width: np.full(x.shape, np.nan),
        lambda x, *, width: np.full(x.shape, np.inf),
        lambda x, *, width: {"score": 8.0, "passed": True},
        lambda x, *, width: 10**5000,
        lambda x, *, width: np.broadcast_to(0.0, (10**6, 10**6)),
        lambda x, *, width: print("[ok] 8 of 8 points" * 10**5),
        lambda x, *, width: "\x1b[2J",
        lambda x, *, width: x[..., None].repeat(3, -1),
        lambda x, *, width: Criterion("values", 8, "", holds=lambda call, rng: None),
    ],
)
def test_no_trick_earns_a_point(function, monkeypatch):
    for name in ("allclose", "isclose", "array_equal", "all", "any"):
        monkeypatch.setattr(np, name, getattr(np, name))  # put back what the code patches
    assert result_of(function).score == 0


def test_a_view_of_the_input_is_judged_by_its_values():
    task = changed(
        reference=lambda x, *, width: x[:, ::-1],
        criteria=SMOOTH.criteria[:1],
        variant=None,
        misconceptions=(),
    )
    assert result_of(lambda x, *, width: x[:, ::-1], task).score == 4


def test_what_a_call_changes_does_not_reach_the_reference():
    def spoils(x, *, width):
        y = right(x, width=width)
        x[:] = 7
        return y

    task = changed(criteria=SMOOTH.criteria[:2])
    assert result_of(spoils, task).score == 5


def test_a_property_survives_any_answer():
    for value in (
        None,
        {},
        "text",
        3,
        [],
        [[1], [2, 3]],
        {"a": [1]},
        (1, (2,)),
        np.zeros((0, 4)),
    ):
        result = result_of(lambda x, *, width, value=value: value)
        assert result.score == 0
        assert all(c.message for c in result.criteria)


def test_messages_are_one_line_each():
    def noisy(x, *, width):
        raise ValueError("a\nb\r\x1b[31m\x00" * 1000)

    for line in result_of(noisy).lines():
        assert line.isprintable()
        assert len(line) < 700


def test_names_of_arguments_come_from_the_signature():
    def shifts(a, b=2, *, c):
        b += 1
        c += 1
        return a

    task = Task(
        id="x.f",
        title="",
        signature="(a, b=(1, 2), *, c) -> y, z",
        equations=(),
        page="p",
        reference=lambda a, b, *, c: a,
        cases=lambda rng: [Case((1.0, np.ones(2)), {"c": np.ones(1)})],
        criteria=(Criterion("values", 1, "values"),),
        misconceptions=(Misconception("m", "M.", "p", "ours", lambda a, b, *, c: a + 1),),
    )
    notes = judge(task, InProcess(shifts), 0).notes
    assert [note.split("argument ")[1].split()[0] for note in notes] == ["b", "c"]


def test_single_precision_inside_a_double_answer_costs_nothing():
    """float32 divided by np.sqrt(d) is float64, with the errors of float32."""
    task = get_task("attention.scaled_dot_product_attention")

    def attention(Q, K, V, M=None):
        Q, K, V = (a.astype(np.float32) for a in (Q, K, V))
        scores = (Q @ K.swapaxes(-1, -2)) / np.sqrt(Q.shape[-1])
        scores = scores if M is None else scores + M
        largest = scores.max(axis=-1, keepdims=True)
        e = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
        total = e.sum(axis=-1, keepdims=True)
        a = e / np.where(total == 0, 1, total)
        return a @ V, a

    assert attention(np.ones((1, 2)), np.ones((3, 2)), np.ones((3, 2)))[0].dtype == np.float64
    for seed in range(5):
        result = judge(task, InProcess(attention), seed)
        assert result.score == task.points, result.lines()
