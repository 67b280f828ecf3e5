"""Notebooks that students handed in: read whatever their state, mended, and run cell by cell.

``intake`` chooses among the files of a folder, ``reading`` reads one, ``repair`` puts it into
the released form, and ``execution`` runs it, in the sandbox or, if it is ``trusted``, here.
"""
