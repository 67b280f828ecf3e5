"""What the report says about late submissions."""

from datetime import timedelta

from seqlib.grading.gradebook.marks import FILE
from seqlib.grading.records import Store


def late_sentences(course, name, students):
    """Return ``{student: sentence}`` of the late submissions of an assignment.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Whose gradebook, which is not opened, or made, before a submission of these students
        was written to it.
    name : str
        The assignment.
    students : iterable of str
        Whose.
    """
    stores = (Store(course.records, name, student) for student in students)
    if not any((store.folder / FILE).exists() for store in stores):
        return {}
    from seqlib.grading.gradebook.writer import open_gradebook
    from seqlib.grading.late.penalties import late_submissions

    with open_gradebook(course) as gradebook:
        found = {}
        for submission, penalty in late_submissions(gradebook, (name,)):
            cost = found.get(submission.student_id, (None, 0.0))[1] + (penalty or 0.0)
            found[submission.student_id] = submission, cost
        return {
            student: late_sentence(submission.duedate, submission.timestamp, cost)
            for student, (submission, cost) in sorted(found.items())
            if student in set(students)
        }


def late_sentence(duedate, timestamp, points_off):
    """Say how late a submission was and what it cost; empty if it was in time.

    >>> from datetime import datetime
    >>> due = datetime(2026, 3, 1, 12)
    >>> late_sentence(due, due + timedelta(days=1, hours=2, minutes=5), 8.0)
    'Late by 1 d 2 h 5 min: 8 points off.'
    """
    if duedate is None or timestamp is None or timestamp <= duedate:
        return ""
    minutes = -(-(timestamp - duedate) // timedelta(minutes=1))
    parts = zip(
        (minutes // 1440, minutes // 60 % 24, minutes % 60), ("d", "h", "min"), strict=True
    )
    shown = " ".join(f"{number} {unit}" for number, unit in parts if number)
    cost = f"{points_off:.5g} points off" if points_off else "no points off"
    return f"Late by {shown}: {cost}."
