"""A student's own run of a whole notebook: ``seqlib check NOTEBOOK``."""

from pathlib import Path

from seqlib.exercises import get_task
from seqlib.grading.calls import check_call
from seqlib.grading.notebook import read_cells
from seqlib.grading.trusted import TrustedSubmission
from seqlib.judge.judge import judge
from seqlib.judge.seeds import local_seed


def check_notebook(path, *, seed=None, write=print):
    """Run a notebook from the top in this process and judge the tasks that it checks.

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
        Sums over the tasks of the notebook.

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
    score = points = 0.0
    with TrustedSubmission() as session:
        for number, cell in enumerate(read.cells, start=1):
            if cell["cell_type"] != "code":
                continue
            call = check_call(cell["source"])
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
            for line in result.lines():
                write(line)
            score, points = score + result.score, points + result.points
    if not points:
        raise ValueError('notebook must have cells such as check("rnn.rnn_cell", rnn_cell)')
    return score, points
