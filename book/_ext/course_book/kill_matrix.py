"""The kill matrix: what every known mistake costs, and how it is named.

``make matrix`` judges all known mistakes anew and writes ``book/data/kill_matrix.json``;
``python -m course_book.judging decoder rnn.rnn_step`` judges those of one assignment and of
one task. The page shows the file beside the records. A mistake that one of them lacks, a
version that differs, a mistake that costs nothing or has a false name fails a test, not the
build: whoever changes a task should see the page before the whole matrix is judged anew.
"""

import json

from course_book import data
from course_book.markdown import Generated
from seqlib.exercises import ASSIGNMENTS, get_assignment
from seqlib.judge.judge import JUDGE_VERSION
from seqlib.judge.matrix import Row, row
from seqlib.judge.result import number

FILE = "kill_matrix.json"
SEED = 0
COMMAND = "make matrix"


# ---------------------------------------------------------------- the file


def judge_task(task, seed=SEED):
    """Judge every known mistake of a task; return its entry of the file."""
    return {
        "version": task.version,
        "mistakes": {
            mistake.name: entry(row(task, (mistake.name,), seed))
            for mistake in task.misconceptions
        },
    }


def entry(judged):
    """Return one row of the matrix as it stands in the file.

    >>> entry(Row("t", ("a",), ("values",), 0.0, 5.0, "mistake", ("a",)))
    {'lost': ['values'], 'kind': 'mistake', 'named': ['a']}
    """
    return {"lost": list(judged.lost), "kind": judged.kind, "named": list(judged.named)}


def as_row(task, name, found):
    """Return the row of the matrix that an entry of the file stands for."""
    lost = sum(c.points for c in task.criteria if c.name in found["lost"])
    return Row(
        task=task.id,
        made=(name,),
        lost=tuple(found["lost"]),
        score=task.points - lost,
        points=task.points,
        kind=found["kind"],
        named=tuple(found["named"]),
    )


def load(root=data.ROOT):
    """Return the committed matrix: ``judge``, ``seed`` and ``tasks`` by their ids."""
    return json.loads((root / "book" / "data" / FILE).read_text(encoding="utf-8"))


def write(tasks, root=data.ROOT):
    """Write the matrix, a line for each mistake, so that a change shows as a line."""
    parts = []
    for name, found in tasks.items():
        rows = ",\n".join(
            f"  {json.dumps(mistake)}: {json.dumps(line)}"
            for mistake, line in found["mistakes"].items()
        )
        head = f' {json.dumps(name)}: {{"version": {found["version"]}, "mistakes": {{\n'
        parts.append(f"{head}{rows}\n }}}}")
    text = f'{{"judge": {JUDGE_VERSION}, "seed": {SEED}, "tasks": {{\n'
    text += ",\n".join(parts) + "\n}}\n"
    (root / "book" / "data" / FILE).write_text(text, encoding="utf-8")


def all_tasks():
    """Return the tasks of all assignments by their ids, in the course's order."""
    return {task.id: task for name in ASSIGNMENTS for task in get_assignment(name).tasks}


def matrix_gaps(found, tasks):
    """Return where the committed matrix and the records of the tasks differ."""
    gaps_found = []
    if (found["judge"], found["seed"]) != (JUDGE_VERSION, SEED):
        gaps_found.append("kill matrix: made by another judge or with another seed")
    for name in sorted(found["tasks"].keys() - tasks.keys()):
        gaps_found.append(f"kill matrix: there is no task {name}")
    for name, task in tasks.items():
        line = found["tasks"].get(name)
        known = [mistake.name for mistake in task.misconceptions]
        if line is None:
            gaps_found.append(f"kill matrix: lacks task {name}")
        elif line["version"] != task.version:
            gaps_found.append(f"kill matrix: task {name} has another version now")
        elif list(line["mistakes"]) != known:
            differs = ", ".join(sorted(set(line["mistakes"]) ^ set(known))) or "their order"
            gaps_found.append(f"kill matrix: mistakes of {name} differ: {differs}")
        else:
            criteria = {c.name for c in task.criteria}
            lost = {c for at in line["mistakes"].values() for c in at["lost"]}
            if not lost <= criteria:
                gaps_found.append(f"kill matrix: criteria of {name} differ")
            gaps_found += _faults(rows_of(task, found))
    return [f"{gap}; run {COMMAND}" for gap in gaps_found]


def _faults(rows):
    """Return the mistakes that cost nothing or have a false name."""
    for judged in rows:
        if judged.survives:
            yield f"kill matrix: {judged.task}, {judged.made[0]} costs nothing"
        if judged.named_as_another:
            yield f"kill matrix: {judged.task}, {judged.made[0]} is named as another mistake"


