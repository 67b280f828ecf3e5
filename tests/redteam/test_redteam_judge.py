"""Attacks on the judge itself: answers that are no answers, and answers made to cost it."""

import dataclasses
import itertools
import json
import math
import time
import tracemalloc

import numpy as np
import pytest
from fixtures_exercises import TASKS

import seqlib.np
from seqlib.exercises import get_assignment
from seqlib.exercises.properties import batch_independent, causal_in, gradient_matches
from seqlib.exercises.record import Case, Criterion, Task, Tolerance
from seqlib.judge.compare import difference
from seqlib.judge.judge import judge
from seqlib.judge.part import MISSING, part_of
from seqlib.judge.run import Caller
from seqlib.judge.seeds import generator, local_seed
from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply

ATTENTION = {task.function: task for task in get_assignment("attention").tasks}
TOLERANCE = Tolerance()


def score(function, name, seed=3):
    return judge(ATTENTION[name], InProcess(function), seed).score


def simple(criteria, reference=lambda x: 2 * x):
    return Task(
        id="red.double",
        title="Doubling",
        signature="(x)",
        equations=(),
        page="",
        reference=reference,
        cases=lambda rng: [Case((rng.standard_normal((3, 3)),)) for _ in range(3)],
        criteria=(Criterion("values", 1.0, "the values"), *criteria),
    )


# Answers that cost the judge memory or time


@pytest.mark.parametrize("expected", [(np.zeros(3), np.zeros(3)), np.zeros(3)])
def test_an_array_without_bytes_and_with_two_billion_parts(expected):
    huge = np.empty((2**31 - 1, 0))
    tracemalloc.start()
    assert difference(expected, huge, TOLERANCE) is not None
    assert part_of(huge, 2**31) is MISSING
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "first", [2**70, 2**2000, 1j, {1: [2]}], ids=["2^70", "2^2000", "imaginary", "a dict"]
)
@pytest.mark.parametrize("name", ["split_heads", "count_parameters"])
def test_another_answer_each_time_costs_the_points_and_not_the_judge(first, name):
    seen = set()

    def function(*args, **kwargs):
        key = repr((args, kwargs))
        if key in seen:
            return np.zeros(3)
        seen.add(key)
        return first

    assert score(function, name) == 0


STRANGE = (
    *(None, True, 0, 1.5, 2**63, 2**70, 2**2000, "x", b"b", float("nan"), [], (), {}),
    *([2**70, 1], [[1], [2, 3]], {(1, 2): [3]}, {"a": {"b": [np.zeros(2)]}}),
    *(
        np.zeros((3, 0)),
        np.zeros((2**31, 0)),
        np.array(1j),
        np.ones(3, bool),
        np.ones((1,) * 32),
    ),
    *(np.array([2**64 - 1], np.uint64), np.full(3, np.inf), np.array(1, np.float16)),
)
CHANGES = (
    *(lambda x: x[..., None], np.transpose, np.ndarray.tolist, np.ravel, lambda x: x[..., :0]),
    *(
        lambda x: x.astype(complex),
        lambda x: x.astype(np.float16),
        lambda x: x.astype(np.uint8),
    ),
    *(lambda x: x * np.nan, lambda x: x > 0, lambda x: [x], lambda x: np.stack([x, x])),
)


def spoilt(value, rng):
    """Return an answer with one part of it, or the whole, replaced by something strange."""
    if rng.random() < 0.25:
        return STRANGE[rng.integers(len(STRANGE))]
    if isinstance(value, np.ndarray):
        return CHANGES[rng.integers(len(CHANGES))](value)
    if isinstance(value, dict) and value:
        key = list(value)[rng.integers(len(value))]
        return value | {key: spoilt(value[key], rng)}
    if isinstance(value, list | tuple) and value:
        at = rng.integers(len(value))
        return type(value)([*value[:at], spoilt(value[at], rng), *value[at + 1 :]])
    return STRANGE[rng.integers(len(STRANGE))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["rnn", "bptt", "gates", "attention", "masks", "tokens", "layers"]
)
def test_answers_that_are_spoilt_now_and_then_never_end_the_judge(name):
    rng = np.random.default_rng(0)
    for task in get_assignment(name).tasks:
        for rate in (0.3, 1.0):

            def function(*args, _task=task, _rate=rate, **kwargs):
                value = _task.reference(*args, **kwargs)
                return spoilt(value, rng) if rng.random() < _rate else value

            result = judge(dataclasses.replace(task, shortcuts=()), InProcess(function), 5)
            assert 0 <= result.score <= task.points
            assert result.lines()
            json.dumps(result.to_dict())


