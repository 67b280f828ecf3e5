"""Tables that people make and edit, read with the line numbers that an editor shows."""

import csv
import io


def numbered_rows(text, delimiter=","):
    """Yield the rows of a table in CSV that are not blank.

    Parameters
    ----------
    text : str
        The file, without a byte order mark.
    delimiter : str, default=","
        Between cells.

    Yields
    ------
    line : int
        The line of the file in which the row begins, from 1; a quoted cell may have several.
    row : list of str
        Its cells.

    Raises
    ------
    ValueError
        If it is no table in CSV; the message begins with the line in which the row begins.
    """
    # With newline="" a line ends where an editor ends it, and a quoted cell keeps its ends.
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"line {line} must be CSV: {error}") from error
        if any(cell.strip() for cell in row):
            yield line, row
