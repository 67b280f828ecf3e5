"""Marks on their way out of the gradebook, into the file that a learning platform takes back.

``marks`` says what each student has and what about it is open, ``fill`` puts it into the file
of a platform (``canvas``, ``moodle``, ``blackboard``), ``run`` does it all, and ``plugins`` are
the same for ``nbgrader export``.
"""
