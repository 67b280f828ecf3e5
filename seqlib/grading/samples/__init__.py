"""A sample class: invented submissions of an assignment with the score that each deserves.

``python -m seqlib.grading.samples attention`` writes it to ``grading/submitted``.
"""
