"""One fixture exercise per kind: right answers pass, mistakes are named, noise earns 0."""

import numpy as np
import pytest
from fixtures_exercises import TASKS, backward, module, sorters, training

from seqlib.exercises.record import KINDS, Case, Misconception, Task
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted, observe
from seqlib.judge.matrix import row
from seqlib.subject.inprocess import InProcess
from seqlib.subject.values import AsTensor


def passed(result):
    return {c.name for c in result.criteria if c.passed}


def test_there_is_a_fixture_for_every_kind():
    assert set(TASKS) == set(KINDS)


@pytest.mark.parametrize("seed", [0, 1, 2**200])
@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_gets_all_points(kind, seed):
    task = TASKS[kind]
    result = judge(task, InProcess(task.reference), seed)
    assert result.score == task.points, result.lines()
    assert result.diagnosis is None
    assert result.notes == ()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, m.name) for kind in KINDS for m in TASKS[kind].misconceptions]
)
def test_every_mistake_loses_points_and_is_named(kind, name, seed):
    made = row(TASKS[kind], (name,), seed)
    assert not made.survives
    assert made.named_as_itself, made


@pytest.mark.parametrize(
    ("kind", "answer"), [(kind, a) for kind in KINDS for a in degenerate_answers(TASKS[kind])]
)
def test_an_answer_without_content_gets_nothing(kind, answer):
    task = TASKS[kind]
    for seed in (0, 1):
        result = judge(task, InProcess(degenerate_answers(task)[answer]), seed)
        assert result.score == 0, result.lines()


def test_degenerate_answers_have_the_right_shape():
    task = TASKS["values"]
    case = task.cases(np.random.default_rng(0))[0]
    for name in ("zeros", "ones", "noise", "constant"):
        answer = degenerate_answers(task)[name](*case.args, **case.kwargs)
        assert answer.shape == case.args[0].shape, name


def test_the_constant_answer_is_the_first_right_one():
    task = TASKS["values"]
    one, two = task.cases(np.random.default_rng(0))[:2]
    constant = degenerate_answers(task)["constant"]
    first = constant(*one.args, **one.kwargs)
    np.testing.assert_array_equal(first, task.reference(*one.args, **one.kwargs))
    assert constant(*two.args, **two.kwargs) is first


def test_an_unknown_kind_is_an_error():
    task = TASKS["values"]
    wrong = Task(**{**vars(task), "kind": "essay"})
    with pytest.raises(ValueError, match="kind must be one of values, backward"):
        judge(wrong, Trusted(task.reference), 0)


def test_a_reference_that_fails_is_reported_as_the_courses_own_fault():
    def broken(x, *, width):
        raise ZeroDivisionError

    task = Task(**{**vars(TASKS["values"]), "reference": broken})
    with pytest.raises(RuntimeError, match=r"the reference of fixtures\.smooth fails on x of"):
        judge(task, Trusted(broken), 0)


# Backward


def test_a_wrong_forward_pass_costs_nothing_in_the_backward_task():
    result = judge(TASKS["backward"], InProcess(backward.student()), 0)
    assert result.score == result.points, result.lines()


def test_the_students_own_forward_pass_is_back_afterwards():
    function = backward.student()
    judge(TASKS["backward"], InProcess(function), 0)
    forward = function.__globals__["squares"]
    np.testing.assert_array_equal(forward(np.full((1, 1), 3.0), np.ones((1, 1))), [[3.0]])


# Sampling


def test_draws_from_another_source_are_reported_as_such():
    def throws(weights, count, rng):
        p = weights / weights.sum()
        return np.random.default_rng().choice(len(p), size=count, p=p)

    result = judge(TASKS["sampling"], InProcess(throws), 0)
    assert result.score == 0
    assert "every random number must come from the generator" in result.criteria[0].message


def test_an_array_of_draws_is_as_good_as_a_list():
    def throws(weights, count, rng):
        p = weights / weights.sum()
        return np.array([rng.choice(len(p), p=p) for _ in range(count)])

    result = judge(TASKS["sampling"], InProcess(throws), 0)
    assert result.score == result.points


# Modules


