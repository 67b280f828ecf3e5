"""The command ``seqlib``.

Everything that takes long to import is imported by the command that needs it.
"""

import contextlib
import sys

try:
    import click
except ModuleNotFoundError:
    sys.exit('The command seqlib needs click and rich: pip install "seqlib-course[grade]"')

INSUFFICIENT = 3
NOT_GRADED = 4
DIFFERENT = 5
INTERRUPTED = 130
CODES = """
\b
Exit codes:
  0    done
  1    something is wrong with what was asked for; the message says what
  2    the command was not understood
  3    the machine protects too little to run students' code
  4    some submissions could not be graded, for reasons that are not theirs
  5    a replayed score differs from the recorded one
  130  interrupted; the same command goes on
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=CODES)
@click.option("--course", "root", default=".", show_default=True, help="Folder of the course.")
@click.version_option(package_name="seqlib-course")
@click.pass_context
def main(context, root):
    """Release, grade and report the assignments of the course."""
    context.obj = root


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def release(root, names):
    """Make the students' notebooks of assignments: solutions/ -> assignments/."""
    with _problems("grade"):
        from seqlib.grading.release import release as make

        for name in names:
            path = make(_course(root), name)
            click.echo(f"assignments/{name}/{path.name}")


@main.command()
@click.argument("name")
@click.option("--workers", type=click.IntRange(1), help="Worker processes; default: cores.")
@click.option("--only", multiple=True, metavar="STUDENT", help="Only this one; repeatable.")
@click.option("--force", is_flag=True, help="Grade anew what has been graded already.")
@click.option("--level", help="Isolation level; default: the best of the machine.")
@click.option("--trust-students", is_flag=True, help="Run students' code without protection.")
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
@click.pass_obj
def grade(root, name, as_json, **options):
    """Grade what lies in grading/submitted/STUDENT/NAME."""
    with _problems("grade"):
        from seqlib.grading import console

        course = _course(root)
        outcome = console.grade(course, name, quiet=as_json, **_renamed(options))
        if as_json:
            console.print_json({"records": outcome.records, "failures": outcome.failures})
        else:
            console.show_outcome(course, name, outcome)
    sys.exit(NOT_GRADED if outcome.failures else 0)


@main.command()
@click.argument("name")
@click.option("--workers", type=click.IntRange(1), help="Worker processes; default: cores.")
@click.option("--only", multiple=True, metavar="STUDENT", help="Only this one; repeatable.")
@click.option("--force", is_flag=True, help="Grade anew even where nothing has changed.")
@click.option("--level", help="Isolation level; default: the best of the machine.")
@click.option("--trust-students", is_flag=True, help="Run students' code without protection.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON.")
@click.pass_obj
def regrade(root, name, as_json, **options):
    """Grade again after a change of the course, and list every changed score.

    Only tasks whose exercise has a new version are judged anew, unless the judge, the
    isolation level or the submission has changed too.
    """
    with _problems("grade"):
        from seqlib.grading import console
        from seqlib.grading.batch import changes
        from seqlib.grading.records import all_submissions

        course = _course(root)
        before = all_submissions(course.records, name)
        outcome = console.grade(course, name, quiet=as_json, **_renamed(options))
        found = changes(before, outcome.records)
        console.print_json(found) if as_json else console.show_changes(found, outcome)
    sys.exit(NOT_GRADED if outcome.failures else 0)


@main.command()
@click.argument("notebook", type=click.Path(exists=True, dir_okay=False))
@click.option("--seed", type=int, help="Seed of the inputs; default: that of `check`.")
def check(notebook, seed):
    """Run your notebook from the top and check every task, as grading will.

    The notebook runs on this machine with your rights; nothing is changed.
    """
    with _problems():
        from seqlib.grading.local import check_notebook

        score, points = check_notebook(notebook, seed=seed, write=click.echo)
        click.echo(f"{score:g} of {points:g} points; questions in words are graded by a person")


