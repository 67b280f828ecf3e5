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
  4    some submissions could not be collected, or graded for reasons not theirs
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
@click.argument("exports", nargs=-1, required=True, metavar="FILE_OR_FOLDER...")
@click.option("--assignment", "name", required=True, metavar="NAME", help="Of what they are.")
@click.option("--roster", type=click.Path(), metavar="CSV", help="Table of the class.")
@click.option(
    "--platform",
    type=click.Choice(["auto", "canvas", "moodle", "blackboard", "gradescope", "generic"]),
    default="auto",
    show_default=True,
    help="Whose form the names have.",
)
@click.option("--timezone", metavar="ZONE", help="The platform's, such as Europe/Berlin.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
@click.pass_obj
def collect(root, exports, as_json, **options):
    """Put what a learning platform exports into grading/submitted/STUDENT/NAME.

    A second run changes nothing; a newer submission replaces an older one, which is kept.
    """
    with _problems("grade"):
        from seqlib.grading import console
        from seqlib.grading.collect.report import report_lines
        from seqlib.grading.collect.run import collect as put

        report = put(_course(root), exports, **options)
        if as_json:
            console.print_json(report.to_dict())
        else:
            click.echo("\n".join(report_lines(report)))
    sys.exit(0 if report.complete else NOT_GRADED)


@main.command()
@click.argument("name")
@click.option("--workers", type=click.IntRange(1), help="Worker processes; default: cores.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster that grades.")
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
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster that grades.")
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
            from seqlib.grading.sandbox.isolation import require_isolation

            click.echo(f"Isolation level: {require_isolation(level)}")
            return
        from seqlib.grading import console
        from seqlib.grading.sandbox.doctor import essential_holes, run_doctor

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
        from seqlib.grading.sandbox.isolation import require_isolation

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
@click.pass_obj
def rubric(root, name):
    """Print the rubric and the model answer of each question in words."""
    with _problems():
        from seqlib.grading.rubric import rubric_lines

        click.echo("\n".join(rubric_lines(_course(root), name)))


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
@click.argument("names", nargs=-1, metavar="[ASSIGNMENT]...")
@click.option("--out", metavar="FOLDER", help="Default: grading/reports/analytics.")
@click.option("--book", help="Address of the book, for links; default: the one built here.")
@click.option("--roster", type=click.Path(), metavar="CSV", help="Table of the class.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON as well.")
@click.pass_obj
def analytics(root, names, roster, as_json, **options):
    """Write a page on the class over several assignments, all that are graded or these.

    Mistakes by week, difficulty and discrimination of the tasks, scores, who needs help.
    """
    with _problems("grade"):
        from seqlib.grading import console
        from seqlib.grading.analytics.page import write_analytics
        from seqlib.grading.collect.roster import read_roster

        people = read_roster(roster).people if roster else ()
        class_list = [person.id for person in people]
        data, paths = write_analytics(_course(root), names, class_list=class_list, **options)
        if as_json:
            console.print_json(data)
        else:
            click.echo("\n".join(_from(_course(root).root, path) for path in paths))


@main.command()
@click.option(
    "--to",
    default="generic",
    show_default=True,
    metavar="PLATFORM",
    help="canvas, moodle, blackboard or generic.",
)
@click.option("--out", help="The file; default: grades.csv, or canvas.csv and the like.")
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False),
    help="The file that the platform offers for download, to be filled.",
)
@click.option("--assignment", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--student", multiple=True, metavar="ID", help="Only this one; repeatable.")
@click.option(
    "--column",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Column of an assignment that the platform calls otherwise; repeatable.",
)
@click.option("--match", metavar="COLUMN", help="Column by which students are found.")
@click.option("--provisional", is_flag=True, help="Also export marks that are not final.")
@click.option("--rescale", is_flag=True, help="Convert marks to the points of the column.")
@click.pass_obj
def export(root, assignment, student, column, **options):
    """Write the marks of the gradebook to a file that a learning platform takes back."""
    with _problems("grade"):
        from seqlib.grading.export.run import export as write
        from seqlib.grading.gradebook.writer import open_gradebook

        chosen = {"assignments": assignment, "students": student, "columns": _pairs(column)}
        course = _course(root)
        with open_gradebook(course) as gradebook:
            for line in write(gradebook, course, **chosen, **options):
                click.echo(line)


@main.command()
@click.argument("name")
@click.option(
    "--to",
    default="generic",
    show_default=True,
    metavar="PLATFORM",
    help="canvas, moodle, blackboard or generic.",
)
@click.option("--out", help="The archive; default: feedback-NAME-PLATFORM.zip.")
@click.option("--student", multiple=True, metavar="ID", help="Only this one; repeatable.")
@click.option("--provisional", is_flag=True, help="Also where the mark is not final.")
@click.pass_obj
def feedback(root, name, student, **options):
    """Write the feedback pages of an assignment, packed for a learning platform."""
    with _problems("grade"):
        from seqlib.grading.feedback.pack import feedback as write
        from seqlib.grading.gradebook.writer import open_gradebook

        course = _course(root)
        with open_gradebook(course) as gradebook:
            for line in write(gradebook, course, name, students=student, **options):
                click.echo(line)


def _course(root):
    from seqlib.grading.course import find_course

    return find_course(root)


def _from(root, path):
    """Return a path as seen from the course, as it is if it lies elsewhere."""
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _assignment(task):
    name, dot, function = task.partition(".")
    if not (dot and name and function):
        raise ValueError(f"task must be <assignment>.<function>, got {task!r}")
    return name


def _pairs(texts):
    """Return ``{name: column}`` of ``NAME=COLUMN``."""
    pairs = [text.partition("=") for text in texts]
    wrong = [text for text, pair in zip(texts, pairs, strict=True) if not all(pair)]
    if wrong:
        raise ValueError(f"column must be NAME=COLUMN, got {wrong[0]!r}")
    names = [name for name, _, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"column must be given once for an assignment, got {twice[0]!r} again")
    return {name: column for name, _, column in pairs}


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
