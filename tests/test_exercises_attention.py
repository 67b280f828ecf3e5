"""The assignment ``attention``: no wrong answer survives, none is misnamed, right ones pass."""

import contextlib
import importlib
import inspect
import io
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from styles.attention import STYLES
from written_afresh.attention import AFRESH

import seqlib.np as snp
from seqlib.exercises import get_assignment, get_task
from seqlib.judge.compare import difference
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

ROOT = Path(__file__).resolve().parents[1]
ATTENTION = get_assignment("attention")
TASKS = {task.function: task for task in ATTENTION.tasks}
SEEDS = (1, 2)


def result_of(name, function, seed=1):
    return judge(TASKS[name], InProcess(function), seed)


def draw(task, seed=1):
    return task.cases(np.random.default_rng(seed))


def passed(result):
    return {c.name for c in result.criteria if c.passed}


def notebook(folder):
    path = ROOT / folder / "attention" / "attention.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))


def by_id(folder, prefix=""):
    return {
        cell["id"].removeprefix(prefix): "".join(cell["source"])
        for cell in notebook(folder)["cells"]
        if cell["id"].startswith(prefix)
    }


def defined(folder, name):
    """Run the set-up and one solution cell as a notebook would, and return the namespace."""
    cells, space = by_id(folder), {"__name__": "__main__"}
    exec(cells["setup"], space)
    exec(cells[name], space)
    return space


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
        return value.astype(np.float32) if isinstance(value, np.ndarray) else value

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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_misconception_loses_points_and_is_named_as_itself(name, mistake, seed):
    task = TASKS[name]
    result = result_of(name, function_of(task, mistake), seed)
    assert result.score < task.points
    assert result.diagnosis.kind == "mistake"
    assert result.diagnosis.names == (mistake,)


def test_there_are_enough_misconceptions():
    counts = {name: len(task.misconceptions) for name, task in TASKS.items()}
    assert min(counts.values()) >= 3
    assert counts["scaled_dot_product_attention"] >= 8
    assert counts["multi_head_attention"] >= 8


WRITTEN = [(name, f, mistake) for name, pairs in AFRESH.items() for f, mistake in pairs.items()]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "function", "mistake"), WRITTEN, ids=lambda v: getattr(v, "__name__", v)
)
def test_a_mistake_written_afresh_is_named_alike(name, function, mistake, seed):
    result = result_of(name, function, seed)
    assert result.score < TASKS[name].points
    assert result.diagnosis.kind == "mistake", result.lines()
    assert result.diagnosis.names == (mistake,)


def test_two_or_more_mistakes_of_every_task_are_written_afresh():
    assert TASKS.keys() == AFRESH.keys()
    assert min(len(mistakes) for mistakes in AFRESH.values()) >= 2


