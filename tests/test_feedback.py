"""Feedback pages in the archives that platforms take, and what is not in them."""

import dataclasses
import html
import importlib
import json
import re
import shutil
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import exports_made
import numpy as np
import pytest
import tiny_course
from desk_tools import copy_course, give, grade, lay_out, run
from tiny_course import as_bytes, solved, submit

from seqlib.grading.collect.run import collect
from seqlib.grading.export.marks import collect_marks
from seqlib.grading.feedback.pack import _generate, feedback
from seqlib.grading.gradebook.writer import open_gradebook, register
from seqlib.grading.records import Store
from seqlib.grading.release import load_config

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("course"))


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    course = copy_course(template, tmp_path, monkeypatch)
    monkeypatch.chdir(course.root)
    return course


def pack(course, to="generic", **options):
    """Return the sentences and the pages, with the rules that hold for every archive."""
    path = course.root / "f.zip"
    with open_gradebook(course) as gradebook:
        said = feedback(gradebook, course, "tiny", to, out=path, **options)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            parts = name.split("/")
            assert not name.startswith("/")
            assert not {"", ".", ".."} & set(parts)
            assert not re.search(r'[<>:"\\|?*\x00-\x1f]', name)
        pages = {name: archive.read(name).decode() for name in archive.namelist()}
        assert not any(Asked(page).found for page in pages.values())
        return said, pages


def canvas_import(names):
    """Return ``{(user, upload): name}`` as Canvas reads the names of an archive."""
    found = {}
    for name in names:
        parts = [part for part in name.split("/")[-1].split("_") if part != "LATE"]
        user, upload = [part for part in parts if re.fullmatch(r"\d+", part)][:2]
        assert not parts[-1].startswith("link")
        found[user, upload] = name
    return found


def moodle_import(names):
    """Return ``{participant: file}`` as Moodle reads the paths of an archive."""
    found = {}
    for name in names:
        folder, _, file = name.partition("/")
        person, number, kind, plugin, rest = folder.split("_", 4)
        assert person
        assert (kind, plugin, rest) == ("assignsubmission", "file", "")
        assert number.isdecimal()
        found[number] = file
    return found


# Layouts


@pytest.fixture
def people():
    """Return four with an umlaut, other letters, a number in the name, and a namesake."""
    everybody = exports_made.people(9)
    return [everybody[place] for place in (0, 3, 6, 8)]


def uploads(people):
    notebooks = [solved(why=f"Answer {person.number}.") for person in people]
    return [
        exports_made.Upload(
            person, [("my work_1.ipynb", as_bytes(notebook))], late=not person.number % 3
        )
        for person, notebook in zip(people, notebooks, strict=True)
    ]


def collected(course, files, platform):
    path = course.root / "download.zip"
    exports_made.write_zip(path, files)
    report = collect(course, [path], "tiny", platform=platform)
    assert report.complete
    grade(course)
    students = course.students("tiny")
    give(course, *students)
    return students


def test_canvas_gets_the_names_that_it_has_given(course, people):
    files = exports_made.canvas_files(uploads(people))
    students = collected(course, files, "canvas")
    said, pages = pack(course, "canvas")
    assert said[1] == f"{len(students)} pages written."
    theirs = canvas_import(name for name, _ in files)
    ours = canvas_import(pages)
    assert set(ours) == set(theirs)
    for key, name in ours.items():
        assert name.removesuffix(".html") == theirs[key].removesuffix(".ipynb")
        person = next(p for p in people if p.canvas == key[0])
        assert f"Answer {person.number}." in pages[name]


def test_canvas_gives_no_page_to_a_user_whose_number_is_in_a_name(course):
    """The name of Eve ends like the number of Carol, who handed in nothing."""
    carol = exports_made.Student(12, "Jones", "Carol")
    eve = exports_made.Student(13, f"Smith_{carol.canvas}", "")
    path, roster = course.root / "download.zip", course.root / "r.csv"
    upload = exports_made.Upload(eve, [("tiny.ipynb", as_bytes(solved()))], attachment=900)
    exports_made.write_zip(path, exports_made.canvas_files([upload]))
    exports_made.roster(roster, [carol, eve])
    assert collect(course, [path], "tiny", roster=roster).collected == [eve.id]
    grade(course)
    give(course, eve.id)
    _, pages = pack(course, "canvas")
    assert set(canvas_import(pages)) == {(eve.canvas, "900")}


