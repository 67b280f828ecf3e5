"""What runs inside the sandbox: the fork server and the processes of each submission.

This folder and that of ``seqlib.subject`` are copied to where students' code runs, so the
modules here import nothing else of ``seqlib``, and name these two by relative imports.
"""
