"""Labels of sections, such as ``attention#scaling``, and the places that they lead to.

Diagnoses and tasks name a section as ``page#section``, and a diagnosis shows the address
``page.html#section``. In the page's source the section has the MyST target
``(page-section)=``, since the targets of all pages share one space of names; in the built page
it gets the short anchor besides. A label without ``#`` names the page.
"""

import re
import tomllib

from docutils import nodes

from course_book import data
from course_book.gaps import raise_gaps, tasks

TARGET = re.compile(r"^\(([a-z0-9_-]+)\)=\s*$", re.MULTILINE)


def known(root=data.ROOT):
    """Return the labels of all pages and sections that the book's sources define."""
    labels = set()
    for path in sorted((root / "book").glob("*.md")):
        labels.add(path.stem)
        for target in TARGET.findall(path.read_text(encoding="utf-8")):
            if target.startswith(f"{path.stem}-"):
                labels.add(f"{path.stem}#{target.removeprefix(path.stem + '-')}")
    return labels


def heading(label, root=data.ROOT):
    """Return the heading of a section as its page has it, or nothing if it has none there."""
    page, _, section = label.partition("#")
    text = (root / "book" / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(rf"^\({page}-{section}\)=\s*\n#+ (.+)$", text, re.MULTILINE)
    return found[1] if found else ""


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


def short_anchors(doctree, page):
    """Give everything with the anchor ``page-section`` the anchor ``section`` as well."""
    for element in doctree.findall(nodes.Element):
        for name in list(element["ids"]):
            short = name.removeprefix(f"{page}-")
            if short != name and short not in doctree.ids:
                element["ids"].append(short)
                doctree.ids[short] = element


def _add_anchors(app, doctree):
    short_anchors(doctree, app.env.docname.rpartition("/")[2])


def setup(app):
    """Check the labels before anything is built, and add the short anchors to each page."""
    app.connect("builder-inited", lambda _app: raise_gaps(section_gaps()))
    app.connect("doctree-read", _add_anchors)
