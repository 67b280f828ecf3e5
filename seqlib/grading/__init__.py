"""Grading of submissions: sandbox, notebook repair, nbgrader plug-ins, batch and reports."""
