"""The committed kill matrix: complete, without a survivor, and what a rerun gives."""

import copy
import json

import pytest
from course_book import data, kill_matrix

from seqlib.exercises import ASSIGNMENTS

FOUND = kill_matrix.load()
TASKS = kill_matrix.all_tasks()


def test_the_matrix_fits_the_records():
    assert kill_matrix.matrix_gaps(FOUND, TASKS) == []
    assert list(FOUND["tasks"]) == list(TASKS)


def test_every_mistake_is_killed_and_none_has_a_false_name():
    rows = [row for task in TASKS.values() for row in kill_matrix.rows_of(task, FOUND)]
    assert len(rows) == sum(len(task.misconceptions) for task in TASKS.values()) > 700
    assert all(row.lost and row.score < row.points for row in rows)
    assert [row for row in rows if row.named_as_another] == []


def changed(**changes):
    """Return the matrix with entries of ``rnn.rnn_step`` replaced."""
    found = copy.deepcopy(FOUND)
    found["tasks"]["rnn.rnn_step"].update(changes)
    return found


def mistakes(**changes):
    return {**FOUND["tasks"]["rnn.rnn_step"]["mistakes"], **changes}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (changed(version=0), "task rnn.rnn_step has another version now"),
        (changed(mistakes=mistakes(new={})), "mistakes of rnn.rnn_step differ: new"),
        (
            changed(mistakes=dict(reversed(mistakes().items()))),
            "mistakes of rnn.rnn_step differ: their order",
        ),
        (
            changed(mistakes=mistakes(no_tanh={"lost": [], "kind": None, "named": []})),
            "rnn.rnn_step, no_tanh costs nothing",
        ),
        (
            changed(
                mistakes=mistakes(
                    no_tanh={"lost": ["values"], "kind": "mistake", "named": ["no_bias"]}
                )
            ),
            "rnn.rnn_step, no_tanh is named as another mistake",
        ),
        (
            changed(
                mistakes=mistakes(
                    no_tanh={"lost": ["beauty"], "kind": "mistake", "named": ["no_tanh"]}
                )
            ),
            "criteria of rnn.rnn_step differ",
        ),
        ({**FOUND, "judge": 0}, "made by another judge or with another seed"),
        (
            {**FOUND, "tasks": {**FOUND["tasks"], "rnn.x": {}}},
            "there is no task rnn.x",
        ),
        ({**FOUND, "tasks": dict(list(FOUND["tasks"].items())[1:])}, "lacks task rnn."),
    ],
)
def test_a_difference_is_found(found, message):
    first, *_ = kill_matrix.matrix_gaps(found, TASKS)
    assert first.startswith(f"kill matrix: {message}")


def test_the_file_is_what_the_command_writes(tmp_path):
    (tmp_path / "book" / "data").mkdir(parents=True)
    kill_matrix.write(FOUND["tasks"], tmp_path)
    path = f"book/data/{kill_matrix.FILE}"
    assert (tmp_path / path).read_bytes() == (data.ROOT / path).read_bytes()


# One mistake of each task, another one for the next: the sample is fixed, and spread.
SAMPLE = [
    (name, i % len(task.misconceptions))
    for i, (name, task) in enumerate(TASKS.items())
    if task.kind != "training"
]


@pytest.mark.parametrize(("name", "which"), SAMPLE)
def test_a_rerun_gives_the_committed_row(name, which):
    mistake = TASKS[name].misconceptions[which].name
    judged = kill_matrix.row(TASKS[name], (mistake,), FOUND["seed"])
    assert kill_matrix.entry(judged) == FOUND["tasks"][name]["mistakes"][mistake]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, task in TASKS.items() if task.kind != "training"])
def test_a_rerun_gives_all_rows_of_a_task(name):
    again = kill_matrix.judge_task(TASKS[name], FOUND["seed"])
    assert again == FOUND["tasks"][name]


def test_the_tables_show_what_the_file_says():
    task = TASKS["rnn.rnn_step"]
    text = kill_matrix.task_table(task, FOUND, lambda label: f"[{label}]")
    mistake = task.misconceptions[0]
    line = next(line for line in text.splitlines() if line.startswith(f"| {mistake.says}"))
    assert f"({[mistake.page]})".replace("'", "") in line
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    judged = kill_matrix.rows_of(task, FOUND)[0]
    shown = [c.name for c, cell in zip(task.criteria, cells[1:], strict=False) if cell != "·"]
    assert tuple(shown) == judged.lost
    assert float(cells[-2]) == judged.points - judged.score
    assert cells[-1] == "itself"

    total = kill_matrix.summary(FOUND, TASKS).splitlines()[-1]
    count = sum(len(task.misconceptions) for task in TASKS.values())
    assert total == f"| all | {len(TASKS)} | {count} | 0 | {count} | 0 |"
    assert len(kill_matrix.summary(FOUND, TASKS).splitlines()) == len(ASSIGNMENTS) + 3


def test_a_name_that_is_not_the_own_is_spelled_out():
    task = TASKS["rnn.rnn_step"]
    first, second, *_ = task.misconceptions
    for kind, named, shown in [
        ("mistake", [second.name], f"as another: {second.says}"),
        ("either", [first.name, second.name], f"as one of several, the others: {second.says}"),
        ("partial", [first.name], "in part"),
        (None, [], "not named"),
        ("property", ["values"], f"by what fails: {task.criteria[0].says}"),
    ]:
        entry = {"lost": ["values"], "kind": kind, "named": named}
        found = json.loads(json.dumps(changed(mistakes=mistakes(**{first.name: entry}))))
        text = kill_matrix.task_table(task, found, str)
        assert f" | {shown} |" in text.replace("\\", "")