@pytest.mark.parametrize("folders", [True, False])
def test_moodle_gets_folders_with_name_and_number(course, people, folders):
    files = exports_made.moodle_files(uploads(people), folders=folders)
    collected(course, files, "moodle")
    _, pages = pack(course, "moodle")
    assert moodle_import(pages) == {p.participant: "tiny.html" for p in people}
    given = {name.split("_assignsubmission")[0] for name, _ in files}
    assert {name.split("_assignsubmission")[0] for name in pages} == given
    for name, page in pages.items():
        person = next(p for p in people if f"_{p.participant}_" in name)
        assert f"Answer {person.number}." in page


def test_blackboard_gets_a_folder_for_each_user_name(course, people):
    collected(course, exports_made.blackboard_files(uploads(people)), "blackboard")
    _, pages = pack(course, "blackboard")
    assert sorted(pages) == sorted(f"{p.id}/tiny.html" for p in people)


def test_without_a_platform_there_is_a_folder_for_each_student(course):
    for student in ("ada", "ben"):
        submit(course, student, solved())
    grade(course)
    give(course, "ada", "ben")
    said, pages = pack(course)
    assert sorted(pages) == ["ada/tiny.html", "ben/tiny.html"]
    assert said == [str(course.root / "f.zip"), "2 pages written."]


def test_the_archive_is_the_same_each_time(course):
    submit(course, "ada", solved())
    grade(course)
    give(course, "ada")
    pack(course)
    first = (course.root / "f.zip").read_bytes()
    pack(course)
    assert (course.root / "f.zip").read_bytes() == first


def test_who_is_unknown_to_the_platform_is_named(course, people):
    students = collected(course, exports_made.canvas_files(uploads(people)), "canvas")
    submit(course, "late-comer", solved())
    grade(course)
    give(course, "late-comer")
    said, pages = pack(course, "canvas")
    assert len(pages) == len(students)
    assert said[-1] == "Left out, since it is not known what canvas calls them: late-comer."
    with pytest.raises(ValueError, match="students must be known to moodle, got late-comer"):
        pack(course, "moodle", students=["late-comer"])


def test_moodles_number_may_be_in_the_gradebook(course):
    submit(course, "ada", solved())
    grade(course)
    give(course, "ada")
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_student(
            "ada", first_name="A_d/a", last_name="..", lms_user_id="77"
        )
    _, pages = pack(course, "moodle")
    assert list(pages) == ["A d a_77_assignsubmission_file_/tiny.html"]


def test_a_number_of_canvas_is_none_of_moodles(course, people):
    collected(course, exports_made.canvas_files(uploads(people)), "canvas")
    with pytest.raises(ValueError, match="students must be known to moodle, got 40"):
        pack(course, "moodle")


# Which pages


def test_a_page_has_the_newest_marks_and_comments(course):
    submit(course, "ada", solved())
    grade(course)
    give(course, "ada", points=3.0, comment="Too short.")
    assert "Too short." in pack(course)[1]["ada/tiny.html"]
    give(course, "ada", points=20.0, comment="Now good.")
    page = pack(course)[1]["ada/tiny.html"]
    assert "Now good." in page
    assert "Too short." not in page
    assert "(Score: 100.0 / 100.0)" in page


def test_who_has_no_final_mark_gets_a_page_only_when_asked_for(course):
    for student in ("ada", "ben", "grace", "alan"):
        submit(course, student, solved())
    submit(course, "kay", b"<html>")
    grade(course)
    give(course, "ada", "grace", "alan", "kay")
    Store(course.records, "tiny", "grace").save_failure("the sandbox failed")
    submit(course, "alan", solved(why="Newer."))
    said, pages = pack(course)
    assert list(pages) == ["ada/tiny.html"]
    assert said[-1] == "Left out, since their mark is not final: alan, ben, grace, kay."
    said, pages = pack(course, provisional=True)
    assert len(pages) == 5
    # The page itself says what could not be read.
    assert "How this submission was read" in pages["kay/tiny.html"]
    with pytest.raises(
        ValueError, match="must have a student whose mark is final, got ben: Not"
    ):
        pack(course, students=["ben"])