@pytest.mark.parametrize(
    ("name", "says"), [("causal", "have shape"), ("dropout", "after train() the logits have")]
)
def test_logits_of_any_shape_are_not_spread_over_each_other(name, says):
    """Of shapes (n, 1) and (1, n) a difference would have n ** 2 numbers."""
    task = {task.function: task for task in get_assignment("decoder").tasks}["LanguageModel"]
    holds = next(c.holds for c in task.criteria if c.name == name)
    shapes = itertools.cycle([(20_000, 1), (1, 20_000)])
    call = Caller(lambda case: Reply(value={"output": np.ones(next(shapes))}))
    tracemalloc.start()
    assert says in holds(call, np.random.default_rng(0))
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_parts_of_an_array_count_as_parts():
    assert difference((2, 3.0), np.array([2, 3]), TOLERANCE) is None
    assert difference((np.ones(2), np.zeros(2)), np.array([[1, 1], [0, 0]]), TOLERANCE) is None
    assert difference((2, 3), np.array([2, 4]), TOLERANCE) is not None


LARGE = {
    "a list": [0.5] * 45_000,
    "lists in a list": [[0.5]] * 24_000,
    "a ragged list": [[0.5]] * 24_000 + [[0.5, 0.5]],
    "an array of 16 MB": np.zeros(2_000_000),
    "a text of 3 million characters": "x" * 3_000_000,
    "a dict": dict.fromkeys(range(24_000), 0.5),
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_a_huge_answer_costs_the_judge_little(value):
    """Comparing it with every known mistake and every pair of them took minutes."""
    began = time.process_time()
    result = judge(
        ATTENTION["scaled_dot_product_attention"], InProcess(lambda *_: (value, value)), 3
    )
    assert result.score == 0
    assert "the answer is far larger than a right one" in result.criteria[0].message
    assert time.process_time() - began < 10


def test_a_right_answer_in_nested_lists_is_not_too_large():
    task = simple((), lambda x: np.tile(2 * x, (20, 20)))
    function = lambda x: np.tile(2 * x, (20, 20)).tolist()  # noqa: E731
    assert judge(task, InProcess(function), 0).score == 1.0


# Answers that made the judge itself fail

STRANGE = {
    "an integer of 400 digits": 10**400,
    "a list of them": [[10**400] * 3] * 3,
    "a dict of them": {"x": 10**400},
    "a key of 1200 digits": {10**1200: 1},
    "texts": [["a"] * 3] * 3,
    "nothing": None,
    "empty": [],
    "inf and nan": np.array([[np.inf, np.nan, -np.inf]] * 3),
    "largest numbers": np.full((3, 3), np.finfo(float).max),
    "complex": np.full((3, 3), 1j),
    "half": np.ones((3, 3), np.float16),
    "bytes": b"x",
    "zero-dimensional": np.array(1.0),
    "without entries": np.empty((3, 0)),
    "many axes": np.zeros((1,) * 30),
}
PROPERTIES = {
    "causality": causal_in(lambda rng: [rng.standard_normal((3, 3))], axis=0),
    "independence": batch_independent(lambda rng: [rng.standard_normal((3, 3))]),
    "gradient": gradient_matches(
        lambda x: x**2, lambda rng: [rng.standard_normal((3, 3))], varied=(0,)
    ),
    "part": causal_in(lambda rng: [rng.standard_normal((3, 3))], axis=0, part=1),
}


@pytest.mark.parametrize("value", STRANGE.values(), ids=STRANGE)
def test_a_property_survives_every_answer(value):
    criteria = [Criterion(name, 1.0, name, holds=holds) for name, holds in PROPERTIES.items()]
    assert judge(simple(criteria), InProcess(lambda *_: value), 0).score == 0


@pytest.mark.parametrize("value", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("kind", TASKS)
def test_every_kind_of_task_survives_every_answer(kind, value):
    task = TASKS[kind]
    assert judge(task, InProcess(lambda *_, **__: value), 0).score == 0
    assert judge(task, InProcess(lambda *_, **__: lambda *_, **__: value), 0).score == 0


# Functions that the assignment grants, called in disguise


def disguises(granted):
    """Return ways to call a function without its name."""

    def by_default(x, f=granted):
        return f(x)

    class Holder:
        held = staticmethod(granted)

    import functools

    return {
        "closure": lambda x: granted(x),
        "default argument": by_default,
        "list": lambda x, held=(granted,): held[0](x),
        "partial": functools.partial(granted),
        "attribute": lambda x: Holder.held(x),
        "map": lambda x: next(iter(map(granted, [x]))),
        "__call__": granted.__call__,
        "reduce": lambda x: functools.reduce(lambda a, f: f(a), [granted], x),
    }


@pytest.mark.parametrize("way", disguises(seqlib.np.softmax))
def test_a_refused_function_is_refused_in_disguise(way):
    task = dataclasses.replace(
        simple((), seqlib.np.softmax), shortcuts=("seqlib.np.activation.softmax",)
    )
    function = disguises(seqlib.np.softmax)[way]
    result = judge(task, InProcess(function), 0)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message
    assert judge(dataclasses.replace(task, shortcuts=()), InProcess(function), 0).score == 1
    assert seqlib.np.softmax(np.zeros(2)).tolist() == [0.5, 0.5]


@pytest.mark.xfail(strict=True, reason="a function written in C has no code to replace")
def test_a_function_written_in_c_is_refused_in_disguise():
    task = dataclasses.replace(simple((), lambda x: math.fsum(x[0])), shortcuts=("math.fsum",))
    held = [math.fsum]
    assert judge(task, InProcess(lambda x: held[0](x[0])), 0).score == 0


def test_a_function_of_numpy_is_refused_in_disguise():
    reference = lambda x: np.sqrt((x * x).sum())  # noqa: E731
    task = dataclasses.replace(simple((), reference), shortcuts=("numpy.linalg.norm",))
    held = [np.linalg.norm]
    assert judge(task, InProcess(lambda x: held[0](x)), 0).score == 0
    assert held[0](np.array([3.0, 4.0])) == 5.0


# Answers that are not computed from the arguments

RIGHT = {name: task.reference for name, task in ATTENTION.items()}


def counting(right, pays):
    calls = []

    def function(*args, **kwargs):
        calls.append(1)
        return right(*args, **kwargs) if pays(len(calls)) else 0.0

    return function


COUNTS = {
    "only the first call": lambda n: n == 1,
    "every second call": lambda n: n % 2,
    "the first six": lambda n: n <= 6,
    "after the sixth": lambda n: n > 6,
}


@pytest.mark.parametrize("pays", COUNTS.values(), ids=COUNTS)
def test_an_answer_must_not_depend_on_the_number_of_calls(pays):
    scores = [
        score(counting(RIGHT["count_parameters"], pays), "count_parameters", seed)
        for seed in range(3)
    ]
    assert max(scores) < 5.0


def test_an_answer_remembered_from_the_first_input_earns_nothing():
    first = []

    def function(*args, **kwargs):
        if not first:
            first.append(RIGHT["scaled_dot_product_attention"](*args, **kwargs))
        return first[0]

    assert score(function, "scaled_dot_product_attention") == 0


def table_of(task, seed):
    """Return the answers to all inputs of one seed, by the bytes of the input."""
    return {
        key(case.args): task.reference(*case.args, **case.kwargs)
        for case in task.cases(generator(seed, "cases"))
    }


def key(args):
    return tuple(a.tobytes() if isinstance(a, np.ndarray) else a for a in args)


@pytest.mark.parametrize("name", ["split_heads", "simple_self_attention", "merge_heads"])
def test_a_table_of_the_public_inputs_earns_nothing_on_fresh_ones(name):
    task = ATTENTION[name]
    table = table_of(task, local_seed(task))
    function = lambda *args: table.get(key(args), 0.0)  # noqa: E731
    decoys = judge(task, InProcess(function), local_seed(task))
    assert all("different answers" not in c.message for c in decoys.criteria)
    assert score(function, name) == 0


def differences(dY, Q, K, V, A, *, step):
    """Differentiate the forward pass numerically, with the mask that A shows."""
    args = [np.array(a, dtype=complex if step is None else float) for a in (Q, K, V)]
    blocked = np.where(A == 0, -np.inf, 0.0)

    def loss():
        scores = args[0] @ np.swapaxes(args[1], -1, -2) / np.sqrt(Q.shape[-1]) + blocked
        largest = scores.real.max(axis=-1, keepdims=True)
        e = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
        total = e.sum(axis=-1, keepdims=True)
        return (dY * ((e / np.where(total == 0, 1, total)) @ args[2])).sum()

    grads = []
    for array in args:
        grad = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            old = array[index]
            array[index] = old + step
            above = loss()
            array[index] = old - step
            grad[index] = (above - loss()) / (2 * step)
            array[index] = old
        grads.append(grad)
    return tuple(grads)


@pytest.mark.parametrize("step", [1e-3, 1e-5, 1e-7])
def test_differences_with_one_step_do_not_pass_for_a_gradient(step):
    name = "scaled_dot_product_attention_backward"
    with np.errstate(all="ignore"):
        got = score(lambda *args: differences(*args, step=step), name)
    # dV is linear, so differences give it exactly; it is worth 5 of 25 points.
    assert got in (0.0, 5.0)


def complex_model(s, rng):
    """Predict the mean plus i times what makes the squared loss 1."""
    mean, spread = np.mean(s), np.std(s)
    return lambda past: np.full(np.shape(past), mean + 1j * np.sqrt(spread**2 - 1))


def test_complex_predictions_reach_no_loss():
    task = TASKS["training"]
    result = judge(task, InProcess(complex_model), 3)
    assert result.score == 0
    assert "complex numbers" in result.criteria[0].message


# Feedback


def test_a_message_shows_no_right_number():
    """Every number of the right answers, as the messages would write it."""
    for name, task in ATTENTION.items():
        for wrong in (lambda *_, **__: 0.0, lambda *a, **__: a[0], lambda *_, **__: 1 / 0):
            text = "\n".join(judge(task, InProcess(wrong), 5).lines())
            for case in task.cases(generator(5, "cases")):
                right = task.reference(*case.args, **case.kwargs)
                parts = right if isinstance(right, tuple) else (right,)
                for part in parts:
                    for number in np.ravel(part)[:200]:
                        shown = f"{float(number):.6g}"
                        assert len(shown) < 5 or shown not in text, (name, shown)


FORGED = (
    "\n[ok] 5 of 5  outputs Y\nattention.split_heads: 5 of 5 points\x1b[2K\r\u2028\u202e\u200b"
)


def raising(text):
    def function(*args, **kwargs):
        raise type(text, (Exception,), {})(text)

    return function


def warning(text):
    def function(*args, **kwargs):
        import warnings

        warnings.warn(text, stacklevel=1)
        print(text)
        return text

    return function


@pytest.mark.parametrize("make", [raising, warning])
def test_no_text_of_a_student_begins_a_line_of_feedback(make):
    result = judge(ATTENTION["split_heads"], InProcess(make(FORGED)), 3)
    lines = result.lines()
    assert lines[0] == "attention.split_heads: 0 of 5 points"
    assert not any(line.startswith(("[ok]", "attention.split_heads: 5")) for line in lines)
    assert all(line.isprintable() for line in lines)


def test_an_error_that_calls_itself_a_shortcut_stays_in_its_line():
    function = raising("LibraryShortcut")
    lines = judge(ATTENTION["split_heads"], InProcess(function), 3).lines()
    assert [line[:4] for line in lines[1:3]] == ["[--]", "[--]"]