# ---------------------------------------------------------------- the page


def summary(found, tasks):
    """Return the table of the assignments: mistakes, and what became of them."""
    lines = [
        "| Assignment | Tasks | Known mistakes | Cost nothing | Named as themselves "
        "| Named as another |",
        "|---|---|---|---|---|---|",
    ]
    total = [0] * 5
    for name in ASSIGNMENTS:
        own = [task for task in tasks.values() if task.id.startswith(f"{name}.")]
        rows = [row for task in own for row in rows_of(task, found)]
        counts = [
            len(own),
            len(rows),
            sum(row.survives for row in rows),
            sum(row.named_as_itself for row in rows),
            sum(row.named_as_another for row in rows),
        ]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        lines.append(f"| {{ref}}`{name} <kill_matrix-{name}>` | " + _cells(counts))
    lines.append("| all | " + _cells(total))
    return "\n".join(lines)


def _cells(values):
    return " | ".join(map(str, values)) + " |"


def rows_of(task, found):
    """Return the rows of one task in the order of its record, those that the file has."""
    lines = found["tasks"].get(task.id, {"mistakes": {}})["mistakes"]
    names = [mistake.name for mistake in task.misconceptions]
    return [as_row(task, name, lines[name]) for name in names if name in lines]


def task_table(task, found, link):
    """Return the matrix of one task as MyST: a mistake a line, a criterion a column.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
    found : dict
        The committed matrix.
    link : callable
        ``link(label)`` gives the MyST of a link to a section.
    """
    rows = rows_of(task, found)
    lines = ["Criteria, with their points:", ""]
    lines += [
        f"{i}. {_escape(c.says)} ({number(c.points)})"
        for i, c in enumerate(task.criteria, start=1)
    ]
    heads = [str(i) for i, _ in enumerate(task.criteria, start=1)]
    lines += ["", "| Mistake | " + " | ".join([*heads, "Lost", "Named"]) + " |"]
    lines.append("|---|" + "--:|" * (len(heads) + 1) + "---|")
    mistakes = {mistake.name: mistake for mistake in task.misconceptions}
    for judged in rows:
        mistake = mistakes[judged.made[0]]
        cells = [number(c.points) if c.name in judged.lost else "·" for c in task.criteria]
        cells += [number(judged.points - judged.score), _naming(judged, task, mistakes)]
        says = _escape(mistake.says)
        lines.append(f"| {says} ({link(mistake.page)}) | " + _cells(cells))
    return "\n".join(lines)


def _naming(judged, task, mistakes):
    """Say how the judge names a mistake."""
    if judged.named_as_itself:
        return "itself"
    if judged.kind is None:
        return "not named"
    if judged.kind == "property":
        says = {c.name: c.says for c in task.criteria}
        return "by what fails: " + _escape("; ".join(says.get(n, n) for n in judged.named))
    others = [n for n in judged.named if n not in judged.made]
    named = "; ".join(_escape(mistakes[n].says) for n in others)
    return {
        "either": f"as one of several, the others: {named}",
        "partial": "in part",
        "mistake": f"as another: {named}",
    }[judged.kind]


def _escape(text):
    """Return a sentence of a record as MyST that shows it letter by letter, in a table."""
    for mark in "\\`*_$|<>[]{}^~":
        text = text.replace(mark, f"\\{mark}")
    return text


class KillMatrixSummary(Generated):
    """The table of all assignments."""

    depends_on = FILE

    def text(self):
        """Return the table."""
        return summary(load(), all_tasks())


class KillMatrix(Generated):
    """The matrices of all assignments, a folded table for each task."""

    depends_on = FILE
    headings = True

    def text(self):
        """Return a section for each assignment."""
        found, lines = load(), []
        for name in ASSIGNMENTS:
            assignment = get_assignment(name)
            lines += [f"(kill_matrix-{name})=", f"## {assignment.title}", ""]
            for task in assignment.tasks:
                count = len(task.misconceptions)
                title = f"{task.title}: `{task.function}`, {count} mistakes"
                lines += [f"::::{{dropdown}} {title}", task_table(task, found, self._link)]
                lines += ["::::", ""]
        return "\n".join(lines)

    def _link(self, label):
        """Link to a section; before its page is part of the book, name it."""
        page, _, section = label.partition("#")
        if f"book/{page}" not in self.env.found_docs:
            return f"`{label}`"
        if not section:
            return f"{{doc}}`{page} </book/{page}>`"
        words = section.replace("-", " ")
        return f"{{ref}}`{page}, {words} <{page}-{section}>`"


def setup(app):
    """Register the directives."""
    app.add_directive("kill-matrix-summary", KillMatrixSummary)
    app.add_directive("kill-matrix", KillMatrix)
