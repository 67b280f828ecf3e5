"""The sample class: what it holds, and that each submission gets the declared score.

The scores in ``tests/samples`` are declared by hand: whoever changes one says why.
"""

import ast
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_course
from tiny_course import cell_of

import seqlib.exercises
from seqlib.grading.batch import grade_class
from seqlib.grading.course import Course
from seqlib.grading.grader import Grader
from seqlib.grading.samples.answers import call_text, mistake
from seqlib.grading.samples.sample_class import SampleClass, write_samples
from seqlib.grading.samples.standalone import standalone

ROOT = Path(__file__).resolve().parents[1]
NAMES = seqlib.exercises.ASSIGNMENTS


def declared(name):
    return json.loads((ROOT / "tests" / "samples" / f"{name}.json").read_text())


@pytest.fixture(scope="module", params=NAMES)
def samples(request):
    return request.param, SampleClass(Course(ROOT), request.param).samples()


@pytest.fixture
def course(tmp_path):
    """Return a course whose solutions and releases are those of the repository.

    Its secret is fixed, as are the inputs that follow from it: a wrong checker of gradients,
    say, errs on some inputs and not on others.
    """
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)  # its folder is that of the gradebook
    for name in ("solutions", "assignments", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "grading").mkdir()
    (tmp_path / "grading" / "secret").write_text("11" * 32 + "\n", encoding="ascii")
    return Course(tmp_path)


def test_every_sample_is_declared(samples):
    name, found = samples
    students = {f"s{i:03}": sample.name for i, sample in enumerate(found, start=1)}
    assert students == {student: entry["name"] for student, entry in declared(name).items()}
    assert len(set(students.values())) == len(students)


def test_every_known_mistake_is_made(samples):
    name, found = samples
    made = {pair for sample in found for pair in sample.mistakes.items()}
    tasks = seqlib.exercises.get_assignment(name).tasks
    assert made == {(task.id, m.name) for task in tasks for m in task.misconceptions}


def test_a_declared_score_is_full_unless_something_is_wrong(samples):
    name, _ = samples
    tasks = {task.function: task for task in seqlib.exercises.get_assignment(name).tasks}
    full = {function: task.points for function, task in tasks.items()}
    for entry in declared(name).values():
        assert entry["scores"].keys() == full.keys()
        if entry["name"].startswith(("the solution", "right")):
            assert entry["scores"] == full
        if entry["name"] in ("blank", "zeros", "constant", "first argument"):
            assert set(entry["scores"].values()) == {0}


def test_a_mistake_costs_something(samples):
    name, found = samples
    tasks = {task.id: task for task in seqlib.exercises.get_assignment(name).tasks}
    for sample, entry in zip(found, declared(name).values(), strict=True):
        for task, score in ((tasks[i], entry["scores"][tasks[i].function]) for i in tasks):
            if task.kind == "training" and task.id not in sample.mistakes:
                continue  # not written: training takes too long
            assert (score < task.points) == (task.id in sample.mistakes) or not sample.mistakes


def test_harmless_samples_keep_their_ids(samples, tmp_path):
    name, found = samples
    everything = write_samples(found, tmp_path / "all", name)
    harmless = write_samples(found, tmp_path / "harmless", name, harmless=True)
    assert harmless == {s: sample for s, sample in everything.items() if sample.harmless}
    assert len(harmless) < len(everything)
    for student in harmless:
        folders = (tmp_path / part / student / name for part in ("all", "harmless"))
        first, second = ({p.name: p.read_bytes() for p in f.iterdir()} for f in folders)
        assert first == second


def test_samples_do_not_mix_with_real_submissions(samples, tmp_path):
    name, found = samples
    write_samples(found, tmp_path, name)
    (tmp_path / "s001" / name / "old.ipynb").touch()
    write_samples(found[:2], tmp_path, name)
    assert sorted(p.name for p in tmp_path.glob(f"*/{name}/*.ipynb")) == [f"{name}.ipynb"] * 2
    real = tmp_path / "ada" / name / f"{name}.ipynb"
    real.parent.mkdir(parents=True)
    real.touch()
    with pytest.raises(ValueError, match="must hold no submission of a real student, got ada"):
        write_samples(found, tmp_path, name)
    assert real.exists()


