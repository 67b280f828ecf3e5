"""Students' code, run where it reaches nothing of the machine: the judge's side.

``box`` holds the sandbox itself, ``submission`` what runs in it, ``isolation`` the question
whether this machine can offer it, and ``doctor`` tries each protection with a real attempt.
The other side is the package ``inside``.
"""
