"""Every task of the course through both subjects: the records are equal field by field."""

from pathlib import Path

import nbformat
import pytest

import seqlib.exercises as exercises
from seqlib.grading.samples.answers import mistake, zeros
from seqlib.grading.sandbox.box import Sandbox
from seqlib.grading.sandbox.student_build import write_student_build
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", params=exercises.ASSIGNMENTS)
def assignment(request, tmp_path_factory):
    """Return the record, the cells of the solution by name, and an open sandbox's opener."""
    record = exercises.get_assignment(request.param)
    path = ROOT / "solutions" / record.name / f"{record.name}.ipynb"
    cells = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    build = write_student_build(record.grants, tmp_path_factory.mktemp("build"))
    with Sandbox(torch=record.torch, plots=False) as sandbox:
        yield record, cells, lambda: sandbox.open(build)


def test_every_task_gives_the_same_record(assignment):
    record, cells, open_submission = assignment
    for task in record.tasks:
        answers = {"solution": cells[task.function], "zeros": zeros(task)}
        if task.misconceptions:
            answers["mistake"] = mistake(task, task.misconceptions[0])
        for kind, answer in answers.items():
            source = f"{cells['setup']}\n\n{answer}"
            space = {}
            exec(compile(source, "<cell>", "exec"), space)
            here = judge(task, InProcess(space[task.function]), 11)
            with open_submission() as submission:
                submission.run_cell(source)
                subject = submission.subject(task.function)
                there = judge(task, subject, 11)
                subject.close()
            assert there.to_dict() == here.to_dict(), (task.id, kind)
            assert (here.score == here.points) == (kind == "solution"), (task.id, kind)
