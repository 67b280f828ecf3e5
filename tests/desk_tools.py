"""What an instructor does with the tiny course, for tests of commands and of the gradebook."""

import shutil

import pytest
import tiny_course
from click.testing import CliRunner

import seqlib.cli as cli
from seqlib.grading.course import Course
from seqlib.grading.gradebook.writer import Writer, open_gradebook, register
from seqlib.grading.grader import Grader


def lay_out(folder):
    """Lay out the released course with a gradebook, and return its folder; it takes seconds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        tiny_course.register(monkeypatch)
        course = tiny_course.make_course(folder)
        register(course, "tiny")
    return course.root


def copy_course(template, folder, monkeypatch):
    """Return a copy of a course that was laid out, for one test."""
    tiny_course.register(monkeypatch)
    shutil.copytree(template, folder / "course")
    return Course(folder / "course")


def grade(course, name="tiny", *, force=False, **submissions):
    """Grade without worker processes, and write what comes of it into the gradebook.

    Returns the records by student: of those whose notebooks are given, or of all.
    """
    for student, notebook in submissions.items():
        tiny_course.submit(course, student, notebook)
    records = {}
    with Grader(course, name, trust_students=True) as grader, Writer(course, name) as writer:
        for student in submissions or course.students(name):
            records[student] = grader.grade(student, force=force)
            writer.apply(records[student], force=force)
    return records


def give(course, *students, points=15.0, comment=None):
    """Mark the written answer, as a person does in formgrader."""
    with open_gradebook(course) as gradebook:
        for student in students:
            found = gradebook.find_grade("why", "tiny", "tiny", student)
            found.manual_score, found.needs_manual_grade = points, False
            if comment:
                gradebook.find_comment("why", "tiny", "tiny", student).manual_comment = comment
        gradebook.db.commit()


def invoke(course, *arguments, code=0):
    """Run the command in a course, and return its result."""
    result = CliRunner().invoke(cli.main, ["--course", str(course.root), *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def run(course, *arguments, code=0):
    """Run the command in a course, and return what it prints."""
    return invoke(course, *arguments, code=code).output
