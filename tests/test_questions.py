"""Questions in words: a rubric and a model answer for each; the tables of the notebooks."""

import json
import re
import tomllib

import pytest
import tiny_course
from click.testing import CliRunner
from course_book import notebooks
from course_book.data import ROOT, GapError, Topic

import seqlib
from seqlib.cli import main
from seqlib.exercises import ASSIGNMENTS, PRACTICE, get_assignment
from seqlib.exercises.record import Written
from seqlib.grading.course import Course
from seqlib.grading.rubric import rubric_lines

QUESTIONS = [(name, q) for name in ASSIGNMENTS for q in get_assignment(name).written]
IDS = [f"{name}.{question.id}" for name, question in QUESTIONS]
BOOK = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md"))


def cell(name, key):
    """Return the source of a cell of the instructor's notebook."""
    notebook = json.loads(Course(ROOT).source(name).read_text(encoding="utf-8"))
    return "".join(tiny_course.cell_of(notebook, key)["source"])


# The course's own questions


def test_every_assignment_has_one():
    assert [name for name, _ in QUESTIONS] == list(ASSIGNMENTS)


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=IDS)
def test_each_has_a_model_answer_to_each_of_its_parts(name, question):
    answer, about = cell(name, question.id), cell(name, f"about_{question.id}")
    parts = re.findall(r"^\(([a-f])\)", about, re.MULTILINE)
    assert len(parts) >= 2
    assert re.findall(r"^\(([a-f])\)", answer, re.MULTILINE) == parts
    assert len(answer.split()) > 20 * len(parts)
    rubric = " ".join(question.rubric)
    assert {f"({part})" for part in parts} <= set(re.findall(r"\([a-f]\)", rubric))


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=IDS)
def test_the_rubric_pays_the_points_line_by_line(name, question):
    paid = [re.match(r"(\d+(?:\.\d+)?) points?: ", line) for line in question.rubric]
    assert all(paid)
    assert sum(float(match[1]) for match in paid) == question.points


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=IDS)
def test_neither_answer_nor_rubric_stands_in_the_book(name, question):
    long = [s for s in re.split(r"[\n.;]", cell(name, question.id)) if len(s.split()) > 7]
    assert long
    for sentence in (*long, *question.rubric):
        assert sentence.strip() not in BOOK


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=IDS)
def test_neither_stands_in_the_release(name, question):
    text = Course(ROOT).release_file(name).read_text(encoding="utf-8")
    for line in cell(name, question.id).splitlines():
        assert len(line.split()) < 8 or json.dumps(line)[1:-1] not in text


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_command_prints_both(name):
    result = CliRunner().invoke(main, ["--course", str(ROOT), "rubric", name])
    assert result.exit_code == 0, result.output
    (question,) = get_assignment(name).written
    assert result.output.startswith(cell(name, f"about_{question.id}").splitlines()[0])
    assert cell(name, question.id).strip() in result.output
    words = " ".join(result.output.split())
    assert all(" ".join(line.split()) in words for line in question.rubric)
    assert f"Rubric, {question.points:g} points" in result.output


# The command on other courses


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    notebook = tiny_course.source()
    tiny_course.cell_of(notebook, "question")["id"] = "about_why"
    tiny_course.write(course.source("tiny"), notebook)
    return course


def test_the_lines_of_a_small_course(course):
    assert rubric_lines(course, "tiny") == [
        "Why?",
        "",
        "Rubric, 20 points",
        "- names the sum: 20",
        "",
        "Model answer, cell why of solutions/tiny/tiny.ipynb",
        "",
        tiny_course.ANSWER,
    ]


@pytest.mark.parametrize("key", ["why", "about_why"])
def test_a_missing_text_is_named(course, key):
    notebook = json.loads(course.source("tiny").read_bytes())
    tiny_course.cell_of(notebook, key)["source"] = " \n"
    tiny_course.write(course.source("tiny"), notebook)
    with pytest.raises(ValueError, match="must have the cells about_why and why"):
        rubric_lines(course, "tiny")


def test_an_assignment_without_questions_and_one_without_source(tmp_path):
    assert rubric_lines(Course(ROOT), "setup") == ["setup has no question in words."]
    with pytest.raises(ValueError, match=r"source solutions/rnn/rnn\.ipynb"):
        rubric_lines(Course(tmp_path), "rnn")


# The tables of the book


def test_the_table_has_every_notebook_with_its_hours_and_points():
    lines = notebooks.notebook_table().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == [*PRACTICE, *ASSIGNMENTS]
    for line in lines:
        name, title, _, tasks, points, time = (c.strip() for c in line.split("|")[1:-1])
        _, name, place = name.split("`")
        assert f'data-name="{name}"' in place  # where the site puts its links
        record = get_assignment(name)
        assert (title, int(tasks)) == (record.title, len(record.tasks))
        amount, unit = time.split()
        assert float(amount) / {"h": 1, "min": 60}[unit] == record.hours
        assert sum(map(float, points.split("+"))) == 100 if record.graded else points == "none"


def test_the_table_leads_to_the_chapters_of_an_assignment():
    topics = [
        Topic("rnn", "", "", "", ("page",), "rnn"),
        Topic("loss", "", "", "", ("np",), "rnn"),
        Topic("gru", "", "", "", ("page",), "gates"),
    ]
    (line,) = notebooks.notebook_table(["rnn"], topics).splitlines()[2:]
    assert line.split("|")[3].strip() == "{doc}`/book/rnn`"


def test_the_table_of_questions_has_each_with_its_heading():
    lines = notebooks.question_table().splitlines()[2:]
    assert len(lines) == len(QUESTIONS)
    for line, (name, question) in zip(lines, QUESTIONS, strict=True):
        cells = [c.strip() for c in line.split("|")[1:-1]]
        assert cells[0] == f"`{name}`"
        assert cell(name, f"about_{question.id}").splitlines()[0].count(cells[1]) == 1
        assert cells[2:] == [
            f"`{question.id}`",
            f"{question.points:g}",
            str(len(question.rubric)),
        ]


def test_a_question_without_text_is_a_gap():
    with pytest.raises(GapError, match="about_nothing"):
        notebooks.heading("rnn", Written("nothing", 1.0, ()).id)


@pytest.mark.parametrize("page", ["intro", "students", "instructors"])
def test_the_pages_of_the_course_have_the_table_of_notebooks(page):
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    assert text.count("```{notebooks}\n```") == 1


def test_what_the_pages_say_of_the_notebooks():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "There are eight assignments of 100 points" in readme
    assert len(ASSIGNMENTS) == 8
    assert {get_assignment(name).points for name in ASSIGNMENTS} == {100}
    with_torch = [name for name in ASSIGNMENTS if get_assignment(name).torch]
    students = (ROOT / "book" / "students.md").read_text(encoding="utf-8")
    assert "All need NumPy alone, except `decoder`" in students
    assert with_torch == ["decoder"]


def test_the_package_is_called_by_its_version():
    students = (ROOT / "book" / "students.md").read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["version"] == seqlib.__version__
    names = re.findall(r"seqlib_course-(\S+?)-py3-none-any\.whl", students)
    assert names == [seqlib.__version__] * 2
