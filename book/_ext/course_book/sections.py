"""Labels of sections, such as ``attention#scaling``, and the places that they lead to.

Diagnoses and tasks name a section as ``page#section``. In the page's source it is the MyST
target ``(page-section)=``, in the built book the address ``book/page.html#page-section``.
A label without ``#`` names the page.
"""

import re
import tomllib

from course_book import data
from course_book.gaps import raise_gaps, tasks

TARGET = re.compile(r"^\(([a-z0-9_-]+)\)=\s*$", re.MULTILINE)


def address(label):
    """Return the address of a section, relative to the folder of the built book."""
    page, _, section = label.partition("#")
    return f"{page}.html#{page}-{section}" if section else f"{page}.html"


def known(root=data.ROOT):
    """Return the labels of all pages and sections that the book's sources define."""
    labels = set()
    for path in sorted((root / "book").glob("*.md")):
        labels.add(path.stem)
        for target in TARGET.findall(path.read_text(encoding="utf-8")):
            if target.startswith(f"{path.stem}-"):
                labels.add(f"{path.stem}#{target.removeprefix(path.stem + '-')}")
    return labels


def used(assignment):
    """Return the labels that the tasks and misconceptions of an assignment name."""
    labels = set()
    for task in tasks(assignment).values():
        labels |= {task.page, *(mistake.page for mistake in task.misconceptions)}
    return labels


def pending(root=data.ROOT):
    """Return the labels that may lead nowhere yet, each with the reason."""
    text = (root / "book" / "data" / "pending.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["sections"]


def gaps_between(wanted, known, pending):
    """Return the labels that lead nowhere and are not pending, and the reverse."""
    missing = wanted - known
    return [
        f"section {label}: used by a task, but no page has it"
        for label in sorted(missing - set(pending))
    ] + [
        f"section {label}: listed as pending, but not missing"
        for label in sorted(set(pending) - missing)
    ]


def section_gaps(root=data.ROOT):
    """Return the gaps between the labels of all assignments and the sections of the book."""
    assignments = {topic.assignment for topic in data.topics(root) if topic.assignment}
    wanted = set().union(*(used(name) for name in assignments))
    return gaps_between(wanted, known(root), pending(root))


def setup(app):
    """Check the labels before anything is built."""
    app.connect("builder-inited", lambda _app: raise_gaps(section_gaps()))
