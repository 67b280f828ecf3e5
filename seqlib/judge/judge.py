"""Judge one task: criteria, score, diagnosis."""

import ast

from seqlib.judge.criteria import messages_of
from seqlib.judge.diagnose import diagnose
from seqlib.judge.result import CriterionResult, TaskResult, total
from seqlib.judge.run import Run

JUDGE_VERSION = 1


def judge(task, subject, seed, *, later=None):
    """Judge the code of one student.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        What is graded.
    subject : seqlib.subject.subject.Subject
        The student's function, in this process or in a sandbox. It is not closed.
    seed : int
        Seed of the inputs. The same seed gives the same result, for either subject.
    later : list, optional
        If given, no fresh copy of the subject is asked. What it would have been asked is
        added to the list, a :class:`seqlib.judge.run.Recheck`; while that is not confirmed,
        the result is provisional.

    Returns
    -------
    seqlib.judge.result.TaskResult
        Criteria, diagnosis, notes and score.
    """
    run = Run(task, subject, seed, later)
    run.ask_all()
    messages = messages_of(run)
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
