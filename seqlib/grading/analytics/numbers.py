"""Numbers on a class over several assignments: mistakes, tasks, scores, and who needs help."""

import math
import statistics
from collections import Counter, defaultdict

from seqlib.grading.analytics.groups import CLASS_FROM, MOST_SHARE, MOST_STUDENTS
from seqlib.grading.analytics.read import FAILED, PART, read_class

# Fewer students than the first say nothing about how difficult a task is, fewer than the
# second nothing about whom it tells apart: of 20, a correlation of 0 is found between -0.44
# and 0.44 in 95 of 100 classes.
DIFFICULTY_FROM = 5
DISCRIMINATION_FROM = 20
BINS = 10
# Who needs help: below this share in each of the last assignments.
LOW_SHARE = 0.5
LAST = 2
# An assignment counts as due once this share of the class has handed it in.
DUE_SHARE = 0.5
_Z = statistics.NormalDist().inv_cdf(0.975)


def analyse(course, names=(), class_list=()):
    """Return the numbers on a class, as plain values.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        With records of graded submissions.
    names : sequence of str, optional
        Assignments; all that have records if empty.
    class_list : iterable of str, optional
        Ids of everybody in the class, so that those are seen who have handed in nothing.

    Returns
    -------
    dict
        ``students`` (their number), ``rules`` (the constants), ``assignments``, ``weeks``,
        ``mistakes``, ``help``, ``open``, ``groups`` and ``notes``.

    Raises
    ------
    ValueError
        If there is no such assignment, or no graded submission.
    """
    classes = read_class(course, names)
    everybody = set(class_list).union(*(graded.handed_in for graded in classes))
    return {
        "students": len(everybody),
        "rules": {
            "difficulty_from": DIFFICULTY_FROM,
            "discrimination_from": DISCRIMINATION_FROM,
            "low_share": LOW_SHARE,
            "last": LAST,
            "due_share": DUE_SHARE,
            "group_class_from": CLASS_FROM,
            "group_most_students": MOST_STUDENTS,
            "group_most_share": MOST_SHARE,
        },
        "assignments": [_assignment(graded, everybody) for graded in classes],
        "weeks": weeks(classes),
        "mistakes": [mistake for graded in classes for mistake in mistakes(graded)],
        "help": who_needs_help(classes, everybody),
        "open": _open(classes),
        "groups": [
            {"assignment": graded.name} | group
            for graded in classes
            for group in graded.patterns.groups()
        ],
        "notes": [
            {"assignment": graded.name, "says": note}
            for graded in classes
            for note in graded.notes
        ],
    }


def _assignment(graded, everybody):
    shares = [w.share for w in graded.whole.values() if w.share is not None]
    return {
        "name": graded.name,
        "title": graded.assignment.title,
        "points": math.fsum(task.points for task in graded.assignment.tasks),
        "states": dict(sorted(Counter(w.state for w in graded.works.values()).items())),
        "waiting": len(graded.waiting),
        "missing": len(everybody - graded.handed_in),
        "distribution": distribution(shares),
        "tasks": items(graded),
    }


def distribution(shares):
    """Return how the shares of the points are distributed.

    Returns
    -------
    dict
        ``count``, ``mean``, ``quartiles`` (least, first quartile, median, third, most; between
        two values in proportion) and ``bins``, the numbers of shares in ten equal parts of
        [0, 1], each without its upper end but the last; mean and quartiles are None where
        there are no shares.
    """
    bins = [0] * BINS
    for share in shares:
        # Rounded, since a sum of points that makes 0.7 may be a little less.
        bins[min(max(int(round(share * BINS, 9)), 0), BINS - 1)] += 1
    if not shares:
        return {"count": 0, "mean": None, "quartiles": None, "bins": bins}
    inner = [shares[0]] * 3
    if len(shares) > 1:
        inner = statistics.quantiles(shares, n=4, method="inclusive")
    return {
        "count": len(shares),
        "mean": statistics.fmean(shares),
        "quartiles": [min(shares), *inner, max(shares)],
        "bins": bins,
    }


def items(graded):
    """Return difficulty and discrimination of each task of an assignment.

    Difficulty is the mean share of the points. Discrimination is the corrected item-total
    correlation, that of the points in this task with the sum of the points in all other tasks;
    only submissions that have all tasks take part in it.
    """
    works = list(graded.whole.values())
    complete = [work for work in works if None not in work.points]
    found = []
    for number, task in enumerate(graded.assignment.tasks):
        shares = [w.scores[number] for w in works if w.scores[number] is not None]
        # Rounded, since sums of points that are equal may differ in the last digit.
        rest = [
            round(math.fsum(p for i, p in enumerate(work.points) if i != number), 9)
            for work in complete
        ]
        measured = discrimination([work.points[number] for work in complete], rest)
        enough = len(shares) >= DIFFICULTY_FROM
        found.append(
            {
                "task": task.id,
                "points": task.points,
                "count": len(shares),
                "difficulty": statistics.fmean(shares) if enough else None,
                **measured,
            }
        )
    return found


