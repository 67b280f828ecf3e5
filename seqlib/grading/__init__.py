"""Grading of submissions, from what students hand in to the marks that a platform takes back.

The modules here join the packages: ``release`` makes the students' notebooks, ``grader``
grades one submission and ``batch`` a class, ``records`` keeps what came of it, ``report`` shows
it, and ``nbgrader_plugins`` lets nbgrader do the same.
The packages, in the order in which a submission meets them, and what invents submissions:

===============  ==============================================================================
``collect``      from what a learning platform exports to the folders that are graded
``distributed``  grades a class on the machines of a Dask cluster
``notebook``     reads notebooks, mends them, runs their cells in order
``sandbox``      runs students' code where it reaches nothing of the machine
``gradebook``    writes nbgrader's gradebook, and reads the marks that people gave
``late``         what late submissions cost
``analytics``    what a class gets wrong, over several assignments
``export``       marks in the files that a learning platform takes back
``feedback``     feedback pages, packed as a learning platform takes them back
``samples``      a class of invented students, with the scores that they deserve
===============  ==============================================================================
"""
