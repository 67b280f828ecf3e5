"""nbgrader: its gradebook and folders after our grading, and our plug-ins in its commands."""

import html.parser
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import tiny_course
from nbconvert.exporters import HTMLExporter
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.validator import Validator
from tiny_course import as_bytes, cell_of, extra, solved, submit, write

from seqlib.grading.course import Course
from seqlib.grading.gradebook.marks import marked_students, stale_marks
from seqlib.grading.gradebook.writer import Writer, open_gradebook, register
from seqlib.grading.grader import Grader
from seqlib.grading.nbgrader_plugins import close_graders, substitute
from seqlib.grading.notebook import present
from seqlib.grading.records import Store
from seqlib.grading.release import load_config, release
from seqlib.grading.report import write_report

ROOT = Path(__file__).resolve().parents[1]
# SQLAlchemy speaks of how nbgrader uses it, traitlets of how nbconvert uses that.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Lay out a released course with a gradebook once; making that takes seconds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        tiny_course.register(monkeypatch)
        course = tiny_course.make_course(tmp_path_factory.mktemp("course"), release=False)
        release(course, "tiny")
        register(course, "tiny")
    return course.root


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    root = tmp_path / "course"
    shutil.copytree(template, root)
    yield Course(root)
    close_graders()


def grade(course, *students, writer=None, force=False):
    writer = writer or Writer(course, "tiny")
    with Grader(course, "tiny", trust_students=True) as grader:
        return [writer.apply(grader.grade(student), force=force) for student in students]


class Tenth(LateSubmissionPlugin):
    """Takes a tenth of the score of a late submission."""

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 10


def config(course):
    found = load_config(course)
    found.JudgeExecute.trust_students = True
    found.CourseDirectory.assignment_id = "tiny"
    return found


def run(converter, course):
    converter(coursedir=CourseDirectory(config=config(course)), config=config(course)).start()


def grades(course, student="s001"):
    with open_gradebook(course) as gradebook:
        notebook = gradebook.find_submission_notebook("tiny", "tiny", student)
        return {g.name: (g.auto_score, g.needs_manual_grade) for g in notebook.grades}


RIGHT = {"test-double": (40.0, False), "test-add": (40.0, False), "why": (None, True)}


# The gradebook's writer


def test_grades_are_in_the_gradebook_and_the_notebook_in_its_place(course):
    submit(course, "s001", solved(double="def double(x):\n    return x"))
    assert grade(course, "s001") == [True]
    assert grades(course) == {**RIGHT, "test-double": (0.0, False)}
    path = course.autograded("s001", "tiny") / "tiny.ipynb"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    nbformat.validate(nbformat.read(path, as_version=4))


def test_what_is_there_already_is_not_written_again(course):
    submit(course, "s001", solved())
    assert grade(course, "s001", "s001") == [True, False]
    path = course.autograded("s001", "tiny") / "tiny.ipynb"
    path.chmod(0o644)
    path.write_text(path.read_text().replace("40 of 40", "99 of 40"))
    assert grade(course, "s001") == [True]
    assert "99 of 40" not in path.read_text()


def test_a_lost_gradebook_is_filled_again_from_the_records(course):
    submit(course, "s001", solved())
    grade(course, "s001")
    (course.grading / "gradebook.db").unlink()
    assert grade(course, "s001") == [True]
    assert grades(course) == RIGHT


def test_an_unanswered_question_needs_no_person(course):
    submit(course, "s001", tiny_course.released())
    grade(course, "s001")
    assert grades(course)["why"] == (0.0, False)