@main.command()
@click.option("--level", help="Isolation level; default: the best of the machine.")
@click.option("--quick", is_flag=True, help="Only say which level this machine offers.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(level, quick, as_json):
    """Try every protection of the sandbox with a real attempt, and say what holds."""
    with _problems("grade"):
        if quick:
            from seqlib.grading.isolation import require_isolation

            click.echo(f"Isolation level: {require_isolation(level)}")
            return
        from seqlib.grading import console
        from seqlib.grading.doctor import essential_holes, run_doctor

        findings = run_doctor(level)
        if as_json:
            console.print_json([finding._asdict() for finding in findings])
        else:
            console.show_findings(findings)
    sys.exit(INSUFFICIENT if essential_holes(findings) else 0)


@main.command()
@click.argument("student")
@click.argument("task")
@click.pass_obj
def explain(root, student, task):
    """Say how a score came about: seed, criteria, diagnosis, versions."""
    with _problems("grade"):
        from seqlib.grading import console
        from seqlib.grading.records import recorded

        console.show_record(*recorded(_course(root), _assignment(task), student, task))


@main.command()
@click.argument("student")
@click.argument("task")
@click.option("--level", help="Isolation level; default: the best of the machine.")
@click.option("--trust-students", is_flag=True, help="Run students' code without protection.")
@click.pass_obj
def replay(root, student, task, level, trust_students):
    """Judge a task again with the recorded seed, and compare."""
    with _problems("grade"):
        from seqlib.grading.grader import Grader
        from seqlib.grading.isolation import require_isolation

        if not trust_students:
            level = require_isolation(level)
        options = {"trust_students": trust_students, "level": level}
        with Grader(_course(root), _assignment(task), **options) as grader:
            was, now = grader.replay(student, task)
        click.echo("\n".join(now.lines()))
        if was.to_dict() == now.to_dict():
            click.echo(f"The same as recorded, with seed {now.seed}.")
            return
        click.echo(f"Not the same as recorded ({was.score:g} points), which was:")
        click.echo("\n".join(was.lines()))
    sys.exit(DIFFERENT)


@main.command()
@click.argument("name")
@click.option("--book", help="Address of the book, for links; default: the one built here.")
@click.pass_obj
def report(root, name, book):
    """Write the report on a class: grading/reports/NAME/index.html and scores.csv."""
    with _problems("grade"):
        from seqlib.grading.report import write_report

        for path in write_report(_course(root), name, book=book):
            click.echo(path.relative_to(_course(root).root))


@main.command()
@click.option("--to", default="grades.csv", show_default=True, help="The file.")
@click.option("--assignment", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--student", multiple=True, metavar="ID", help="Only this one; repeatable.")
@click.pass_obj
def export(root, to, assignment, student):
    """Write the grades of the gradebook, manual ones included, as one CSV file."""
    with _problems("grade"):
        from seqlib.grading.export import COLUMNS, grades
        from seqlib.grading.gradebook import open_gradebook
        from seqlib.grading.tables import write_csv

        with (
            open_gradebook(_course(root)) as gradebook,
            open(to, "w", encoding="utf-8", newline="") as file,
        ):
            write_csv(grades(gradebook, assignment, student), COLUMNS, file)
        click.echo(to)


def _course(root):
    from seqlib.grading.course import find_course

    return find_course(root)


def _assignment(task):
    name, dot, function = task.partition(".")
    if not (dot and name and function):
        raise ValueError(f"task must be <assignment>.<function>, got {task!r}")
    return name


def _renamed(options):
    """Return the options as :func:`seqlib.grading.batch.grade_class` calls them."""
    only = options.pop("only")
    return {**options, "students": list(only) or None}


@contextlib.contextmanager
def _problems(extra=None):
    """Turn what can go wrong into a sentence and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted; the same command goes on where this one stopped.", err=True)
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("seqlib"):
            raise
        raise click.ClickException(
            f"this command needs {error.name}, which is not installed: "
            f'pip install "seqlib-course[{extra}]"'
        ) from error
    except (ValueError, OSError, RuntimeError) as error:
        message = click.ClickException(str(error))
        if type(error).__name__ in ("IsolationError", "SandboxError", "SandboxUnavailable"):
            message.exit_code = INSUFFICIENT
        raise message from error


if __name__ == "__main__":
    main()
