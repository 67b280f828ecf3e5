"""Judge one task: criteria, score, diagnosis."""

import ast

from seqlib.judge.compare import difference, name_of
from seqlib.judge.diagnose import diagnose
from seqlib.judge.part import MISSING, part_of
from seqlib.judge.result import CriterionResult, TaskResult, total
from seqlib.judge.run import SKIPPED, Caller, CallFailed, Run, agree
from seqlib.judge.seeds import generator

JUDGE_VERSION = 1


def judge(task, subject, seed):
    """Judge the code of one student.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        What is graded.
    subject : seqlib.subject.subject.Subject
        The student's function, in this process or in a sandbox. It is not closed.
    seed : int
        Seed of the inputs. The same seed gives the same result, for either subject.

    Returns
    -------
    seqlib.judge.result.TaskResult
        Criteria, diagnosis, notes and score.
    """
    run = Run(task, subject, seed)
    run.ask_all()
    messages = {c.name: criterion_message(run, c, run.ask) for c in task.criteria}
    criteria = _results(task, messages)
    score, points = total(criteria), task.points
    found = None if score == points else diagnose(run, messages)
    return TaskResult(
        task=task.id,
        version=task.version,
        judge_version=JUDGE_VERSION,
        seed=seed,
        criteria=criteria,
        diagnosis=found,
        notes=tuple(_notes(run, solved=score == points)),
        score=score,
        points=points,
    )


def criterion_message(run, criterion, ask):
    """Return what speaks against a criterion taken by itself, or None.

    Parameters
    ----------
    run : seqlib.judge.run.Run
        With its answers.
    criterion : seqlib.exercises.record.Criterion
        What is asked for.
    ask : callable
        ``ask(case) -> Reply``, by which a property calls the function.
    """
    if criterion.holds is not None:
        call = Caller(ask)
        try:
            return criterion.holds(call, generator(run.seed, criterion.name))
        except CallFailed as failure:
            return reply_message(run.task, failure.reply)
    answers = [a for a in run.answers if a.case.tag == criterion.tag]
    if not answers:
        raise ValueError(f"{run.task.id}: no case has the tag {criterion.tag!r}")
    failed = [(a, m) for a in answers if (m := _answer_message(run, criterion, a))]
    if not failed:
        return None
    answer, message = failed[0]
    where = f", on {answer.case.label}" if answer.case.label else ""
    count = f" ({len(failed)} of {len(answers)} inputs)" if len(answers) > 1 else ""
    return message + where + count


def _answer_message(run, criterion, answer):
    first = answer.replies[0]
    if not all(agree(run.task, first, later) for later in answer.replies[1:]):
        hint = "it must not depend on earlier calls or on anything but its arguments"
        if run.task.kind == "sampling":
            hint = "every random number must come from the generator that is passed in"
        return f"two calls with the same input gave different answers; {hint}"
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
        asked = f"at most {high:.4g}" if got > high else f"not below {low:.4g}"
        hint = "" if got > high else ": no model can be that good without seeing the answers"
        return f"the loss on a fresh sample is {got:.4g}, it must be {asked}{hint}"
    what, names = "the answer", task.options.get("parts")
    if criterion.part is not None:
        what = name_of(criterion.part, names)
        expected, got = part_of(expected, criterion.part), part_of(got, criterion.part)
        if got is MISSING:
            return f"{what} is missing"
    return difference(
        expected,
        got,
        task.tolerance,
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


def _results(task, messages):
    says = {c.name: c.says for c in task.criteria}
    needs = {c.name: [n for n in c.needs if n != c.name] for c in task.criteria}

    def missing(name):
        """Return the criteria without which ``name`` does not pay."""
        failed = [] if messages[name] is None else [name]
        return failed + [m for need in needs[name] for m in missing(need)]

    results = []
    for c in task.criteria:
        message = messages[c.name] or ""
        lacking = [m for need in needs[c.name] for m in missing(need)]
        if lacking and not message:
            message = f"counts only together with: {says[lacking[0]]}"
        results.append(CriterionResult(c.name, c.says, c.points, not message, message))
    return tuple(results)


def _notes(run, *, solved):
    names = _parameters(run.task.signature)
    if all(c.name != "inputs_unmodified" for c in run.task.criteria):
        for argument in run.modified:
            name = names.get(argument, argument)
            yield f"the function changes its argument {name} in place, for its caller too"
    if not solved:
        for warning in run.warnings[:2]:
            yield f"your code warned: {warning}"


def _parameters(signature):
    """Return the name of each positional parameter by its position, ``{"0": "q"}``."""
    try:
        function = ast.parse(f"def f{signature.partition('->')[0].strip()}: pass").body[0]
    except SyntaxError:
        return {}
    positional = function.args.posonlyargs + function.args.args
    return {str(i): parameter.arg for i, parameter in enumerate(positional)}
