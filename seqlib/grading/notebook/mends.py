"""The sentences that tell what was mended, for one cell and for several."""

MISSING = (
    "The cell {} was missing and was put back.",
    "These cells were missing and were put back: {}.",
)
BY_CONTENT = (
    "The cell {} had lost its id; its content told it.",
    "These cells had lost their ids; their content told them: {}.",
)
BY_PLACE = (
    "The answer {} had lost its id; its place told it.",
    "These answers had lost their ids; their places told them: {}.",
)
MANY_ANSWERS = (
    "The cell {} was there more than once; the one with the most work was graded.",
    "These cells were there more than once; those with the most work were graded: {}.",
)
COPIES = (
    "The cell {} was there more than once; one was kept.",
    "These cells were there more than once; one of each was kept: {}.",
)
CHANGED = (
    "The locked cell {} had been changed; its text was put back.",
    "These locked cells had been changed; their text was put back: {}.",
)
CHANGED_AND_KEPT = (
    "The locked cell {} had been changed; its text was put back, and yours stands behind it.",
    "These locked cells had been changed; their text was put back, yours stands behind: {}.",
)
GRADING_DATA = (
    "The grading data of cell {} were put right.",
    "The grading data of these cells were put right: {}.",
)


class Mends:
    """Mends in the order in which they were made; all of one kind become one sentence."""

    def __init__(self):
        self._keys = {}

    def add(self, one, several="", key=""):
        """Note a mend.

        Parameters
        ----------
        one, several : str
            The sentence about one cell, and about several, with ``{}`` for their ids.
        key : str
            Id of the cell; none for a sentence about the whole notebook.
        """
        self._keys.setdefault((one, several), []).append(f'"{key}"')

    def sentences(self):
        """Return one sentence for each kind of mend."""
        return tuple(
            several.format(", ".join(keys)) if len(keys) > 1 else one.format(keys[0])
            for (one, several), keys in self._keys.items()
        )
