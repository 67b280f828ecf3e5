"""Tables of the course's notebooks, made from the records of what is graded."""

import json
import re

from course_book import data
from course_book.markdown import Generated
from seqlib.exercises import ASSIGNMENTS, PRACTICE, get_assignment
from seqlib.judge.result import number


def notebook_table(names=(*PRACTICE, *ASSIGNMENTS), topics=None):
    """Return the table of notebooks with chapters, tasks, points and hours."""
    topics = data.topics() if topics is None else topics
    lines = [
        "| Notebook | About | Chapters | Tasks | Points | Time |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        record = get_assignment(name)
        chapters = ", ".join(
            f"{{doc}}`/book/{topic.slug}`"
            for topic in topics
            if topic.assignment == name and "page" in topic.parts
        )
        lines.append(
            f"| `{name}`{_place(name)} | {record.title} | {chapters} | {len(record.tasks)} "
            f"| {_points(record)} | {_time(record.hours)} |"
        )
    return "\n".join(lines)


def question_table(names=ASSIGNMENTS):
    """Return the table of the questions in words: heading, points, lines of the rubric."""
    lines = [
        "| Notebook | Question | Cell | Points | Lines of the rubric |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        for question in get_assignment(name).written:
            lines.append(
                f"| `{name}` | {heading(name, question.id)} | `{question.id}` "
                f"| {number(question.points)} | {len(question.rubric)} |"
            )
    return "\n".join(lines)


def heading(name, question, root=data.ROOT):
    """Return the heading of a question in words, without its number and points."""
    path = root / "solutions" / name / f"{name}.ipynb"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] == f"about_{question}":
            line = "".join(cell["source"]).splitlines()[0]
            return re.fullmatch(r"## \d+ (.*) \([\d.]+ points\)", line)[1]
    raise data.GapError(f"{name}: question {question} must have a text about_{question}")


def _place(name):
    """Return the place that the site fills with links, or with nothing."""
    return f'<span class="run-notebook" data-name="{name}"></span>'


def _points(record):
    if not record.graded:
        return "none"
    written = sum(question.points for question in record.written)
    checked = record.points - written
    return f"{number(checked)} + {number(written)}" if written else number(checked)


def _time(hours):
    return f"{hours * 60:g} min" if hours < 1 else f"{hours:g} h"


class _OfRecords(Generated):
    depends_on = "topics.toml"

    def run(self):
        """Write the table; a change of a record reads the page again."""
        for path in sorted((data.ROOT / "seqlib" / "exercises").glob("*.py")):
            self.env.note_dependency(str(path))
        return super().run()


class Notebooks(_OfRecords):
    """The table of all notebooks."""

    def text(self):
        """Return the table."""
        return notebook_table()


class Questions(_OfRecords):
    """The table of all questions in words."""

    def text(self):
        """Return the table."""
        return question_table()


def setup(app):
    """Register the directives."""
    app.add_directive("notebooks", Notebooks)
    app.add_directive("questions", Questions)