def test_a_page_that_cannot_be_generated_stops_no_other(course):
    for student in ("ada", "ben"):
        submit(course, student, solved())
    grade(course)
    give(course, "ada", "ben")
    path = course.autograded("ben", "tiny") / "tiny.ipynb"
    path.chmod(0o644)
    path.write_text("{")
    said, pages = pack(course)
    assert list(pages) == ["ada/tiny.html"]
    assert said[-1] == "Left out, since no page could be generated: ben."


def test_wrong_names_are_named_and_nothing_is_written(course):
    submit(course, "ada", solved())
    grade(course)
    give(course, "ada")
    for options, message in (
        ({"to": "ilias"}, "platform must be one of canvas, moodle, blackboard, generic"),
        ({"students": ["x"]}, "student must be in the gradebook, which has ada; got x"),
    ):
        with pytest.raises(ValueError, match=message):
            pack(course, **options)
    assert not (course.root / "f.zip").exists()


def test_the_command(course):
    submit(course, "ada", solved())
    grade(course)
    give(course, "ada")
    assert run(course, "feedback", "tiny") == "feedback-tiny-generic.zip\n1 page written.\n"
    wrong = run(course, "feedback", "tiny", "--to", "canvas", code=1)
    assert "collect their submissions with `seqlib collect`" in wrong


# What a page asks for


class Asked(HTMLParser):
    """Everything in a page that may make a browser ask for a file, or run something."""

    def __init__(self, page):
        super().__init__()
        self.found, self.policy, self._sheet = [], None, False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            value = value or ""
            link = name == "href" and tag == "a" and not value.lower().startswith("javascript")
            if (
                name in ("src", "srcset", "href", "data", "poster", "background", "action")
                and not link
                and not value.startswith("data:image/")
            ) or name.startswith("on"):
                self.found.append((tag, name, value))
            if name == "style" and re.search(r"url|expression|import|\\\\", value):
                self.found.append((tag, name, value))
        if tag in ("script", "iframe", "object", "embed", "base", "form", "link", "svg"):
            self.found.append((tag, "", ""))
        if tag == "meta" and ("http-equiv", "refresh") in attributes:
            self.found.append((tag, "refresh", ""))
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attributes:
            self.policy = dict(attributes)["content"]
        self._sheet = tag == "style"

    def handle_data(self, data):
        # A relative address of a font goes to no host, and the policy forbids it.
        if self._sheet:
            self.found += re.findall(r"@import|url\(\s*[\"']?(?:\w+:)?//[^)]*", data)


WRITTEN = r"""The sum is $x_t + y_{t-1} \le \infty$ and
$$\sum_t x_t$$

![seen](https://host.example/a.png) ![](//host.example/b.png) ![local][1]
![own](data:image/png;base64,iVBORw0KGgo=)
<script src="https://host.example/c.js"></script><img src="https://host.example/d.png">

[1]: https://host.example/e.png
"""


def test_a_page_asks_no_host_for_anything(course):
    notebook = solved(why=WRITTEN)
    notebook["cells"].append(tiny_course.extra(WRITTEN, "markdown"))
    notebook["cells"].append(tiny_course.extra("print('<script src=//x.example>')", id="out"))
    submit(course, "ada", notebook)
    grade(course)
    give(course, "ada", comment='![](https://host.example/f.png)<iframe src="//x.example">')
    page = pack(course)[1]["ada/tiny.html"]
    asked = Asked(page)
    assert asked.found == []
    assert asked.policy.startswith("default-src 'none'; img-src data:;")
    # What can be read stays: formulas as they were typed, own pictures, links to others.
    text = text_of(page)
    for part in (r"$x_t + y_{t-1} \le \infty$", r"$$\sum_t x_t$$", "seen"):
        assert text.count(part) == 2, part
    assert page.count('src="data:image/png;base64,iVBORw0KGgo="') == 2
    for name, times in (("a", 2), ("b", 2), ("e", 2), ("f", 1)):
        assert page.count(f'host.example/{name}.png"') == times, name
    assert "(Score: 95.0 / 100.0)" in text
    assert page.startswith("<!DOCTYPE html>")
    assert ".panel-heading" in page


def test_the_page_of_nbgrader_would_ask_a_host(course):
    """What is compared with: a reason for an exporter of our own."""
    config = load_config(course)
    config.GenerateFeedback.exporter_class = "nbconvert.exporters.HTMLExporter"
    submit(course, "ada", solved())
    grade(course)
    _generate(config, "tiny", ["ada"])
    page = (course.grading / "feedback" / "ada" / "tiny" / "tiny.html").read_text()
    assert any(tag == "script" and "//" in value for tag, _, value in Asked(page).found)


