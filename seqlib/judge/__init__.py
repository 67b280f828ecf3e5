"""Judging of answers: criteria, comparison, diagnosis and ``check``.

:func:`seqlib.judge.judge.judge` takes the record of a task, a subject (a student's function,
here or in a sandbox) and a seed, and returns a :class:`seqlib.judge.result.TaskResult`:

1. ``run`` draws the cases, computes the right answers and puts the cases to the subject in
   random order, some of them again and some to a fresh copy. ``kinds`` turns a case into a
   request, which is all that differs between a function, a torch module, a training run or a
   test that the student wrote.
2. ``criteria`` compares the answers (``compare``) and tries the properties.
3. ``diagnose`` looks for the mistake whose output equals the student's.

``matrix`` judges every known mistake of an assignment, and ``degenerate`` makes the answers
that must earn nothing. Everything here needs NumPy alone, and nothing of an operating system
beyond what Windows and the browser have.
"""
