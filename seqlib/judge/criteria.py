"""What speaks against each criterion, as a phrase for the student."""

import numpy as np

from seqlib.judge.compare import difference, name_of
from seqlib.judge.part import MISSING, part_of
from seqlib.judge.run import SKIPPED, Caller, CallFailed, agree
from seqlib.judge.seeds import generator

# Parts of what comes back from a module or a function that is differentiated.
_GRADIENTS = ("gradient", "gradients", "input_gradients")


def messages_of(run):
    """Return what speaks against each criterion taken by itself, None where nothing does.

    Parameters
    ----------
    run : seqlib.judge.run.Run
        With its answers; properties put further questions to its subject.

    Returns
    -------
    dict of str to (str or None)
        By the name of the criterion.
    """
    return {criterion.name: _message(run, criterion) for criterion in run.task.criteria}


def _message(run, criterion):
    if criterion.holds is not None:
        return _property_message(run, criterion)
    answers = [a for a in run.answers if a.case.tag == criterion.tag]
    if not answers:
        raise ValueError(f"{run.task.id}: no case has the tag {criterion.tag!r}")
    failed = [(a, m) for a in answers if (m := _answer_message(run, criterion, a))]
    if not failed:
        return None
    answer, message = failed[0]
    where = f". Input: {answer.case.label}" if answer.case.label else ""
    count = f" ({len(failed)} of {len(answers)} inputs fail)" if len(answers) > 1 else ""
    return message + where + count


def _property_message(run, criterion):
    try:
        with np.errstate(all="ignore"):
            message = criterion.holds(Caller(run.ask), generator(run.seed, criterion.name))
        if message is not None:
            run.broken.append(criterion)
        return message
    except CallFailed as failure:
        return reply_message(run.task, failure.reply)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError):
        # The reference passes, so it is the answer that the property cannot work with.
        return "the answer does not have the form that the task asks for"


def _answer_message(run, criterion, answer):
    first = answer.replies[0]
    if not all(agree(run.task, first, later) for later in answer.replies[1:]):
        hint = "the function must depend on its arguments alone"
        if run.task.kind == "sampling":
            hint = "every random number must come from the generator that is passed in"
        return f"two calls with the same input gave different answers: {hint}"
    for reply in answer.replies:
        if reply.fault == SKIPPED and reply is not first:
            continue
        if not reply.ok:
            return reply_message(run.task, reply)
        message = _value_message(run.task, criterion, answer.expected.value, reply.value)
        if message is not None:
            return message
    return None


def _value_message(task, criterion, expected, got):
    if task.kind == "training":
        low, high = task.options["bounds"][criterion.name]
        if low <= got <= high:
            return None
        asked = f"not below {low:.4g}" if got < low else f"at most {high:.4g}"
        hint = ": no model can be that good without seeing the answers" if got < low else ""
        return f"the loss on a fresh sample is {got:.4g}, it must be {asked}{hint}"
    what, names = "the answer", task.options.get("parts")
    if criterion.part is not None:
        what = name_of(criterion.part, names)
        expected, got = part_of(expected, criterion.part), part_of(got, criterion.part)
        if got is MISSING and criterion.part in _GRADIENTS:
            return (
                "the output has no gradient: it is computed under torch.no_grad(), or cut off "
                "by detach(), item() or the like"
            )
        if got is MISSING:
            return f"{what} is missing"
    return difference(
        expected,
        got,
        task.tolerance,
        single=True,
        dtype=criterion.dtype,
        axes=task.options.get("axes", ()),
        names=names,
        what=what,
    )


def reply_message(task, reply):
    """Return why there is no answer, as a phrase for the student."""
    if reply.fault == "timeout":
        return f"no answer within {task.seconds:g} s; is there a loop that does not end?"
    if reply.fault is not None or reply.error is None:
        return reply.error or f"no answer ({reply.fault})"
    if reply.error.startswith("NotImplementedError"):
        return "not written yet: the line that raises NotImplementedError is still there"
    if reply.error.startswith("LibraryShortcut: "):
        return reply.error.removeprefix("LibraryShortcut: ")
    where = f" ({reply.where[-1]})" if reply.where else ""
    return f"the code raised {reply.error}{where}"