def differences(entries, records):
    """Return what differs between declared and recorded scores and states."""
    for student, entry in entries.items():
        record = records[student]
        scores = {t.rpartition(".")[2]: v["score"] for t, v in record["tasks"].items()}
        if (record["state"], scores) != (entry["state"], entry["scores"]):
            yield student, entry["name"], record["state"], scores


@pytest.mark.parametrize("name", NAMES)
def test_some_harmless_samples_get_their_scores_without_a_sandbox(name, course):
    found = SampleClass(course, name).samples()
    written = write_samples(found, course.grading / "submitted", name, harmless=True)
    students = list(written)[::6]
    with Grader(course, name, trust_students=True) as grader:
        records = {student: grader.grade(student) for student in students}
    entries = {student: declared(name)[student] for student in students}
    assert list(differences(entries, records)) == []


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
@pytest.mark.parametrize("name", NAMES)
def test_every_sample_gets_its_score_in_the_sandbox(name, course):
    found = SampleClass(course, name).samples()
    written = write_samples(found, course.grading / "submitted", name)
    outcome = grade_class(course, name)
    assert outcome.failures == {}
    assert list(differences(declared(name), outcome.records)) == []
    for student, sample in written.items():
        for task, misconception in sample.mistakes.items():
            diagnosis = outcome.records[student]["tasks"][task]["diagnosis"]
            assert diagnosis["kind"] == "mistake"
            assert diagnosis["names"] == [misconception]
    assert sorted(outcome.records) == sorted(written)


# How a known mistake becomes a cell


def helper(x):
    return np.add(x, FACTOR)


FACTOR = 3


def user(x):
    return helper(x) * FACTOR


def test_a_function_stands_alone():
    source = standalone(user, "_made")
    ast.parse(source)
    names = {}
    exec(source, names)
    assert names["_made"](4) == 21
    assert set(names) == {"__builtins__", "_made"}


UNWRITABLE = object()


def needs_more(x):
    return UNWRITABLE


def test_what_cannot_be_written_down_is_refused():
    with pytest.raises(ValueError, match="UNWRITABLE must be a plain value"):
        standalone(needs_more, "_made")


def test_a_mistake_becomes_a_cell_of_the_right_signature():
    task = tiny_course.ASSIGNMENT.tasks[0]
    names = {}
    exec(mistake(task, task.misconceptions[0]), names)
    assert names["double"](4) == 9


@pytest.mark.parametrize(
    ("signature", "passed"),
    [
        ("(x)", "x"),
        ("(x, y=None) -> z", "x, y"),
        ("(x, *, n_head, mask=None)", "x, n_head=n_head, mask=mask"),
    ],
)
def test_all_parameters_are_passed_on(signature, passed):
    task = dataclasses.replace(tiny_course.ASSIGNMENT.tasks[0], signature=signature)
    assert call_text(task)[1] == passed


def test_a_sample_class_needs_nothing_of_a_certain_assignment(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    found = {sample.name: sample for sample in SampleClass(course, "tiny").samples()}
    assert found["mistakes 1"].mistakes == {"tiny.double": "one_more"}
    blank = json.loads(found["blank"].files["tiny.ipynb"])
    assert cell_of(blank, "add")["source"] == cell_of(tiny_course.released(), "add")["source"]
    written = write_samples(list(found.values()), course.grading / "submitted", "tiny")
    student = {sample.name: student for student, sample in written.items()}
    with Grader(course, "tiny", trust_students=True) as grader:
        assert grader.grade(student["the solution"])["score"] == 80.0
        assert grader.grade(student["mistakes 1"])["score"] == 40.0
