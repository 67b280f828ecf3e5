"""One pass over a notebook: its cells run in order, and each test cell judged in its place."""

from dataclasses import dataclass, field

from seqlib.grading.notebook.calls import check_call
from seqlib.grading.notebook.magics import runnable
from seqlib.grading.sandbox.outputs import error_output

MAX_NOTES = 100  # lines of a notebook that are named because they were not run
_REASONS = {
    "timeout": "it did not end in time",
    "crash": "it ended the Python process",
    "memory": "it used too much memory",
    "protocol": "it damaged the process in which it ran",
    "stopped": "the time for this notebook was used up",
}


@dataclass
class Execution:
    """What came of a notebook.

    Attributes
    ----------
    cells : list of dict
        The notebook's cells with outputs and execution counts.
    left_out : list of str
        A sentence for each cell that took no part, and for each task that got no answer
        because the notebook had been given up.
    notes : int
        How many lines that were taken out are named in the outputs.
    """

    cells: list
    left_out: list = field(default_factory=list)
    notes: int = 0


def is_test(cell):
    """Whether a cell is graded automatically."""
    data = cell["metadata"].get("nbgrader", {})
    return bool(cell["cell_type"] == "code" and data.get("grade") and not data.get("solution"))


def run_notebook(notebook, session, judge_task):
    """Run a notebook and judge its test cells.

    Parameters
    ----------
    notebook : dict
        In the released form; not modified.
    session
        A ``Submission`` of the sandbox or a ``TrustedSubmission``.
    judge_task : callable
        ``judge_task(call, session) -> (lines, score)`` for a
        :class:`~seqlib.grading.notebook.calls.CheckCall`; None instead of a pair if the call is
        of no task of the assignment.

    Returns
    -------
    Execution
        A test cell has printed the judge's lines, and its value is the score as a plain
        float: nbgrader reads it as partial credit.
    """
    done = Execution([])
    for count, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "code":
            done.cells.append(cell)
            continue
        if is_test(cell):
            outputs = _judged(cell, session, judge_task)
        else:
            outputs = _run(cell, session, done)
        outputs = [
            {**o, "execution_count": count} if o["output_type"] == "execute_result" else o
            for o in outputs
        ]
        done.cells.append({**cell, "outputs": outputs, "execution_count": count})
    if session.given_up is not None:
        done.left_out.append(f"The notebook was given up: {session.given_up}.")
    return done


def _run(cell, session, done):
    source, removed = runnable(cell["source"])
    result = session.run_cell(source)
    if result.fault is not None:
        reason = _REASONS.get(result.fault, result.fault)
        done.left_out.append(f'The cell "{cell["id"]}" took no part: {reason}.')
    named = removed[: max(MAX_NOTES - done.notes, 0)]
    done.notes += len(named)
    notes = "".join(f"[not run while grading: {line[:200]}]\n" for line in named)
    if len(named) < len(removed):
        notes += f"[not run while grading: {len(removed) - len(named)} lines more]\n"
    note = [{"output_type": "stream", "name": "stdout", "text": notes}] if notes else []
    return note + list(result.outputs)


def _judged(cell, session, judge_task):
    call = check_call(cell["source"])
    verdict = None if call is None else judge_task(call, session)
    if verdict is None:
        # Without an output nbgrader would give full marks.
        return [
            error_output("GradingError", "This cell is no check of a task; see the course.")
        ]
    return verdict_outputs(*verdict)


def verdict_outputs(lines, score):
    """Return the outputs of a test cell: what the judge says, and the score."""
    text = "".join(f"{line}\n" for line in lines)
    return [
        {"output_type": "stream", "name": "stdout", "text": text},
        {
            "output_type": "execute_result",
            "data": {"text/plain": repr(float(score))},
            "execution_count": None,
            "metadata": {},
        },
    ]