def test_the_time_of_a_submission_and_files_of_the_release_go_along(course):
    (course.release_file("tiny").parent / "table.csv").write_text("1,2")
    submit(course, "s001", solved())
    folder = course.submission("s001", "tiny")
    (folder / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC\n")
    (folder / "page.html").write_text("<script>alert(1)</script>")
    (folder / "link.txt").symlink_to(course.source("tiny"))
    grade(course, "s001")
    found = sorted(p.name for p in course.autograded("s001", "tiny").iterdir())
    assert found == ["table.csv", "timestamp.txt", "tiny.ipynb"]
    with open_gradebook(course) as gradebook:
        assert str(gradebook.find_submission("tiny", "s001").timestamp) == "2026-03-01 12:00:00"


def test_a_new_time_is_noted_and_a_new_due_date_when_forced(course):
    submit(course, "s001", solved())
    folder = course.submission("s001", "tiny")
    (folder / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    assert grade(course, "s001") == [True]
    (folder / "timestamp.txt").write_text("2026-03-03 12:00:00 UTC")
    assert grade(course, "s001", "s001") == [True, False]
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-02 12:00:00 UTC")
        assert gradebook.find_submission("tiny", "s001").total_seconds_late == 86400
    found = config(course)
    found.AssignLatePenalties.plugin_class = Tenth
    writer = Writer(course, "tiny", config=found)
    assert grade(course, "s001", writer=writer) == [False]
    assert grade(course, "s001", writer=writer, force=True) == [True]
    with open_gradebook(course) as gradebook:
        assert gradebook.find_submission("tiny", "s001").late_submission_penalty == 8.0


def test_a_penalty_is_taken_from_the_score_of_the_newest_submission(course):
    """Of 80 points a tenth is 8; the submission before that had none."""
    found = config(course)
    found.AssignLatePenalties.plugin_class = Tenth
    writer = Writer(course, "tiny", config=found)
    penalties = []
    for notebook in (tiny_course.released(), solved()):
        submit(course, "s001", notebook)
        time = course.submission("s001", "tiny") / "timestamp.txt"
        time.write_text("2026-03-03 12:00:00 UTC")
        with open_gradebook(course) as gradebook:
            gradebook.update_or_create_assignment("tiny", duedate="2026-03-02 12:00:00 UTC")
        grade(course, "s001", writer=writer)
        with open_gradebook(course) as gradebook:
            penalties.append(gradebook.find_submission("tiny", "s001").late_submission_penalty)
    assert penalties == [0.0, 8.0]


@pytest.mark.parametrize("content", ["", "yesterday", "9" * 5000, "2026-99-99", "\x00"])
def test_a_time_that_is_none_is_left_out(course, content):
    submit(course, "s001", solved())
    (course.submission("s001", "tiny") / "timestamp.txt").write_text(content)
    grade(course, "s001")
    with open_gradebook(course) as gradebook:
        assert gradebook.find_submission("tiny", "s001").timestamp is None


def test_an_assignment_with_other_cells_is_refused_once_there_are_submissions(course):
    submit(course, "s001", solved())
    grade(course, "s001")
    notebook = course.release("tiny")
    notebook["cells"].remove(cell_of(notebook, "text-add"))
    write(course.release_file("tiny"), notebook)
    with pytest.raises(
        ValueError, match="gradebook must have the cells of the release of tiny"
    ):
        Writer(course, "tiny")


def test_a_changed_text_of_the_release_is_registered(course):
    source = tiny_course.source()
    cell_of(source, "text-add")["source"] = "Add both."
    write(course.source("tiny"), source)
    release(course, "tiny")
    submit(course, "s001", solved())
    grade(course, "s001")
    with open_gradebook(course) as gradebook:
        assert gradebook.find_source_cell("text-add", "tiny", "tiny").source == "Add both."


def mark(course, score=None, comment=None):
    with open_gradebook(course) as gradebook:
        if score is not None:
            grade = gradebook.find_grade("why", "tiny", "tiny", "s001")
            grade.manual_score, grade.needs_manual_grade = score, False
        if comment is not None:
            gradebook.find_comment("why", "tiny", "tiny", "s001").manual_comment = comment
        gradebook.db.commit()


def stale(course):
    with open_gradebook(course) as gradebook:
        return stale_marks(gradebook, Store(course.records, "tiny", "s001"), "tiny", "s001")


def test_a_persons_marks_are_kept_and_stale_ones_are_listed(course):
    submit(course, "s001", solved())
    grade(course, "s001")
    mark(course, score=15.0, comment="Good.")
    assert stale(course) == []
    grade(course, "s001")
    assert stale(course) == []
    submit(course, "s001", solved(why="Another answer."))
    grade(course, "s001")
    assert stale(course) == ["why"]
    for path in write_report(course, "tiny")[:2]:  # the page and the table of students
        assert "Marks given to an older submission: why." in path.read_text()
    with open_gradebook(course) as gradebook:
        kept = gradebook.find_grade("why", "tiny", "tiny", "s001")
        assert (kept.manual_score, kept.needs_manual_grade) == (15.0, True)
        assert gradebook.find_comment("why", "tiny", "tiny", "s001").comment == "Good."
    mark(course, score=16.0, comment="Better.")
    assert stale(course) == []
    assert "an older submission" not in write_report(course, "tiny")[0].read_text()


@pytest.mark.parametrize("given", [{"score": 15.0}, {"comment": "Good."}])
def test_students_with_marks_are_found_at_once(course, given):
    for student in ("s001", "s002"):
        submit(course, student, solved())
        grade(course, student)
    with open_gradebook(course) as gradebook:
        assert marked_students(gradebook, "tiny") == set()
    mark(course, **given)
    with open_gradebook(course) as gradebook:
        assert marked_students(gradebook, "tiny") == {"s001"}
        assert marked_students(gradebook, "other") == set()


# What reaches a browser

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onmouseover=alert(1)>c</b>",
    "<svg/onload=alert(1)>",
    "<!-- --><script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](javascript&colon;alert(1))",
    "[a](javascript\\:alert(1))",
    "[a]( <javascript:alert(1)>)",
    "[a]\n\n[a]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "![a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](data:text/html,<script>alert(1)</script>)",
    '![a](x" onerror="alert(1))',
    '[a](x "y\\" onmouseover=\\"alert(1)")',
    "$\\href{javascript:alert(1)}{x}$",
    "$$\\require{html}\\cssId{x}{y}$$",
    "`<script>alert(1)</script>`",
    "```\n<script>alert(1)</script>\n```",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<scr\x00ipt>alert(1)</script>",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "<style>*{display:none}</style>",
    "<details open ontoggle=alert(1)>",
]


class Tags(html.parser.HTMLParser):
    """Collects the tags of a page and their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def dangers(self):
        for tag, attributes in self.found:
            if tag in ("script", "iframe", "svg", "style", "object", "embed", "details", "b"):
                yield tag
            for name, value in attributes.items():
                address = (value or "").strip().lower()
                if name.startswith("on") or name == "srcdoc":
                    yield name
                if address.startswith(("javascript", "vbscript", "data:text")):
                    yield value


@pytest.fixture(scope="module")
def render():
    """Return what nbgrader's pages make of markdown."""
    exporter = HTMLExporter()
    return lambda source: exporter.markdown2html({}, source)


@pytest.mark.parametrize("source", HOSTILE)
def test_no_markdown_of_a_student_becomes_html(render, source):
    page = render(present.markdown(source))
    assert list(Tags(page).dangers()) == []
    assert "\\href" not in page
    assert "\\require" not in page


def test_the_renderer_would_let_it_through(render):
    assert list(Tags(render(HOSTILE[0])).dangers()) == ["script"]
    assert list(Tags(render(HOSTILE[6])).dangers()) == ["javascript:alert(1)"]


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("$a<b$ and $x < y$", "$a< b$ and $x < y$"),
        ("A & B, 1 < 2, `x = {'data': 1}`", "A & B, 1 < 2, `x = {'data': 1}`"),
        ("![p](data:image/png;base64,aGk=)", "![p](data:image/png;base64,aGk=)"),
        ("\\begin{matrix}a&b\\\\c&d\\end{matrix}", "\\begin{matrix}a&b\\\\c&d\\end{matrix}"),
        ("The data: two rows.", "The data: two rows."),
    ],
)
def test_honest_text_stays(source, same):
    assert present.markdown(source) == same


