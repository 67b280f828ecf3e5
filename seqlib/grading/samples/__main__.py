"""Write the sample class of an assignment to ``grading/submitted``."""

import argparse
from pathlib import Path

from seqlib.grading.course import find_course
from seqlib.grading.samples.sample_class import SampleClass, write_samples


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m seqlib.grading.samples", description=__doc__
    )
    parser.add_argument("name", help="the assignment")
    parser.add_argument(
        "--harmless", action="store_true", help="leave out code that needs a sandbox"
    )
    parser.add_argument("--out", type=Path, help="folder; default: grading/submitted")
    options = parser.parse_args()
    try:
        course = find_course()
        samples = SampleClass(course, options.name).samples()
        folder = options.out or course.grading / "submitted"
        written = write_samples(samples, folder, options.name, harmless=options.harmless)
    except ValueError as error:
        parser.error(str(error))
    left = len(samples) - len(written)
    shown = folder.relative_to(course.root) if folder.is_relative_to(course.root) else folder
    print(
        f"{len(written)} sample submissions of {options.name} in {shown}"
        + (f"; {left} that need a sandbox were left out" if left else "")
    )


if __name__ == "__main__":
    main()
