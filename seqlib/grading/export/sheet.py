"""A table that a platform wrote, in which single cells are filled and all else stays.

A table that is read into values and written anew comes back with other quotes, line ends or
another encoding, and a platform that compares it with its own then reports changes where there
are none. Here the cells keep the text that they have in the file, quotation marks included.
"""

import codecs
import os
import re
from pathlib import Path

DELIMITERS = (",", ";", "\t")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENDS = ("\r\n", "\n", "\r")


class Sheet:
    """The rows of a CSV or tab-delimited file.

    Parameters
    ----------
    data : bytes
        The file: UTF-8, or UTF-16 with a byte order mark; cells separated by a comma, a
        semicolon or a tab, quoted as RFC 4180 says.
    name : str, default="template"
        For messages.

    Attributes
    ----------
    delimiter, encoding : str
        As found.
    header : list of str
        The values of the first row.

    Raises
    ------
    ValueError
        If the bytes are no such text, or a row has more or fewer cells than the first one.
    """

    def __init__(self, data, name="template"):
        self.name = name
        text = self._decode(data)
        self.delimiter = max(DELIMITERS, key=lambda d: _width(text, d))
        self._rows, self._ends = self._split(text)
        self.header = [_value(raw).strip() for raw in self._rows[0]] if self._rows else []
        if not any(self.header):
            raise ValueError(f"{name} must have a row of column names, got none")

    def __len__(self):
        return len(self._rows)

    def is_blank(self, row):
        """Say whether a row is an empty line."""
        return self._rows[row] == [""]

    def line(self, row):
        """Return the number of the line in which a row begins, from 1."""
        before = zip(self._rows[:row], self._ends[:row], strict=True)
        return 1 + sum(len(re.findall(r"\r\n|\r|\n", "".join(r) + end)) for r, end in before)

    def value(self, row, column):
        """Return what a cell says, without quotation marks."""
        return _value(self._rows[row][column])

    def fill(self, row, column, text):
        """Put a text into a cell, unless it says the same already, as text or as a number."""
        old = self._rows[row][column]
        if _value(old) == text or _same_number(_value(old), text):
            return
        special = {self.delimiter, '"', "\r", "\n"} & set(text)
        if old.startswith('"') or special or text != text.strip():
            doubled = text.replace('"', '""')
            text = f'"{doubled}"'
        self._rows[row][column] = text

    def data(self):
        """Return the file."""
        lines = zip(self._rows, self._ends, strict=True)
        text = "".join(self.delimiter.join(row) + end for row, end in lines)
        return self._mark + text.encode(self.encoding)

    def _decode(self, data):
        self._mark, self.encoding = b"", "utf-8"
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                self._mark, self.encoding = mark, encoding
                break
        try:
            text = data[len(self._mark) :].decode(self.encoding)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.name} must be UTF-8, or UTF-16 with a byte order mark, got other bytes "
                f"at {error.start}; download it again, and open it in no spreadsheet before"
            ) from error
        if "\0" in text:
            raise ValueError(f"{self.name} must be a text file, got one with null characters")
        return text

    def _split(self, text):
        rows, ends, row, at = [], [], [], 0
        cell = _cell(self.delimiter)
        while at < len(text):
            found = cell.match(text, at)
            row.append(found.group())
            at = found.end()
            if text.startswith(self.delimiter, at):
                at += len(self.delimiter)
                if at < len(text):
                    continue
                row.append("")  # the file ends behind a delimiter
            end = next((e for e in _ENDS if text.startswith(e, at)), "")
            if not end and at < len(text):
                line = 1 + len(re.findall(r"\r\n|\r|\n", text[:at]))
                raise ValueError(
                    f"{self.name} must quote its cells as RFC 4180 says, got a quotation mark "
                    f"in line {line} that does not end its cell"
                )
            if rows and row != [""] and len(row) != len(rows[0]):
                line = 1 + len(re.findall(r"\r\n|\r|\n", text[: found.start()]))
                raise ValueError(
                    f"{self.name} must have {len(rows[0])} cells in each row, as in the first; "
                    f"got {len(row)} in line {line}"
                )
            rows.append(row)
            ends.append(end)
            row, at = [], at + len(end)
        return rows, ends


def _cell(delimiter):
    """Return the pattern of a cell as it stands in a file; the second half may be empty."""
    return re.compile(rf'"(?:[^"]|"")*"|(?!")[^{delimiter}\r\n]*|')


def _width(text, delimiter):
    """Return how many cells the first row has under a delimiter."""
    cell, at, width = _cell(delimiter), 0, 1
    while True:
        at = cell.match(text, at).end()
        if not text.startswith(delimiter, at):
            return width
        width, at = width + 1, at + len(delimiter)


def _value(raw):
    if raw.startswith('"') and raw.endswith('"') and len(raw) > 1:
        return raw[1:-1].replace('""', '"')
    return raw


def _same_number(old, new):
    try:
        return float(old) == float(new)
    except ValueError:
        return False


def write_file(path, data):
    """Write a file so that it has its old content or the whole new one at any moment."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"out must be a file in a folder that exists, got {path}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