def test_nothing_of_a_student_runs_in_the_feedback(course):
    notebook = solved(why="\n\n".join(HOSTILE))
    notebook["cells"] += [
        extra("<script>alert(2)</script>", "raw", id="raw"),
        extra("```\n<script>alert(3)</script>", "raw", id="raw-2"),
        extra("print('<script>alert(4)</script>')", id="print"),
        extra("raise ValueError('<script>alert(5)</script>')", id="raise"),
        extra("1", id="x", metadata={"tags": ["<script>alert(6)</script>"]}),
    ]
    notebook["metadata"]["title"] = "<script>alert(7)</script>"
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"a": 1}}
    submit(course, "s001", notebook, name="<script>alert(8)</script>.ipynb".replace("/", "_"))
    grade(course, "s001")
    run(GenerateFeedback, course)
    page = (course.grading / "feedback/s001/tiny/tiny.html").read_text()
    assert "alert" in page
    scripts = page.split("<script")
    assert not any("alert" in part.split("</script")[0] for part in scripts[1:])
    found = [d for d in Tags(page).dangers() if d not in ("script", "style")]
    assert found == []


# Our plug-ins in nbgrader


def test_autograde_gives_the_scores_of_our_own_command(course, template):
    data = as_bytes(solved())
    submissions = {
        "s001": ("tiny.ipynb", solved()),
        "s002": ("tiny.ipynb", solved(double="def double(x):\n    return x")),
        "s003": ("hw (1).ipynb", solved()),
        "s004": ("tiny.ipynb", data[: data.index(b'"Add them."')]),
        "s005": ("tiny.ipynb", b"<html>"),
        "s006": ("tiny.ipynb", b""),
    }
    duplicated = solved()
    duplicated["cells"].insert(3, cell_of(duplicated, "test-add"))
    submissions["s007"] = ("tiny.ipynb", duplicated)
    for student, (name, content) in submissions.items():
        submit(course, student, content, name=name)
    run(Autograde, course)
    theirs = {student: grades(course, student) for student in submissions}
    assert {s: sum(score or 0 for score, _ in g.values()) for s, g in theirs.items()} == {
        "s001": 80.0,
        "s002": 40.0,
        "s003": 80.0,
        "s004": 40.0,
        "s005": 0.0,
        "s006": 0.0,
        "s007": 80.0,
    }
    # Our own command finds nothing left to do but to put its own notebook in place.
    shutil.rmtree(course.grading / "autograded")
    shutil.copy(template / "grading" / "gradebook.db", course.grading)
    grade(course, *submissions)
    assert {student: grades(course, student) for student in submissions} == theirs


