"""The page and the tables of the analytics; everything that is shown on the page is escaped."""

import io
import os
import re
from pathlib import Path
from urllib.parse import quote

from seqlib.experiments.style import BLUE, DARK_PAGE, ORANGE, TEXT
from seqlib.grading.analytics.numbers import BINS, analyse, percent
from seqlib.grading.records import write_together
from seqlib.grading.report import link
from seqlib.grading.tables import write_csv
from seqlib.judge.result import number

TEMPLATES = Path(__file__).parent / "templates"
# What a page shows of long lists; the tables have all of it.
MOST = {"help": 200, "open": 100, "mistakes": 10, "rows": 15, "weeks": 12, "groups": 20}
MOST_NAMES = 10
_COLUMNS = {
    "help": ("student", "rule", "says", "page"),
    "open": ("student", "assignment", "says"),
    "mistakes": ("assignment", "task", "name", "count", "readable", "share", "says", "page"),
    "mistakes_by_week": ("week", "assignment", "task", "name", "count"),
    "weeks": ("week", "submissions", "with_mistakes", "mistakes"),
    "tasks": (
        *("assignment", "task", "points", "count", "difficulty"),
        *("correlated", "discrimination", "low", "high", "remark"),
    ),
    "scores": ("assignment", "from", "to", "count"),
    "groups": (
        *("assignment", "task", "students", "criteria", "message", "diagnosis"),
        *("graded", "lost", "in_groups", "agree", "together"),
    ),
}


def write_analytics(course, names=(), *, out=None, book=None, class_list=()):
    """Write the analytics of a class.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        With records of graded submissions.
    names : sequence of str, optional
        Assignments; all that have records if empty.
    out : path, optional
        Folder; ``grading/reports/analytics`` if None.
    book : str, optional
        Address of the book, for links; the one that was built in this course if None.
    class_list : iterable of str, optional
        Ids of everybody in the class.

    Returns
    -------
    data : dict
        As :func:`seqlib.grading.analytics.numbers.analyse` returns it.
    paths : list of Path
        ``index.html`` and the tables.

    Raises
    ------
    ValueError
        If there is no such assignment, no graded submission, or ``out`` is a file.
    """
    folder = course.report("analytics") if out is None else Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out must be a folder, got the file {folder}")
    data = analyse(course, names, class_list)
    book = _built_book(course, folder) if book is None else book.rstrip("/")
    files = {folder / "index.html": render(data, book)}
    for name, (columns, rows) in tables(data).items():
        file = io.StringIO()
        write_csv(rows, columns, file)
        files[folder / f"{name}.csv"] = file.getvalue()
    write_together(files)
    return data, list(files)


def _built_book(course, folder):
    """Return the address of the book of this course, as a page in a folder sees it."""
    built = course.root.resolve() / "_build" / "html" / "book"
    try:
        return quote(os.path.relpath(built, folder.resolve()).replace(os.sep, "/"))
    except ValueError:  # another drive
        return built.as_uri()


def tables(data):
    """Return ``{name: (columns, rows)}`` of the tables."""
    mistakes = [m | {"share": m["count"] / m["readable"]} for m in data["mistakes"]]
    by_week = [
        m | {"week": week, "count": count}
        for m in mistakes
        for week, count in m["weeks"].items()
    ]
    assignments = data["assignments"]
    rows = {
        "help": [{"student": s["student"], **r} for s in data["help"] for r in s["reasons"]],
        "open": data["open"],
        "mistakes": mistakes,
        "mistakes_by_week": sorted(by_week, key=lambda row: row["week"]),
        "weeks": data["weeks"],
        "tasks": [{"assignment": a["name"]} | task for a in assignments for task in a["tasks"]],
        "scores": [
            {"assignment": a["name"], "from": i / BINS, "to": (i + 1) / BINS, "count": count}
            for a in assignments
            for i, count in enumerate(a["distribution"]["bins"])
        ],
        "groups": [
            g | {"students": " ".join(g["students"]), "criteria": " ".join(g["criteria"])}
            for g in data["groups"]
        ],
    }
    return {name: (_COLUMNS[name], rows[name]) for name in _COLUMNS}


def render(data, book):
    """Return the page; ``book`` is the address of the book."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: "–" if value is None else number(value)
    environment.filters["percent"] = percent
    environment.filters["signed"] = _signed
    environment.filters["state"] = lambda value: value.replace("_", " ")
    environment.filters["said"] = lambda bars: "; ".join(
        f"{bar['label']}: {bar['text']}" for bar in bars
    )
    environment.filters["breakable"] = _breakable
    environment.filters["name"] = lambda task: task.rpartition(".")[2]
    environment.globals["link"] = lambda page: link(book, page)
    return environment.get_template("analytics.html.j2").render(
        **data,
        week_bars=_week_bars(data["weeks"]),
        heat=_heat(data["mistakes"]),
        score_bars={a["name"]: _score_bars(a) for a in data["assignments"]},
        colors={"blue": BLUE, "orange": ORANGE, "grey": TEXT, "dark": DARK_PAGE},
        most=MOST,
        most_names=MOST_NAMES,
    )


def _breakable(name):
    """Return a name that a narrow column may break behind ``.``, ``_``, ``#`` and ``-``."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([._#-])(?=[a-z])", r"\1<wbr>", str(escape(name))))


def _signed(value):
    """Write a number between -1 and 1 with two decimals and a true minus."""
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def _week_bars(weeks):
    """Return the bars of the last weeks, long as their numbers of submissions."""
    known = [week for week in weeks if week["week"] is not None][-2 * MOST["weeks"] :]
    most = max((week["submissions"] for week in known), default=1)
    return [
        {
            "label": week["week"],
            "frame": week["submissions"] / most,
            "bar": week["with_mistakes"] / most,
            "text": f"{week['with_mistakes']} of {week['submissions']}",
        }
        for week in known
    ]


def _score_bars(assignment):
    bins = assignment["distribution"]["bins"]
    most = max(*bins, 1)
    width = 100 // BINS
    return [
        {
            "label": f"{i * width}–{(i + 1) * width} %",
            "frame": None,
            "bar": count / most,
            "text": str(count),
        }
        for i, count in enumerate(bins)
    ]


def _heat(mistakes):
    """Return the most frequent mistakes by week, the last weeks alone."""
    weeks = sorted({week for m in mistakes for week in m["weeks"]})[-MOST["weeks"] :]
    counted = [(sum(m["weeks"].get(week, 0) for week in weeks), m) for m in mistakes]
    chosen = sorted((pair for pair in counted if pair[0]), key=lambda pair: -pair[0])
    rows = [m for _, m in chosen[: MOST["rows"]]]
    most = max((m["weeks"].get(week, 0) for m in rows for week in weeks), default=1)
    return {"weeks": weeks, "rows": rows, "most": most}