# What is not in a page


def text_of(page):
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def recording(task, values):
    def reference(*args, **options):
        found = task.reference(*args, **options)
        values.append(found)
        return found

    return dataclasses.replace(task, reference=reference)


def numbers(value):
    """Return all numbers in a reference's value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return np.concatenate([np.empty(0), *map(numbers, value)])
    try:
        return np.asarray(value, dtype=float).ravel()
    except (TypeError, ValueError):
        return np.empty(0)


def shown(page):
    """Return the wrong entries that the messages of a page show."""
    found = re.findall(r" is (-?\d[\d.]*(?:e[-+]\d+)?), which is wrong", page)
    return np.array([float(x) for x in found])


def is_near(entries, values):
    """Say of each number whether it is among others, when these are shown in six digits."""
    gaps = np.abs(entries[:, None] - values[None, :]).min(axis=1)
    size = np.maximum(np.abs(entries), 1e-12)
    half = 0.5 * 10.0 ** (np.floor(np.log10(size)) - 5)
    return gaps <= half + 2e-7 * np.maximum(1, size)


OFF = """

_right = {name}


def {name}(*args, **options):
    def off(value):
        if isinstance(value, (tuple, list)):
            return type(value)(map(off, value))
        if isinstance(value, dict):
            return {{key: off(part) for key, part in value.items()}}
        return value + 0.37

    return off(_right(*args, **options))
"""


@pytest.mark.parametrize("name", ["tiny", pytest.param("attention", marks=pytest.mark.slow)])
def test_no_page_has_a_solution_a_model_answer_or_a_reference_value(course, monkeypatch, name):
    values = []
    if name == "tiny":
        module = importlib.import_module("seqlib.exercises.tiny")
        source = tiny_course.source()
    else:
        monkeypatch.setattr("seqlib.exercises.ASSIGNMENTS", ("attention",))
        module = importlib.import_module("seqlib.exercises.attention")
        for folder in ("solutions", "assignments"):
            shutil.copytree(ROOT / folder / name, course.root / folder / name)
        source = json.loads(course.source(name).read_text())
        register(course, name)
    tasks = tuple(recording(task, values) for task in module.ASSIGNMENT.tasks)
    changed = dataclasses.replace(module.ASSIGNMENT, tasks=tasks)
    monkeypatch.setattr(module, "ASSIGNMENT", changed)
    blank = course.release(name)
    wrong = course.release(name)
    right = {cell["id"]: "".join(cell["source"]) for cell in source["cells"]}
    for cell in wrong["cells"]:
        if any(cell["id"] == task.function for task in tasks):
            solution = re.sub(r".*### (BEGIN|END) SOLUTION\n?", "", right[cell["id"]])
            cell["source"] = solution + OFF.format(name=cell["id"])
    for student, notebook in (("blank", blank), ("wrong", wrong)):
        folder = course.submission(student, name)
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook))
    grade(course, name)
    with open_gradebook(course) as gradebook:
        scores = {m.student: m.score for m in collect_marks(gradebook, course, (name,))}
        feedback(gradebook, course, name, out="f.zip", provisional=True)
    assert scores["blank"] == 0
    with zipfile.ZipFile("f.zip") as archive:
        pages = {n.split("/")[0]: text_of(archive.read(n).decode()) for n in archive.namelist()}
    secret = [
        line.strip()
        for text in right.values()
        for region in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", text, re.DOTALL)
        for line in region.splitlines()
    ]
    released = "\n".join(cell["source"] for cell in blank["cells"])
    secret = [line for line in secret if len(line) >= 12 and line not in released]
    assert secret or name == "tiny"
    answers = [right[question.id] for question in changed.written]
    assert answers
    for page in pages.values():
        assert "### BEGIN" not in page
        for answer in answers:
            assert all(line not in page for line in answer.splitlines() if len(line) > 20)
    assert [line for line in secret if line in pages["blank"]] == []
    # What is shown of a wrong answer is the student's: 0.37 above the reference, which itself
    # is not shown. (Some values are of properties; by chance one of a hundred is near one.)
    entries, expected = shown(pages["wrong"]), numbers(values)
    assert len(entries) >= len(tasks) - 1
    assert is_near(entries, expected + 0.37).mean() > 0.75
    assert is_near(entries, expected).mean() < 0.1
