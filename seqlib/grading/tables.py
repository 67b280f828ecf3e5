"""Tables in CSV: those that spreadsheets read without surprises, and those that people edit."""

import csv
import io


def safe(value):
    """Return a value as a cell of a table: numbers stay, text never starts a formula.

    >>> safe("=1+1"), safe(-1.5), safe(None)
    ("'=1+1", -1.5, '')
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return value
    text = str(value)
    formula = text.lstrip().startswith(("=", "+", "-", "@")) or text.startswith(("\t", "\r"))
    return f"'{text}" if formula else text


def write_csv(rows, columns, file):
    """Write rows as CSV (RFC 4180).

    Parameters
    ----------
    rows : iterable of dict
        Values by column; others are left out.
    columns : sequence of str
        The header.
    file : text file
        Opened with ``newline=""``.
    """
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([safe(row.get(column)) for column in columns])


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
