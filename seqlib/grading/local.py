"""A student's own run of a whole notebook: ``seqlib check NOTEBOOK``."""

import math
from pathlib import Path

from seqlib.exercises import get_assignment, get_task
from seqlib.grading.notebook.calls import check_call
from seqlib.grading.notebook.reading import read_cells
from seqlib.grading.notebook.trusted import TrustedSubmission
from seqlib.grading.notebook.versions import local_note
from seqlib.judge.check import progress
from seqlib.judge.judge import judge
from seqlib.judge.seeds import local_seed


def check_notebook(path, *, seed=None, write=print):
    """Run a notebook from the top in this process and judge the tasks that it checks.

    A task that is checked more than once counts with its last check, as in the notebook.

    Parameters
    ----------
    path : path
        The notebook.
    seed : int, optional
        Seed of the inputs; the one that ``check`` uses if None.
    write : callable
        Prints one line.

    Returns
    -------
    score, points : float
        Sums over the tasks that the notebook checks.

    Raises
    ------
    UnreadableError
        A ValueError, if the file is no notebook.
    ValueError
        If the notebook checks no task.
    """
    read = read_cells(Path(path).read_bytes())
    for mend in read.mends:
        write(f"Note: {mend}")
    calls = [_call(cell) for cell in read.cells]
    for name in dict.fromkeys(_assignment(call.task) for call in calls if call):
        note = local_note(read.versions, get_assignment(name))
        if note:
            write(note)
    earned, possible = {}, {}
    with TrustedSubmission() as session:
        for number, (cell, call) in enumerate(zip(read.cells, calls, strict=True), start=1):
            if cell["cell_type"] != "code":
                continue
            if call is None:
                result = session.run_cell(cell["source"])
                for output in result.outputs:
                    if output["output_type"] == "error":
                        write(f"Cell {number}: {output['ename']}: {output['evalue']}")
                continue
            task = get_task(call.task)
            result = judge(
                task, session.subject(call.function), local_seed(task) if seed is None else seed
            )
            earned[task.id], possible[task.id] = result.score, result.points
            for line in result.lines():
                write(line)
            write(progress(get_assignment(_assignment(task.id)), earned))
    if not possible:
        raise ValueError('notebook must have cells such as check("rnn.rnn_step", rnn_step)')
    return math.fsum(earned.values()), math.fsum(possible.values())


def _call(cell):
    return check_call(cell["source"]) if cell["cell_type"] == "code" else None


def _assignment(task_id):
    return task_id.partition(".")[0]
