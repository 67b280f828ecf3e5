"""The topic table of README.md and of the book's first page.

``make readme`` writes the table into README.md anew.
"""

import re

from course_book import data
from course_book.markdown import Generated

BEGIN, END = "<!-- topics: generated from book/data/topics.toml -->", "<!-- /topics -->"


def table(topics):
    """Return the table with links to the files of every topic, relative to the root."""
    lines = [
        "| Topic | Notes | Chapter | NumPy | PyTorch | Tests | Assignment |",
        "|---|---|---|---|---|---|---|",
    ]
    for topic in topics:
        cells = [f"**{topic.title}**: {topic.about}", topic.notes]
        for part in ("page", "np", "pt", "tests"):
            path = topic.path(part)
            name = path.rpartition("/")[2]
            cells.append(f"[{name}]({path})" if part in topic.parts else "")
        name = topic.assignment
        cells.append(f"[{name}](assignments/{name}/{name}.ipynb)" if name else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_table(text, topics):
    """Return README with the part between the two marks written anew."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise data.GapError(f"README.md must hold the marks {BEGIN} and {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n{table(topics)}\n{END}", text)


def book_table(topics):
    """Return the table for a page of the book: the topics that have a chapter."""
    lines = ["| Chapter | What it covers | Notes | Assignment |", "|---|---|---|---|"]
    for topic in topics:
        if "page" in topic.parts:
            name = f"`{topic.assignment}`" if topic.assignment else ""
            lines.append(
                f"| {{doc}}`/book/{topic.slug}` | {topic.about} | {topic.notes} | {name} |"
            )
    return "\n".join(lines)


class Topics(Generated):
    """The topic table on a page."""

    depends_on = "topics.toml"

    def text(self):
        """Return the table."""
        return book_table(data.topics())


def setup(app):
    """Register the directive."""
    app.add_directive("topics", Topics)