def test_autograde_registers_the_assignment(course):
    with open_gradebook(course) as gradebook:
        gradebook.remove_assignment("tiny")
    submit(course, "s001", solved())
    run(Autograde, course)
    assert grades(course) == RIGHT


def test_the_button_of_formgrader_does_the_same(course, monkeypatch):
    submit(course, "s001", solved(), name="hw (1).ipynb")
    found = config(course)
    api = NbGraderAPI(CourseDirectory(config=found), config=found)
    done = api.autograde("tiny", "s001")
    assert done["success"], done
    assert grades(course) == RIGHT
    (submission,) = api.get_submissions("tiny")
    assert (submission["score"], submission["needs_manual_grade"]) == (80.0, True)


def test_autograde_leaves_the_submission_alone(course):
    submit(course, "s001", as_bytes(solved())[:-200], name="mine.ipynb")
    folder = course.submission("s001", "tiny")
    before = [(p.name, p.read_bytes()) for p in folder.iterdir()]
    run(Autograde, course)
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == before


@pytest.mark.parametrize("name", ["tiny.ipynb", "hw (1).ipynb"])
def test_without_isolation_autograde_grades_nothing(course, monkeypatch, name):
    from seqlib.grading import nbgrader_plugins
    from seqlib.grading.sandbox import isolation

    def refuse():
        raise isolation.IsolationError("nothing holds here")

    monkeypatch.setattr(nbgrader_plugins, "require_isolation", refuse)
    submit(course, "s001", solved(), name=name)
    found = config(course)
    found.JudgeExecute.trust_students = False
    with pytest.raises(NbGraderException):
        Autograde(coursedir=CourseDirectory(config=found), config=found).start()
    # Not 0 but no score yet.
    assert grades(course)["test-add"] == (None, True)
    assert not course.autograded("s001", "tiny").exists()


def test_the_hook_names_the_expected_file(course, monkeypatch):
    monkeypatch.chdir(course.root)
    notebooks = [str(course.submission("s001", "tiny") / "hw (1).ipynb"), "other"]
    substitute("tiny", "*", notebooks)
    assert notebooks == [str(course.submission("s001", "tiny") / "tiny.ipynb")]


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_stock_commands_work_on_the_course(tmp_path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    for folder in ("solutions", "assignments"):
        shutil.copytree(ROOT / folder / "attention", tmp_path / folder / "attention")
    course = Course(tmp_path)
    right = course.submission("s001", "attention")
    right.mkdir(parents=True)
    shutil.copy(course.source("attention"), right / "attention (1).ipynb")
    blank = course.submission("s002", "attention")
    blank.mkdir(parents=True)
    shutil.copy(course.release_file("attention"), blank)
    # The environment is not activated: nothing but Python is on the path.
    environment = os.environ | {"PATH": "/usr/bin:/bin"}
    for command in ("autograde", "generate_feedback", "export"):
        arguments = ["attention"] if command != "export" else []
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", command, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
    rows = (tmp_path / "grades.csv").read_text().splitlines()
    columns = rows[0].split(",")
    found = {
        r["student_id"]: r
        for r in (dict(zip(columns, row.split(","), strict=True)) for row in rows[1:])
    }
    assert found["s001"]["score"] == "90.0"
    assert found["s002"]["score"] == "0.0"
    page = (tmp_path / "grading/feedback/s001/attention/attention.html").read_text()
    assert "attention.split_heads: 5 of 5 points" in page
    assert "<script" not in page  # nbgrader's own page asks a public server for MathJax
    assert "default-src 'none'" in page
    assert "There was no usable &quot;attention.ipynb&quot;" in page.replace('"', "&quot;")


@pytest.mark.slow
def test_validate_of_stock_nbgrader_passes_on_the_solution(monkeypatch):
    monkeypatch.chdir(ROOT / "solutions" / "attention")
    assert Validator().validate(str(ROOT / "solutions/attention/attention.ipynb")) == {}


def test_the_configuration_skips_no_cell_that_a_student_can_name(course):
    tags = {load_config(course).ExecutePreprocessor.skip_cells_with_tag for _ in range(2)}
    assert len(tags) == 2
    assert all(len(tag) == 32 for tag in tags)


def test_the_configuration_makes_the_folder_of_the_gradebook(tmp_path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    directory = CourseDirectory(config=load_config(Course(tmp_path)))
    assert (tmp_path / "grading").is_dir()
    assert directory.db_url == f"sqlite:///{tmp_path}/grading/gradebook.db"
    assert json.dumps(directory.root) == json.dumps(str(tmp_path))
