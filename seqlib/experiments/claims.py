"""What a cell of the page of claims ends with: evidence in, verdict out."""

import numpy as np
from IPython import get_ipython
from IPython.display import display

# MyST-NB finds a value under this type by its name, and does not show the output itself.
_HIDDEN = "application/papermill.record/"


def verdict(claim, evidence):
    """Weigh the evidence on a claim, print it, and publish the verdict for the table.

    Parameters
    ----------
    claim : str
        Its name, ``"C16"``.
    evidence : dict of str to bool
        For each case that was measured, whether the claim held in it.

    Returns
    -------
    str
        ``"confirmed"`` if the claim held in every case, ``"refuted"`` if in none, else
        ``"qualified"``, and in how many: ``"qualified, 2 of 3"``. The cell asserts all of it.

    Raises
    ------
    ValueError
        If there is no evidence, or a case is not judged by a truth value.
    """
    if not evidence:
        raise ValueError(f"evidence must hold at least one case, got {evidence!r}")
    for case, held in evidence.items():
        if not isinstance(held, (bool, np.bool_)):
            raise ValueError(
                f"evidence must map cases to True or False, got {held!r} for {case!r}; "
                "compare the measured number with a bound"
            )
    held = [bool(value) for value in evidence.values()]
    found = "confirmed" if all(held) else "qualified" if any(held) else "refuted"
    print(f"{claim}: {found}")
    for case, value in evidence.items():
        print(f"  {'holds' if value else 'fails'}  {case}")
    if get_ipython() is not None:
        display(
            {f"{_HIDDEN}text/plain": repr(found)},
            raw=True,
            metadata={"scrapbook": {"name": claim, "mime_prefix": _HIDDEN}},
        )
    return f"{found}, {sum(held)} of {len(held)}"
