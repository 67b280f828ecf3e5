"""A class of invented students, made from the solution of an assignment.

Each student stands for something that happens: a right answer in another style, a known
mistake, a damaged file, an attack.
"""

import copy
import itertools
import json
import re
import shutil
from dataclasses import dataclass, field

from seqlib.exercises import get_assignment
from seqlib.grading.samples import answers, damage

# Beside each sample: what it stands for, and that it is one.
MARK = ".sample"


@dataclass(frozen=True)
class Sample:
    """One invented submission.

    Attributes
    ----------
    name : str
        What it stands for, ``"mistakes 3"``; unique in a class.
    files : dict
        ``{file name: bytes}``.
    harmless : bool
        Whether its code may run without protection.
    mistakes : dict
        ``{task id: misconception}`` that the judge must name.
    """

    name: str
    files: dict
    harmless: bool = True
    mistakes: dict = field(default_factory=dict)


class SampleClass:
    """Makes the samples of one assignment.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        With the solution and the release of the assignment.
    name : str
        The assignment.
    """

    def __init__(self, course, name):
        self.course, self.name = course, name
        self.assignment = get_assignment(name)
        self.tasks = self.assignment.tasks
        self.release = course.release(name)
        self.solutions = _solutions(course.source(name), self.release)

    def samples(self):
        """Return all samples; their order, and so the students' ids, stay the same."""
        return [
            *self._right(),
            *self._unfinished(),
            *self._damaged(),
            *self._hostile(),
            *self._mistaken(),  # last, so that a new mistake moves nobody
        ]

    def notebook(self, cells=None, *, solved=True, trained=False):
        """Return a submission: the solution, or the release, with some answers replaced.

        Parameters
        ----------
        cells : dict, optional
            ``{function: source}`` of the answers that differ.
        solved : bool, default=True
            Whether the other answers are right or not written.
        trained : bool, default=False
            Whether answers that train a model are among these; else they are not written,
            since each takes seconds.
        """
        notebook = copy.deepcopy(self.release)
        slow = {task.function for task in self.tasks if task.kind == "training" and not trained}
        right = {k: v for k, v in self.solutions.items() if k not in slow} if solved else {}
        given = right | (cells or {})
        for cell in notebook["cells"]:
            cell["source"] = given.get(cell["id"], cell["source"])
        return notebook

    def _sample(self, name, notebook, *, file=None, **options):
        data = notebook if isinstance(notebook, bytes) else damage.to_bytes(notebook)
        return Sample(name, {file or f"{self.name}.ipynb": data}, **options)

    def _right(self):
        yield self._sample("the solution", self.notebook(trained=True))
        found = answers.styles(self.course, self.name)
        number = max((len(found.get(task.function, ())) for task in self.tasks), default=0)
        for i in range(number):
            cells = {
                task.function: answers.style(
                    task, found[task.function][i % len(found[task.function])]
                )
                for task in self.tasks
                if task.function in found
            }
            yield self._sample(f"right, style {i + 1}", self.notebook(cells))
        cells = {
            task.function: answers.float32(task, self.solutions[task.function])
            for task in self.tasks
        }
        yield self._sample("right, in float32", self.notebook(cells))

    def _mistaken(self):
        """Every known mistake once; one student makes one in each task."""
        columns = [[(task, m) for m in task.misconceptions] for task in self.tasks]
        for i, row in enumerate(itertools.zip_longest(*columns), start=1):
            made = [pair for pair in row if pair is not None]
            cells = {task.function: answers.mistake(task, m) for task, m in made}
            mistakes = {task.id: m.name for task, m in made}
            yield self._sample(f"mistakes {i}", self.notebook(cells), mistakes=mistakes)

    def _unfinished(self):
        yield self._sample("blank", self.notebook(solved=False))
        half = self.tasks[: len(self.tasks) // 2]
        cells = {task.function: self.solutions[task.function] for task in half}
        yield self._sample("half done", self.notebook(cells, solved=False))
        for kind in (answers.zeros, answers.first_argument, answers.constant):
            cells = {task.function: kind(task) for task in self.tasks}
            yield self._sample(kind.__name__.replace("_", " "), self.notebook(cells))

    def _damaged(self):
        solved, blank = self.notebook(), self.notebook(solved=False)
        function = self.tasks[0].function
        tests = [cell["id"] for cell in self.release["cells"] if _is_test(cell)]
        middle = self.tasks[len(self.tasks) // 2].function
        yield self._sample("tests deleted", damage.without(solved, *tests))
        yield self._sample("an answer deleted", damage.without(solved, function))
        yield self._sample(
            "cells duplicated", damage.with_copies(solved, function, tests[0], tests[-1])
        )
        yield self._sample("cells reordered", damage.reversed_order(solved))
        yield self._sample("cells retyped", damage.retyped(solved, function, tests[0]))
        yield self._sample("metadata lost", damage.without_metadata(solved))
        yield self._sample("in format 3", damage.in_format_3(solved))
        yield self._sample("truncated", damage.truncated(solved, middle))
        yield self._sample("unfinished merge", damage.conflicted(solved))
        yield self._sample("with byte-order mark", b"\xef\xbb\xbf" + damage.to_bytes(solved))
        yield self._sample("renamed", solved, file=f"{self.name} (1).ipynb")
        yield Sample(
            "a copy beside the untouched file",
            {
                f"{self.name}.ipynb": damage.to_bytes(blank),
                f"{self.name}-Copy1.ipynb": damage.to_bytes(solved),
            },
        )
        yield Sample(
            "a module beside the notebook",
            {f"{self.name}.ipynb": damage.to_bytes(solved), "numpy.py": b"raise SystemExit\n"},
        )
        yield self._sample(
            "a web page", b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n"
        )
        yield self._sample("an empty file", b"")
        cheat = damage.with_metadata(blank, tests, {"points": 1000}, tags=["skip-execution"])
        yield self._sample("tests to be skipped", cheat)

    def _hostile(self):
        first, last = self.tasks[0], self.tasks[-1]
        for name, make in (
            ("an endless loop", answers.endless),
            ("a function that ends the process", answers.exits),
            ("a search for the reference", answers.search),
        ):
            # The student's own trials of the function are gone, which would not end either.
            notebook = self.notebook({first.function: make(first)})
            notebook["cells"] = [c for c in notebook["cells"] if not _is_trial(c)]
            yield self._sample(name, notebook, harmless=False)
        for name, source in (
            ("a cell that ends the process", answers.EXIT),
            ("a flood of output", answers.FLOOD),
        ):
            notebook = self.notebook()
            notebook["cells"].append(_own(source))
            yield self._sample(name, notebook, harmless=False)
        cells = {last.function: answers.zeros(last)}
        notebook = self.notebook(cells)
        place = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == first.function)
        notebook["cells"].insert(place, _own(answers.PATCH))
        yield self._sample("comparisons patched", notebook, harmless=False)


def write_samples(samples, folder, name, *, harmless=False):
    """Write samples as submissions of students s001, s002, ...

    Parameters
    ----------
    samples : list of Sample
        All of a class, so that each student keeps the id.
    folder : Path
        ``grading/submitted`` of the course.
    name : str
        The assignment.
    harmless : bool, default=False
        Whether to leave out the samples whose code needs protection.

    Returns
    -------
    dict
        ``{student: sample}`` of what was written.

    Raises
    ------
    ValueError
        If there are submissions that are no samples: a real class is not mixed with an
        invented one.
    """
    there = [path for path in folder.glob(f"*/{name}") if path.is_dir()]
    real = sorted(path.parent.name for path in there if not (path / MARK).exists())
    if real:
        raise ValueError(
            f"{folder} must hold no submission of a real student, got {', '.join(real[:5])}; "
            "write the samples into another course, or name a folder with --out"
        )
    for path in there:
        shutil.rmtree(path)
    written = {}
    for number, sample in enumerate(samples, start=1):
        if harmless and not sample.harmless:
            continue
        student = f"s{number:03}"
        target = folder / student / name
        target.mkdir(parents=True)
        (target / MARK).write_text(f"{sample.name}\n")
        for file, data in sample.files.items():
            (target / file).write_bytes(data)
        written[student] = sample
    return written


def _solutions(path, release):
    """Return ``{id: source}`` of the answers in the instructor's notebook."""
    answered = {
        c["id"] for c in release["cells"] if c["metadata"].get("nbgrader", {}).get("solution")
    }
    notebook = json.loads(path.read_text(encoding="utf-8"))
    sources = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    mark = re.compile(r"^\s*#+ (?:BEGIN|END) SOLUTION\n?", re.MULTILINE)
    return {key: mark.sub("", sources[key]).rstrip() for key in answered}


def _is_test(cell):
    data = cell["metadata"].get("nbgrader", {})
    return data.get("grade", False) and not data["solution"]


def _is_trial(cell):
    return cell["cell_type"] == "code" and "nbgrader" not in cell["metadata"]


def _own(source):
    return {
        "cell_type": "code",
        "id": "own",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }
