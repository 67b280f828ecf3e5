"""Readers of the files that learning platforms import, as strict as the platforms or stricter.

They share nothing with the code that writes the files: Python's csv in strict mode, and the
platforms' rules from their sources (named in seqlib/grading/export/*.py).
"""

import csv
import io
import re

GRADE = re.compile(r"\d+(\.\d{1,5})?")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table(data, delimiter=",", encoding="utf-8"):
    """Return the rows of a file, all of one length."""
    text = data.decode(encoding)
    assert "\0" not in text
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    rows = [row for row in rows if row]
    assert len({len(row) for row in rows}) == 1, "rows of different lengths"
    return rows


def canvas(data, *, by="SIS Login ID"):
    """Return ``({student: {title: grade}}, {title: points})`` of a gradebook."""
    header, *rows = table(data)
    assert "Student" in header[0]
    assert "ID" in header[1]
    # Where the ids end, sections begin, and behind them is nothing but assignments.
    first = header.index("Section") + 1
    titles = {}
    for place, title in enumerate(header[first:], first):
        match = re.fullmatch(r"(.*\S)\s*\((\d+)\)", title)
        titles[place] = match[1] if match else title
    points, found = {}, {}
    for row in rows:
        if "Points Possible" in row[0]:
            points = {title: row[place] for place, title in titles.items()}
            continue
        if all(re.fullmatch(r"\s*(Manual Posting.*)?\s*", cell) for cell in row):
            continue
        key = row[header.index(by)]
        assert key not in found
        found[key] = {title: row[place].strip() for place, title in titles.items()}
        for grade in found[key].values():
            assert grade in ("", "EX", "N/A") or GRADE.fullmatch(grade), grade
    return found, points


def moodle(data):
    """Return ``{participant: (grade, comment)}`` of a grading worksheet."""
    header, *rows = table(data, encoding="utf-8-sig")
    needed = ("Identifier", "Grade", "Last modified (grade)")
    place = {name: header.index(name) for name in needed}
    found = {}
    for row in rows:
        match = re.fullmatch(r"Participant (\d+)", row[place["Identifier"]])
        assert match, row
        assert match[1] not in found
        grade = row[place["Grade"]]
        if grade:
            assert GRADE.fullmatch(grade), grade
            assert float(grade) <= float(row[header.index("Maximum Grade")])
        comment = "Feedback comments"
        found[match[1]] = grade, row[header.index(comment)] if comment in header else None
    return found


def blackboard(data):
    """Return ``{user name: {title: grade}}`` of a Grade Center."""
    if data.startswith(b"\xff\xfe"):
        header, *rows = table(data, "\t", "utf-16")
    else:
        header, *rows = table(data, ",", "utf-8-sig")
        for line in data.decode("utf-8-sig").split("\r\n"):
            assert not line or (line.startswith('"') and line.endswith('"'))
    columns = {}
    for place, title in enumerate(header):
        match = re.fullmatch(r"(.*) \[Total Pts: ([\d.]+) Score\]( \|\d+)?", title)
        if match:
            columns[place] = match[1]
    assert columns
    found = {}
    for row in rows:
        key = row[header.index("Username")]
        assert key
        assert key not in found
        found[key] = {title: row[place] for place, title in columns.items()}
        for grade in found[key].values():
            assert not grade or GRADE.fullmatch(grade), grade
    return found


def formulas(rows):
    """Return the cells that a spreadsheet would run; numbers and a lone dash are none."""
    return [
        cell
        for row in rows
        for cell in row
        if cell.lstrip(" ").startswith(FORMULA) and not re.fullmatch(r"-?[\d.]*", cell)
    ]