def test_a_module_of_another_style_passes():
    torch = pytest.importorskip("torch")

    class Gain(torch.nn.Module):
        def __init__(self, channels, limit=None):
            super().__init__()
            for name in ("weight", "bias"):
                setattr(self, name, torch.nn.Parameter(torch.empty(channels)))
            self.limit = limit
            self.register_buffer("calls", torch.zeros(1))  # a buffer of its own is no harm

        def forward(self, x):
            y = torch.addcmul(self.bias, x, self.weight)
            return y if self.limit is None else y.clip(min=-self.limit, max=self.limit)

    result = judge(TASKS["module"], InProcess(Gain), 0)
    assert result.score == result.points, result.lines()


def test_a_module_with_other_parameters_is_told_which_it_needs():
    torch = pytest.importorskip("torch")

    class Gain(torch.nn.Module):
        def __init__(self, channels, limit=None):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.ones(channels))

    class Further(torch.nn.Module):
        def __init__(self, channels, limit=None):
            super().__init__()
            for name in ("weight", "bias", "scale"):
                setattr(self, name, torch.nn.Parameter(torch.ones(channels)))

    class Turned(torch.nn.Module):
        def __init__(self, channels, limit=None):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(channels, 1))
            self.bias = torch.nn.Parameter(torch.ones(channels))

    for built, phrase in (
        (Gain, "the module must have the parameters weight, bias, got gain"),
        (Further, "must have the parameters weight, bias, got weight, bias, scale"),
        (Turned, "parameter weight must have shape (3,), got (3, 1)"),
        (lambda channels, limit=None: 5, "the class must build a torch.nn.Module, got int"),
    ):
        result = judge(TASKS["module"], InProcess(built), 0)
        assert result.score == 0
        assert phrase in result.criteria[0].message


def test_an_output_without_a_gradient_costs_the_gradients_alone():
    torch = pytest.importorskip("torch")

    class Gain(module.gain_class()):
        @torch.no_grad()
        def forward(self, x):
            return super().forward(x)

    result = judge(TASKS["module"], InProcess(Gain), 0)
    assert passed(result) == {"values"}
    lost = {c.name: c.message for c in result.criteria}
    for name in ("gradients", "inputs"):
        assert lost[name].startswith("the output has no gradient: it is computed under")


def test_a_function_of_a_tensor_that_requires_a_gradient_is_differentiated():
    torch = pytest.importorskip("torch")
    x = np.array([1.0, -2.0, 3.0])
    case = Case((AsTensor(x, requires_grad=True),), {"power": 2})
    task = Task(**{**vars(TASKS["values"]), "shortcuts": ()})

    def total(x, *, power):
        return (x**power).sum()

    def answer(function):
        return observe(task, InProcess(function), case).value

    found = answer(total)
    assert found["output"] == 14
    np.testing.assert_array_equal(found["gradient"], 2 * x)
    np.testing.assert_array_equal(answer(lambda x, *, power: x**power)["gradient"], 2 * x)
    for cut in (torch.no_grad()(total), lambda x, *, power: total(x, power=power).item()):
        assert answer(cut) == {"output": 14}


def test_a_library_class_is_refused_built_or_run():
    torch = pytest.importorskip("torch")
    ready = torch.nn.Identity()

    def builds(x):
        return torch.nn.Identity()(x)

    def runs(x):
        return ready(x)

    task = Task(
        **{
            **vars(TASKS["values"]),
            "reference": lambda x: x.numpy(),
            "cases": lambda rng: [
                type(case)((AsTensor(case.args[0]),), {}, case.label, case.tag)
                for case in TASKS["values"].cases(rng)
            ],
            "criteria": TASKS["values"].criteria[:1],
            "shortcuts": ("torch.nn.Identity",),
        }
    )
    for function in (builds, runs):
        result = judge(task, InProcess(function), 0)
        assert "torch.nn.Identity is what this task asks you" in result.criteria[0].message
    assert judge(task, InProcess(lambda x: x), 0).score == 4
    assert builds(torch.ones(2)).sum() == 2


# Tests that students write


