"""The one interface through which a judge reaches the code that it judges.

A *subject* is a function or class that a student wrote.
It is reached either in the same process (:class:`InProcess`) or in a sandbox
(``seqlib.grading``); both carry out the same requests with the same :class:`Session`, and
what comes back consists of plain values only.
The modules here need NumPy and nothing else of ``seqlib``, so that the sandbox can hold them
without holding a reference solution.
"""
