"""The assignment ``rnn``: no wrong answer survives, none is misnamed, right ones pass."""

import importlib
import inspect
import sys

import numpy as np
import pytest
import torch
from styles.rnn import STYLES
from written_afresh.rnn import AFRESH

import seqlib.data
import seqlib.np as snp
from seqlib.exercises import get_assignment
from seqlib.exercises.record import Tolerance
from seqlib.judge.compare import difference
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

RNN = get_assignment("rnn")
TASKS = {task.function: task for task in RNN.tasks}
SEEDS = (1, 2)  # of right answers; wrong ones are judged with the first


def result_of(name, function, seed=1):
    return judge(TASKS[name], InProcess(function), seed)


def draw(task, seed=1):
    return task.cases(np.random.default_rng(seed))


def passed(result):
    return {c.name for c in result.criteria if c.passed}


# Right answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TASKS)
def test_the_variant_without_a_switch_is_the_reference(name, seed):
    task = TASKS[name]
    for case in draw(task, seed):
        expected = task.reference(*case.args)
        assert difference(expected, task.variant(*case.args), task.tolerance) is None


RIGHT = [(name, style) for name, styles in STYLES.items() for style in styles]


def in_single_precision(function):
    """Return the same style working in float32, from its arguments to its result."""

    def single(value):
        if isinstance(value, list | tuple):
            return type(value)(map(single, value))
        if isinstance(value, torch.Tensor):
            return value.float()
        is_double = getattr(value, "dtype", None) == np.float64
        return value.astype(np.float32) if is_double else value

    return lambda *args: single(function(*map(single, args)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("name", "style"), RIGHT, ids=lambda v: getattr(v, "__name__", v))
def test_every_right_style_gets_all_points(name, style, precision, seed):
    function = style if precision == "float64" else in_single_precision(style)
    result = result_of(name, function, seed)
    assert result.score == TASKS[name].points, result.lines()
    assert result.notes == ()


def test_there_are_three_styles_for_every_task():
    assert TASKS.keys() == STYLES.keys()
    assert min(len(styles) for styles in STYLES.values()) >= 3


# Wrong answers

MISTAKES = [(name, m.name) for name, task in TASKS.items() for m in task.misconceptions]


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_misconception_loses_points_and_is_named_as_itself(name, mistake):
    task = TASKS[name]
    result = result_of(name, function_of(task, mistake))
    assert result.score < task.points
    assert result.diagnosis.kind == "mistake"
    assert result.diagnosis.names == (mistake,)


def test_there_are_enough_misconceptions():
    counts = {name: len(task.misconceptions) for name, task in TASKS.items()}
    core = ("token_losses", "masked_cross_entropy", "next_token_batches", "rnn_forward")
    assert min(counts.values()) >= 3
    assert min(counts[name] for name in core) >= 8


WRITTEN = [(name, f, mistake) for name, pairs in AFRESH.items() for f, mistake in pairs.items()]


@pytest.mark.parametrize(
    ("name", "function", "mistake"), WRITTEN, ids=lambda v: getattr(v, "__name__", v)
)
def test_a_mistake_written_afresh_is_named_alike(name, function, mistake):
    result = result_of(name, function)
    assert result.score < TASKS[name].points
    assert result.diagnosis.kind == "mistake", result.lines()
    assert result.diagnosis.names == (mistake,)


def test_two_or_more_mistakes_of_every_task_are_written_afresh():
    assert TASKS.keys() == AFRESH.keys()
    assert min(len(mistakes) for mistakes in AFRESH.values()) >= 2


SAMPLED = [
    (name, pair)
    for name, task in TASKS.items()
    for pair in np.random.default_rng(7).permutation(pairs_of(task))[:8].tolist()
]


@pytest.mark.parametrize(("name", "pair"), SAMPLED)
def test_two_mistakes_together_are_named_or_one_that_gives_the_same_answers(name, pair):
    """A named mistake, or pair, must give what the student gave; never a false name."""
    task = TASKS[name]
    made = function_of(task, *pair)
    result = result_of(name, made)
    assert result.score < task.points
    if set(result.diagnosis.names) == set(pair):
        return
    assert result.diagnosis.kind in ("mistake", "either", "partial")
    if result.diagnosis.kind == "partial":
        assert set(result.diagnosis.names) <= set(pair)
        return
    named = function_of(task, *result.diagnosis.names)
    for case in draw(task, seed=3):
        one, other = outcome(named, case.args), outcome(made, case.args)
        assert (
            one == other
            if isinstance(one, str)
            else difference(one, other, Tolerance()) is None
        )


def outcome(function, args):
    """Return what a call gives, or the text of its error."""
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except (IndexError, ValueError) as error:
            return str(error)


def map_arrays(f, value):
    return tuple(map(f, value)) if isinstance(value, tuple) else f(value)


def uniform(array):
    return np.full(np.shape(array), 1 / np.shape(array)[-1] if np.ndim(array) else 0.5)


EMPTY = {
    (name, kind): function
    for name, task in TASKS.items()
    for kind, function in (
        *degenerate_answers(task).items(),
        ("uniform", lambda *args, task=task: map_arrays(uniform, task.reference(*args))),
        ("all_arguments", lambda *args: args),
        ("one_number", lambda *args: 1.0),
    )
}


@pytest.mark.parametrize(("name", "answer"), EMPTY)
def test_an_answer_without_content_gets_nothing(name, answer):
    assert result_of(name, EMPTY[name, answer]).score == 0


@pytest.mark.parametrize("name", TASKS)
def test_an_exception_gets_nothing_and_is_shown(name):
    def function(*args):
        raise IndexError("list index out of range")

    result = result_of(name, function)
    assert result.score == 0
    assert "IndexError: list index out of range" in result.criteria[0].message


# What the book shows of the library, and the task nearest to it
SHOWN = {
    "token_losses": snp.cross_entropy,
    "masked_cross_entropy": snp.cross_entropy,
    "corpus_perplexity": snp.perplexity,
    "next_token_batches": seqlib.data.contiguous_batches,
    "rnn_step": snp.rnn_cell,
    "rnn_forward": snp.rnn,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    assert result_of(name, pasted(SHOWN[name])).score < TASKS[name].points / 2


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    module = inspect.getmodule(function)
    space = dict(vars(module))
    exec(compile(inspect.getsource(module), "<pasted>", "exec"), space)
    return space[function.__name__]


def whole_losses(Z, y):
    return snp.cross_entropy(Z, y, reduction="none")


def whole_log_softmax(Z, y):
    return -np.take_along_axis(snp.log_softmax(Z), y[..., None], -1)[..., 0]


def whole_masked(Z, y, ignored=-100):
    tokens = snp.cross_entropy(Z, y, ignore_index=ignored)
    return tokens, tokens


def whole_perplexity(losses, counts):
    nats = np.average(losses, weights=counts)
    return snp.perplexity(nats), snp.bits(nats)


def whole_step(h, x, W, b):
    m = len(b)
    return snp.rnn_cell(x, h, W[:, m:], W[:, :m], b, None)


def whole_forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
    return snp.rnn(x, h_0, W_xh, W_hh, b_h, None, lengths=lengths)


def whole_torch(Z, y):
    losses = torch.nn.functional.cross_entropy(
        torch.from_numpy(Z).movedim(-1, 1), torch.from_numpy(y), reduction="none"
    )
    return losses.numpy()


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("token_losses", whole_losses),
        ("token_losses", whole_log_softmax),
        ("token_losses", whole_torch),
        ("masked_cross_entropy", whole_masked),
        ("corpus_perplexity", whole_perplexity),
        ("rnn_step", whole_step),
        ("rnn_forward", whole_forward),
    ],
)
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name, function):
    result = result_of(name, function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize(
    "name", sorted({*RNN.grants, *(s for task in RNN.tasks for s in task.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """The owner must be found as the refusal finds it: from attribute to attribute."""
    package, *path = name.split(".")
    importlib.import_module(package)
    found = sys.modules[package]
    for part in path:
        found = getattr(found, part)
    assert callable(found)


def test_what_is_granted_may_be_used_where_it_is_not_the_answer():
    def masked(Z, y, ignored=-100):
        log_p = snp.log_softmax(np.where((y == ignored)[..., None], 0, Z))
        counted = y != ignored
        chosen = np.take_along_axis(log_p, np.where(counted, y, 0)[..., None], -1)[..., 0]
        own = [
            -row[mask].mean() for row, mask in zip(chosen, counted, strict=True) if mask.any()
        ]
        if not own:
            return 0.0, 0.0
        return -chosen[counted].mean(), np.mean(own)

    def forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
        h, states = h_0, []
        for t in range(x.shape[1]):
            new = snp.rnn_cell(x[:, t], h, W_xh, W_hh, b_h, None)
            valid = True if lengths is None else (t < lengths)[:, None]
            h = np.where(valid, new, h)
            states.append(np.where(valid, new, 0))
        return np.stack(states, axis=1), h

    assert result_of("masked_cross_entropy", masked).score == 15
    assert result_of("rnn_forward", forward).score == 25


# Partial credit: one mistake costs once


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("token_losses", ["log_of_zero"], {"values", "batch"}),
        ("token_losses", ["softmax_axis_one"], {"values", "large"}),
        ("token_losses", ["base_two"], set()),
        ("masked_cross_entropy", ["tokens_over_all"], {"sequences"}),
        ("masked_cross_entropy", ["sequence_sums"], {"values", "nothing"}),
        (
            "masked_cross_entropy",
            ["only_minus_100"],
            {"values", "sequences", "empty", "nothing", "padding", "large"},
        ),
        (
            "masked_cross_entropy",
            ["empty_sequence_nan", "nothing_counted_nan"],
            {"values", "sequences", "ignored", "padding", "large"},
        ),
        ("corpus_perplexity", ["power_of_two"], {"bits"}),
        ("corpus_perplexity", ["empty_nan"], {"values", "bits"}),
        ("next_token_batches", ["shifted_twice"], {"values"}),
        ("next_token_batches", ["wraps_around"], {"values", "targets", "edge"}),
        ("rnn_forward", ["time_first"], {"last", "last_valid"}),
        ("rnn_forward", ["lengths_ignored"], {"values", "last", "edge"}),
        ("rnn_forward", ["last_column"], {"values", "last", "lengths", "edge"}),
        (
            "rnn_forward",
            ["empty_as_one"],
            {"values", "last", "lengths", "last_valid", "edge"},
        ),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


def test_a_message_names_the_axes_of_the_part_that_is_wrong():
    result = result_of("rnn_forward", function_of(TASKS["rnn_forward"], "not_carried"))
    messages = {c.name: c.message for c in result.criteria}
    assert "(sequence 0, time step 1, component 0) of H" in messages["values"]
    assert "(sequence 0, component 0) of h_n" in messages["last"]


def test_means_over_nothing_are_named_together():
    """The usual code divides by a count of 0 in both places."""

    def masked(Z, y, ignored=-100):
        counted = y != ignored
        log_p = snp.log_softmax(np.where(counted[..., None], Z, 0))
        chosen = np.take_along_axis(log_p, np.where(counted, y, 0)[..., None], -1)[..., 0]
        sums, counts = -(chosen * counted).sum(axis=1), counted.sum(axis=1)
        with np.errstate(invalid="ignore"):
            return sums.sum() / counts.sum(), (sums / counts).mean()

    result = result_of("masked_cross_entropy", masked)
    assert result.diagnosis.kind == "mistake"
    assert set(result.diagnosis.names) == {"empty_sequence_nan", "nothing_counted_nan"}


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11, for the forward pass: the state is updated in the array that was given."""

    def forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
        H, h_n = STYLES["rnn_forward"][0](x, h_0, W_hh, W_xh, b_h, lengths)
        h_0[:] = h_n
        return H, h_n

    result = result_of("rnn_forward", forward)
    assert result.score == 25
    assert any("changes its argument h_0 in place" in note for note in result.notes)