def test_a_test_may_call_the_model_only_so_often():
    def many(sort, rng):
        return any(sort([2, 1]) != [1, 2] for _ in range(sorters.MAX_CALLS + 1))

    result = judge(TASKS["student_test"], InProcess(many), 0)
    assert "the model may be called at most 50 times" in result.criteria[0].message

    def few(sort, rng):
        return sort([3, 2, 2, 1]) != [1, 2, 2, 3]

    assert passed(judge(TASKS["student_test"], InProcess(few), 0)) == {
        "values",
        "repeats",
        "last",
    }


def test_a_test_that_refuses_right_models_earns_nothing():
    result = judge(TASKS["student_test"], InProcess(lambda sort, rng: True), 0)
    assert result.score == 0
    assert result.criteria[1].message == (
        "counts only together with: right sorters pass, one that does nothing fails"
    )


# Training


def test_a_poor_fit_earns_the_part_that_it_reaches():
    result = judge(TASKS["training"], InProcess(lambda s, rng: lambda s: 0.5 * s), 0)
    assert passed(result) == {"values"}
    assert "the loss on a fresh sample is" in result.criteria[1].message
    assert "it must be at most 1.15" in result.criteria[1].message


def test_a_loss_that_is_too_good_sees_the_answers():
    result = judge(TASKS["training"], InProcess(training.sees_next), 0)
    assert result.score == 0
    assert "no model can be that good without seeing the answers" in result.criteria[0].message
    assert result.diagnosis.names == ("sees_next",)


def test_a_mistake_that_shows_in_what_was_trained_is_named():
    """A sign is looked for where points were lost, and in the order of the record."""
    asked = []

    def sign(name, found):
        def shows(predict, rng, case):
            asked.append((name, rng.integers(1000)))
            return found(np.asarray(predict(np.ones(3))))

        return shows

    symptoms = {
        "zeros": sign("zeros", lambda y: not y.any()),
        "doubles": sign("doubles", lambda y: (y == 2).all()),
    }
    mistakes = tuple(Misconception(name, f"{name}.", "signs", "ours") for name in symptoms)
    changed = {
        "options": {**TASKS["training"].options, "symptoms": symptoms},
        "misconceptions": TASKS["training"].misconceptions + mistakes,
    }
    task = Task(**{**vars(TASKS["training"]), **changed})
    for answer, name in ((lambda s: 0 * s, "zeros"), (lambda s: 2 * s, "doubles")):
        result = judge(task, InProcess(lambda s, rng, answer=answer: answer), 0)
        assert result.diagnosis.names == (name,), result.lines()
    assert [name for name, _ in asked] == ["zeros", "zeros", "doubles"]
    assert asked[0] == asked[1]
    for answer in (lambda s: 0.5 * s, lambda s: s * np.nan, lambda s: object(), None):
        result = judge(task, InProcess(lambda s, rng, answer=answer: answer), 0)
        assert result.diagnosis is None
    asked.clear()
    assert judge(task, InProcess(training.reference), 0).diagnosis is None
    assert asked == []


def test_a_trained_object_that_fails_is_reported():
    task = TASKS["training"]
    case = task.cases(np.random.default_rng(0))[0]

    def reply_of(trained):
        rng = np.random.default_rng(1)
        return observe(task, InProcess(lambda s, rng: trained), case, rng)

    assert reply_of(7).error == "TypeError: 'int' object is not callable"
    assert "predictions must have shape (2000,)" in reply_of(lambda s: s[:5]).error
    assert reply_of(lambda s: object()).fault == "unsupported"
    assert np.isnan(reply_of(lambda s: s * np.nan).value)
    nan = judge(task, InProcess(lambda s, rng: lambda s: s * np.nan), 0)
    assert nan.score == 0
    assert nan.criteria[0].message.startswith("the loss on a fresh sample is nan, it must")
    assert nan.diagnosis is None


def test_training_runs_once():
    calls = []

    def fit(s, rng):
        calls.append(1)
        return training.reference(s, rng)

    assert judge(TASKS["training"], InProcess(fit), 0).score == 3
    assert len(calls) == 1


def test_a_variant_behaves_as_its_switches_say():
    task = TASKS["backward"]
    with pytest.raises(ValueError, match="only_lengths is a function of its own"):
        function_of(TASKS["student_test"], "only_lengths", "only_the_start")
    with pytest.raises(ValueError, match="need a variant or a function"):
        function_of(Task(**{**vars(task), "variant": None}), "no_two")
