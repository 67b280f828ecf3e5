"""Draw the diagrams anew: ``python -m seqlib.experiments.diagrams [folder]``."""

import sys
from pathlib import Path

from seqlib.experiments.diagrams import DIAGRAMS, FOLDER


def main(folder=FOLDER):
    """Write every diagram into the folder."""
    for name, draw in DIAGRAMS.items():
        draw().save(Path(folder) / f"{name}.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