def discrimination(points, rest):
    """Return the correlation of the points in a task with those in all others.

    Parameters
    ----------
    points, rest : sequence of float
        Of the same students.

    Returns
    -------
    dict
        ``correlated``, the number of students; ``discrimination``, Pearson's correlation;
        ``low`` and ``high``, the ends of Fisher's interval of 95 %, ``tanh(atanh(r) -+
        1.96 / sqrt(n - 3))``; and ``remark``, why there is no number: ``"too few"``,
        ``"constant"`` (all have the same points here) or ``"others constant"``.
    """
    nothing = {"correlated": len(points), "discrimination": None, "low": None, "high": None}
    if len(points) < DISCRIMINATION_FROM:
        return nothing | {"remark": "too few"}
    if min(points) == max(points):
        return nothing | {"remark": "constant"}
    if min(rest) == max(rest):
        return nothing | {"remark": "others constant"}
    r = min(max(statistics.correlation(points, rest), -1.0), 1.0)
    low = high = r
    if abs(r) < 1:
        middle, half = math.atanh(r), _Z / math.sqrt(len(points) - 3)
        low, high = math.tanh(middle - half), math.tanh(middle + half)
    return nothing | {"discrimination": r, "low": low, "high": high, "remark": ""}


def mistakes(graded):
    """Return the named misconceptions of an assignment, most frequent first.

    ``count`` is of students, ``readable`` that of all whose submission could be read, and
    ``weeks`` counts by week of the submission, without those whose time is not known.
    """
    who, when = Counter(), defaultdict(Counter)
    readable = graded.readable.values()
    for work in readable:
        for mistake in work.mistakes:
            who[mistake] += 1
            if work.week is not None:
                when[mistake][work.week] += 1
    return [
        {
            "assignment": graded.name,
            "task": graded.assignment.tasks[number].id,
            "name": name,
            "says": graded.about[number, name][0],
            "page": graded.about[number, name][1],
            "count": who[number, name],
            "readable": len(readable),
            "weeks": dict(sorted(when[number, name].items())),
        }
        for number, name in sorted(who, key=lambda mistake: (-who[mistake], mistake))
    ]


def weeks(classes):
    """Return, for each week in time, how many submissions there were, and with mistakes.

    ``week`` is None, last, for those whose time is not known.
    """
    submissions, mistaken, named = Counter(), Counter(), Counter()
    for graded in classes:
        for work in graded.readable.values():
            submissions[work.week] += 1
            mistaken[work.week] += bool(work.mistakes)
            named[work.week] += len(work.mistakes)
    return [
        {
            "week": week,
            "submissions": submissions[week],
            "with_mistakes": mistaken[week],
            "mistakes": named[week],
        }
        for week in sorted(submissions, key=lambda week: (week is None, week or ""))
    ]


def who_needs_help(classes, everybody):
    """Return who needs help and why, by three rules over the last assignments that are due.

    An assignment is due once half of the class has handed it in, and the last two of those
    count. A student is listed who has handed in one of the two not at all; who has less than
    half of the points in all of those that were judged as a whole; or who makes a mistake in
    one of the two that the same section of the book explains as one in an earlier assignment.

    Parameters
    ----------
    classes : list of seqlib.grading.analytics.read.Graded
        In the order of the course.
    everybody : set of str
        The class.

    Returns
    -------
    list of dict
        ``student`` and ``reasons`` (``rule``, ``says`` and ``page``), those with the most
        reasons first.
    """
    due = [g for g in classes if len(g.handed_in) >= DUE_SHARE * len(everybody)][-LAST:]
    if not due:
        return []
    came_back = _came_back(classes, due)
    judged = [(graded.name, graded.whole) for graded in due]
    handed_in = [(graded.name, graded.handed_in) for graded in due]
    found = []
    for student in sorted(everybody):
        reasons = [
            _reason("missing", f"No submission of {name}.")
            for name, students in handed_in
            if student not in students
        ]
        shares = [(name, works[student].share) for name, works in judged if student in works]
        shares = [(name, share) for name, share in shares if share is not None]
        if shares and all(share < LOW_SHARE for _, share in shares):
            parts = " and ".join(f"{percent(share)} in {name}" for name, share in shares)
            reasons.append(_reason("low", f"Points: only {parts}."))
        reasons += came_back.get(student, [])
        if reasons:
            found.append({"student": student, "reasons": reasons})
    return sorted(found, key=lambda entry: (-len(entry["reasons"]), entry["student"]))


def _came_back(classes, due):
    """Return ``{student: reasons}`` of mistakes that an earlier assignment showed already."""
    reasons = defaultdict(list)
    made = defaultdict(dict)  # student -> section -> the task in which it was made last
    names = {graded.name for graded in due}
    for graded in classes:
        for student, work in graded.readable.items():
            here = {}
            for number, name in work.mistakes:
                says, page = graded.about[number, name]
                task = graded.assignment.tasks[number].id
                before = made[student].get(page)
                # Several mistakes of a section in one assignment are one reason.
                if page and before and page not in here and graded.name in names:
                    text = f"Made in {before} before, and again in {task}: {says}"
                    reasons[student].append(_reason("came back", text, page))
                here.setdefault(page, task)
            made[student].update(here)
    return reasons


def _reason(rule, says, page=""):
    return {"rule": rule, "says": says, "page": page}


def _open(classes):
    """Return what a person has to look at, since the machine has not judged all of it."""
    says = {
        PART: "part of the work could not be graded",
        FAILED: "grading failed, which is not the student's doing: grade again",
        "unreadable": "the file could not be read",
    }
    return [
        {"student": student, "assignment": graded.name, "says": says[work.state]}
        for graded in classes
        for student, work in sorted(graded.works.items())
        if work.state in says
    ] + [
        {"student": student, "assignment": graded.name, "says": "handed in, not graded yet"}
        for graded in classes
        for student in sorted(graded.waiting)
    ]


def percent(share):
    """Write a share without decimals, and nothing below 1 as 100 %.

    >>> percent(0.4996), percent(0.999)
    ('49 %', '99 %')
    """
    return f"{math.floor(100 * share + 1e-9)} %"
