"""What the report and the terminal say of marks that were given to older submissions."""

from seqlib.grading.gradebook.marks import FILE, marked_students, stale_marks
from seqlib.grading.records import Store


def all_stale_marks(course, name, students):
    """Return ``{student: cells}`` of the marks that were given to older submissions.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where everything lies. Its gradebook is not opened, or made, before a submission of
        these students was written to it.
    name : str
        The assignment.
    students : iterable of str
        Whose marks.
    """
    from seqlib.grading.gradebook.writer import open_gradebook

    stores = {student: Store(course.records, name, student) for student in students}
    if not any((store.folder / FILE).exists() for store in stores.values()):
        return {}
    with open_gradebook(course) as gradebook:
        found = {
            student: stale_marks(gradebook, stores[student], name, student)
            for student in sorted(marked_students(gradebook, name).intersection(stores))
        }
    return {student: cells for student, cells in found.items() if cells}
