"""Collecting: from what a learning platform exports to the folders that are graded.

``run`` does it as a whole. What it asks on the way: what lies in an export (``archives``), who
handed in which file and when (``platforms``, ``roster``, ``names``, ``times``), and where it
goes (``store``).
"""
