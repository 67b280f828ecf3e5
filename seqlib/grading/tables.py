"""Tables in CSV that spreadsheets read without surprises."""

import csv


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
