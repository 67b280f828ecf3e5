"""One run of the real batch over many attacks, with what must not change around it."""

import functools
import hashlib
import json
import multiprocessing
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hurried import hurried_grader, resident
from submissions import NAME, ROOT, Kit

from seqlib.grading.batch import grade_class
from seqlib.grading.course import Course
from seqlib.grading.gradebook.writer import open_gradebook
from seqlib.grading.notebook.reading import MAX_BYTES

SECRET = "5e" * 32  # the same inputs in every run
ONE_FILE = 5 * MAX_BYTES  # what a worker may still hold of the file that it has just read
MOST_OUTPUT = 1_000_000  # characters of a graded notebook beyond what was handed in


@dataclass
class Run:
    """What came of a run.

    Attributes
    ----------
    attacks : dict
        ``{student: attack}``.
    outcome : seqlib.grading.batch.Outcome
        Of the batch.
    gradebook : dict
        ``{student: points}`` as nbgrader has them.
    notebooks : dict
        ``{student: text of the graded notebook}``.
    sizes : dict
        ``{student: bytes that were handed in}``.
    around : list of str
        What changed that must not: files, servers, processes, memory.
    """

    attacks: dict
    outcome: object
    gradebook: dict
    notebooks: dict
    sizes: dict
    around: list


def digest(folder, *, without=()):
    """Return what lies in a folder: names, kinds, modes, times and contents."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] in without:
            continue
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(name)] = (status.st_mode, status.st_mtime_ns if content else 0, content)
    return found


def differences(before, after):
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def survivors(folder):
    """Return the processes whose command names the folder: fork servers and their forks."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in command:
                found.append(f"process {entry.name}")
    return found


def attention(course):
    """Copy the assignment ``attention`` of this repository."""
    for part in ("solutions", "assignments"):
        shutil.copytree(ROOT / part / NAME, course.root / part / NAME)


def lay_out(folder, assignment):
    """Lay out a course of one assignment."""
    root = folder / "course"
    root.mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", root)
    course = Course(root)
    assignment(course)
    course.grading.mkdir()
    secret = course.grading / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    return course


def run(
    folder,
    outside,
    attacks,
    level,
    monkeypatch,
    *,
    name=NAME,
    assignment=attention,
    kit=Kit,
    register=None,
    workers=2,
):
    """Grade attacks with the real batch and look at everything around it.

    Parameters
    ----------
    folder : Path
        Empty, for this run alone.
    outside : seqlib.grading.sandbox.outside.Outside
        Entered.
    attacks : list of submissions.Attack
        Their order gives the students' ids.
    level : str
        Isolation level.
    monkeypatch : pytest.MonkeyPatch
        For the environment.
    name, assignment, kit, register
        The assignment: its name, what lays it out, makes parts of submissions, and the module
        that makes it known.
    workers : int
        Worker processes.

    Returns
    -------
    Run
    """
    course = lay_out(folder, assignment)
    for part in ("home", "temporary", "log"):
        (folder / part).mkdir()
    (folder / "home" / ".profile").write_text("export PATH\n")
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    parts = kit(outside.facts | {"root": str(course.root)})
    students = {f"r{number:03}": attack for number, attack in enumerate(attacks, start=1)}
    sizes = dict.fromkeys(students, 0)
    for student, attack in students.items():
        for path, data in attack.make(parts).items():
            sizes[student] += len(data)
            target = course.submission(student, name) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    before = digest(course.root, without=["grading"]), digest(course.grading / "submitted")
    home = digest(folder / "home")
    memory = []
    outcome = grade_class(
        course,
        name,
        workers=workers,
        level=level,
        make_grader=functools.partial(
            hurried_grader, course.root, name, level, str(folder / "log"), register
        ),
        on_result=lambda *_: memory.append(resident()),
    )
    around = [
        *differences(before[0], digest(course.root, without=["grading"])),
        *differences(before[1], digest(course.grading / "submitted")),
        *differences(home, digest(folder / "home")),
        *(str(path) for path in (folder / "temporary").iterdir()),
        *outside.changes(),
        *survivors(folder),
        *(f"{child}" for child in multiprocessing.active_children()),
    ]
    if max(memory) > 1.5 * memory[0]:
        around.append(f"the parent grew from {memory[0] >> 20} to {max(memory) >> 20} MiB")
    for path in (folder / "log").iterdir():
        notes = json.loads(path.read_text())
        for student, size in notes:
            if size > 1.5 * notes[0][1] + ONE_FILE:
                grown = f"{notes[0][1] >> 20} to {size >> 20} MiB"
                around.append(f"a worker grew from {grown} with {students[student].name}")
    with open_gradebook(course) as gradebook:
        points = {
            s.student.id: sum(g.auto_score or 0.0 for n in s.notebooks for g in n.grades)
            for s in gradebook.assignment_submissions(name)
        }
    notebooks = {
        student: (course.autograded(student, name) / f"{name}.ipynb").read_text()
        for student in outcome.records
    }
    return Run(students, outcome, points, notebooks, sizes, around)


def complaints(run):
    """Return a sentence for every attack that did not end as declared."""
    found = [f"{run.attacks[s].name}: {m}" for s, m in run.outcome.failures.items()]
    for student, record in run.outcome.records.items():
        attack = run.attacks[student]
        got = {t.rpartition(".")[2]: e["score"] for t, e in record["tasks"].items()}
        wrong = {
            f: points
            for f, points in got.items()
            if (points > attack.scores[f] if attack.at_most else points != attack.scores[f])
        }
        if wrong or got.keys() != attack.scores.keys():
            found.append(f"{attack.name}: scored {wrong}, deserves {attack.scores}")
        if record["state"] not in attack.states:
            found.append(
                f"{attack.name}: {record['state']} {record['mends']} {record['left_out']}"
            )
        if run.gradebook.get(student) != record["score"]:
            found.append(f"{attack.name}: {run.gradebook.get(student)} in the gradebook")
        notebook = json.loads(run.notebooks[student])
        ids = [cell["id"] for cell in notebook["cells"]]
        if len(set(ids)) < len(ids):
            found.append(f"{attack.name}: several cells of one id")
        # Each line of a source is a line of the file, with quotes and space around it.
        if len(run.notebooks[student]) > 3 * run.sizes[student] + MOST_OUTPUT:
            found.append(f"{attack.name}: {len(run.notebooks[student])} characters were kept")
        text = _text(notebook)
        found += [f"{attack.name}: {t!r} is not shown" for t in attack.shows if t not in text]
        found += [f"{attack.name}: {t!r} is shown" for t in attack.hides if t in text]
    return found


def _text(notebook):
    """Return what a reader sees but for the sources of code: markdown, outputs, their types."""
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            parts.append("".join(cell["source"]))
            parts.append(json.dumps(cell.get("attachments", {})))
        for output in cell.get("outputs", []):
            parts += [json.dumps(output), "".join(output.get("text", ""))]
    parts.append(json.dumps(notebook["metadata"]))
    return "\n".join(parts)