SAMPLED = [
    (name, pair)
    for name, task in TASKS.items()
    for pair in np.random.default_rng(7).permutation(pairs_of(task))[:12].tolist()
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
    with np.errstate(all="ignore"):
        for case in draw(task, seed=3):
            one, other = made(*case.args), named(*case.args)
            np.testing.assert_equal(np.shape(one[0]), np.shape(other[0]))
            flat = zip(np.ravel(one[0]), np.ravel(other[0]), strict=True)
            assert all(np.isclose(a, b, equal_nan=True) for a, b in flat)


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
def test_one_answer_for_all_calls_gets_nothing(name):
    task = TASKS[name]
    answers = [task.reference(*case.args) for case in draw(task)]
    for answer in answers:
        assert result_of(name, lambda *args, answer=answer: answer).score == 0


@pytest.mark.parametrize("name", TASKS)
def test_an_exception_gets_nothing_and_is_shown(name):
    def function(*args):
        raise IndexError("list index out of range")

    result = result_of(name, function)
    assert result.score == 0
    assert "IndexError: list index out of range" in result.criteria[0].message


@pytest.mark.parametrize("name", [n for n in TASKS if hasattr(snp, n)])
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    copied = pasted(getattr(snp, name))
    assert result_of(name, copied).score < TASKS[name].points / 2


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    space = dict(vars(inspect.getmodule(function)))
    source = inspect.getsource(inspect.getmodule(function))
    exec(compile(source, "<pasted>", "exec"), space)
    return space[function.__name__]


@pytest.mark.parametrize("name", ["simple_self_attention", "scaled_dot_product_attention"])
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name):
    def simple(X):
        A = snp.softmax(X @ np.swapaxes(X, -1, -2))
        return A @ X, A

    def scaled(Q, K, V, M=None):
        eye = np.broadcast_to(np.eye(K.shape[-2]), (*K.shape[:-1], K.shape[-2]))
        attend = snp.scaled_dot_product_attention
        return attend(Q, K, V, mask=M), attend(Q, K, eye, mask=M)

    result = result_of(name, simple if name.startswith("simple") else scaled)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize(
    "name", sorted({*ATTENTION.grants, *(s for t in ATTENTION.tasks for s in t.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """A refusal names the module that defines a function: there it is, granted or not."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert callable(found)
    assert name in ATTENTION.grants or found.__module__ == module


def test_the_softmax_of_the_library_is_granted_where_it_is_not_the_answer():
    def scaled(Q, K, V, M=None):
        S = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
        A = snp.softmax(S if M is None else S + M)
        return A @ V, A

    assert result_of("scaled_dot_product_attention", scaled).score == 15


# Partial credit: one mistake costs once


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("simple_self_attention", ["no_shift"], {"values", "weights", "batch"}),
        ("simple_self_attention", ["weights_transposed"], {"weights"}),
        ("scaled_dot_product_attention", ["values_are_keys"], {"weights"}),
        (
            "scaled_dot_product_attention",
            ["empty_row_nan"],
            {"values", "weights", "mask", "large", "batch"},
        ),
        ("scaled_dot_product_attention", ["mask_ignored"], {"values", "weights", "large"}),
        ("scaled_dot_product_attention_backward", ["no_scale_dk"], {"dq", "dv"}),
        ("scaled_dot_product_attention_backward", ["no_scale_dq"], {"dk", "dv"}),
        ("scaled_dot_product_attention_backward", ["softmax_diagonal"], {"dv"}),
        (
            "scaled_dot_product_attention_backward",
            ["weights_unmasked"],
            {"values", "dq", "dk", "dv", "batch"},
        ),
        ("multi_head_attention", ["mask_multiplied"], {"values", "one_head", "widths"}),
        ("multi_head_attention", ["merge_interleaved"], {"one_head"}),
        ("multi_head_attention", ["matrices_only"], {"values", "one_head", "widths", "mask"}),
        ("count_parameters", ["output_bias_width"], {"values"}),
        ("count_parameters", ["bias_always"], set()),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


def test_a_naive_softmax_is_named_beside_another_mistake():
    task = TASKS["scaled_dot_product_attention"]
    result = result_of(task.function, function_of(task, "naive_softmax", "no_scale"))
    assert result.diagnosis.kind == "mistake"
    assert set(result.diagnosis.names) == {"naive_softmax", "no_scale"}


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11: a backward pass that writes into the gradient it is given."""

    def backward(dY, Q, K, V, A):
        gradients = TASKS["scaled_dot_product_attention_backward"].reference(dY, Q, K, V, A)
        dY *= 2
        return gradients

    result = result_of("scaled_dot_product_attention_backward", backward)
    assert result.score == 25
    assert any("changes its argument dY in place" in note for note in result.notes)


# Cases that people really met


def unscaled(scores):
    """Return Q and K whose scaled scores are ``scores``."""
    scores = np.asarray(scores, dtype=float)
    return scores * np.sqrt(scores.shape[-1]), np.eye(scores.shape[-1])


def blocked(keep):
    return np.where(np.asarray(keep) == 1, 0.0, -np.inf)


REFERENCE = TASKS["scaled_dot_product_attention"].reference


def test_case_a01_a_row_without_an_allowed_key_beside_a_normal_one():
    Q, K = unscaled([[1, 2, 3], [0, np.log(2), 5]])
    V = np.array([[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    Y, A = REFERENCE(Q, K, V, blocked([[0, 0, 0], [1, 1, 0]]))
    np.testing.assert_allclose(A, [[0, 0, 0], [1 / 3, 2 / 3, 0]], atol=1e-12)
    np.testing.assert_allclose(Y, [[0, 0], [1 / 3, 4 / 3]], atol=1e-12)
    backward = TASKS["scaled_dot_product_attention_backward"].reference
    # Q is sqrt(3) times the scores and K the unit matrix, so dQ = dS / sqrt(3).
    dQ = backward(np.ones((2, 2)), Q, K, V, A)[0]
    np.testing.assert_allclose(dQ * np.sqrt(3), [[0, 0, 0], [-2 / 9, 2 / 9, 0]], atol=1e-12)


def test_case_a10_weights_are_rows_and_the_last_key_does_not_reach_the_first_query():
    Q, K = unscaled([[0, 5], [1, 0]])
    causal = blocked([[1, 0], [1, 1]])
    Y, A = REFERENCE(Q, K, np.array([[1.0], [3.0]]), causal)
    np.testing.assert_allclose(A, [[1, 0], [0.7310585786300049, 0.2689414213699951]])
    np.testing.assert_allclose(Y, [[1], [1.5378828427399902]])
    Y, _ = REFERENCE(Q, K, np.array([[1.0], [-7.0]]), causal)
    np.testing.assert_allclose(Y, [[1], [-1.1515313709599608]])


def test_case_b10_a_mask_that_keeps_three_of_four_keys():
    Q, K = unscaled([[2, 1, 4, 1]])
    _, A = REFERENCE(Q, K, np.ones((4, 1)), blocked([1, 1, 0, 1]))
    expected = [[0.5761168847658291, 0.21194155761708544, 0, 0.21194155761708544]]
    np.testing.assert_allclose(A, expected, atol=1e-12)


def multihead_a65(wrong=frozenset()):
    """Return the weights of head 1 of two, d = 8, for the inner products 4 and 0."""
    W_q, W_k, W_v = np.zeros((2, 8, 4)), np.zeros((2, 8, 4)), np.zeros((2, 8, 4))
    W_q[0, 0, 0], W_k[0, 0, 0], W_v[0, 0, 0], W_v[0, 1, 1] = 2, 2, 1, 1
    X = np.eye(8)[:2]  # the first token matches itself, 4, and the second one not, 0
    return TASKS["multi_head_attention"].variant(X, W_q, W_k, W_v, np.eye(8), wrong=wrong)


@pytest.mark.parametrize(
    ("wrong", "weights"),
    [
        (frozenset(), [0.8807970779778823, 0.11920292202211755]),
        (frozenset({"scale_d"}), [0.8044296825069569, 0.19557031749304313]),
        (frozenset({"scale_without_root"}), [0.7310585786300049, 0.2689414213699951]),
    ],
)
def test_case_a65_the_scale_of_a_head_of_two(wrong, weights):
    np.testing.assert_allclose(multihead_a65(wrong)[0, :2], weights)


def test_case_a09_heads_of_two_tokens():
    X = np.arange(8.0).reshape(1, 2, 4)
    heads = [[[[0, 1], [4, 5]]], [[[2, 3], [6, 7]]]]
    np.testing.assert_array_equal(TASKS["split_heads"].reference(X, 2), heads)
    np.testing.assert_array_equal(TASKS["merge_heads"].reference(np.array(heads)), X)
    wrong = function_of(TASKS["split_heads"], "reshape_moves_tokens")(X, 2)
    np.testing.assert_array_equal(wrong, [[[[0, 1], [2, 3]]], [[[4, 5], [6, 7]]]])


def test_case_pytorch_60853_the_number_of_heads_does_not_change_the_parameters():
    count = TASKS["count_parameters"].reference
    assert [count(512, H, 512 // H, 512 // H, bias=True) for H in (1, 64)] == [1050624] * 2


@pytest.mark.parametrize("name", [n for n in TASKS if n != "count_parameters"])
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    args = draw(TASKS[name])[0].args
    if name == "multi_head_attention":
        args = args[:-1]  # W_o is square here, H d_v = d, and not where the widths differ
    shapes = [arg.shape for arg in args if isinstance(arg, np.ndarray)]
    assert all(len(set(shape)) == len(shape) for shape in shapes)


# The notebook


@pytest.mark.parametrize("name", TASKS)
def test_the_solution_gets_all_points(name):
    space = defined("solutions", name)
    assert result_of(name, space[name]).score == TASKS[name].points


@pytest.mark.parametrize("name", TASKS)
def test_the_release_gets_nothing(name):
    result = result_of(name, defined("assignments", name)[name])
    assert result.score == 0
    assert "not written yet" in result.criteria[0].message


@pytest.mark.parametrize("name", TASKS)
def test_the_notebooks_function_has_the_signature_of_the_record(name):
    function = defined("solutions", name)[name]
    assert str(inspect.signature(function)) == TASKS[name].signature
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^    (\w+, )*{parameter}\b.* : ", function.__doc__, re.MULTILINE)


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def numbers(text):
    return [float(n) for n in NUMBER.findall(text)]


@pytest.mark.parametrize("name", TASKS)
def test_the_worked_example_gives_the_numbers_that_its_comments_expect(name):
    """Case B13: text and code must not contradict each other."""
    space = defined("solutions", name)
    cell = by_id("solutions")[f"try_{name}"]
    expected = numbers(" ".join(re.findall("# expected: (.*)", cell)))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(cell, space)
    shown = numbers(printed.getvalue())
    assert len(expected) >= 2
    np.testing.assert_allclose(shown[: len(expected)], expected, atol=5e-4)


def test_points_and_titles_in_the_text_are_those_of_the_record():
    cells = by_id("solutions", "about_")
    table = dict(re.findall(r"\| `(\w+)` \| (\d+) \|", by_id("solutions")["about"]))
    assert {name: float(points) for name, points in table.items()} == {
        name: task.points for name, task in TASKS.items()
    }
    for number, (name, task) in enumerate(TASKS.items(), start=1):
        heading = cells[name].splitlines()[0]
        assert heading.startswith(f"## {number} ")
        assert heading.endswith(f"({task.points:g} points)")


def test_the_notebook_states_the_hours_and_what_is_granted():
    text = by_id("solutions")["about"]
    assert f"Expected time: {ATTENTION.hours:g} hours" in text
    for grant in ATTENTION.grants:
        assert f"`snp.{grant.rpartition('.')[2]}`" in text


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""

    def first(difference):
        return 1 / (1 + np.exp(-difference))

    question, answer = (
        by_id("solutions")["about_why_scaling"],
        by_id("solutions")["why_scaling"],
    )
    assert "(0.8808, 0.1192)" in question
    assert "(0.7311, 0.2689)" in question
    assert round(first(4 / 2), 4) == 0.8808
    assert round(first(4 / 4), 4) == 0.7311  # sqrt(16) and d_k = 4 alike
    rubric = " ".join(ATTENTION.written[0].rubric)
    for divisor in (np.sqrt(8), 4, 8):
        for weight in (first(4 / divisor), first(-4 / divisor)):
            assert f"{weight:.3f}" in answer
            assert f"{weight:.3f}" in rubric
    slopes = [first(d) * first(-d) for d in (16 / 8, 16)]
    assert [f"{s:.2g}" for s in slopes] == ["0.1", "1.1e-07"]
    assert f"{slopes[0]:.3f}" in answer
    assert f"{slopes[0]:.3f}" in rubric
    sqrt_of = [f"{v:.2f}" for v in (np.sqrt(3), np.sqrt(6))]
    assert all(v in answer for v in sqrt_of)


def test_the_mark_scheme_adds_up():
    for question in ATTENTION.written:
        points = [int(line.split()[0]) for line in question.rubric]
        assert sum(points) == question.points
    assert ATTENTION.points == 100


def test_tasks_are_found_by_their_ids():
    assert [get_task(task.id) for task in ATTENTION.tasks] == list(ATTENTION.tasks)
    assert len(set(itertools.chain(TASKS, [q.id for q in ATTENTION.written]))) == 8
