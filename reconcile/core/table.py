"""Writes CSV that is safe to open in a spreadsheet, which takes no string for a formula; reads its cells.

A string that starts like a formula gets a leading ``'`` (OWASP, CSV Injection); a number, even a negative one, stays a number.
Reading removes that ``'``, so every string comes back as it was.  The exception is a NUL, which CSV cannot hold (Python 3.10
neither writes nor reads one): it becomes ``\\x00``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping

from .escaping import escape_line

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_ESCAPED = re.compile(rf"'{_FORMULA.pattern}")


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    """The rows as CSV text."""
    return _lines(rows, _Cells(_safe))


def format_report_csv(rows: Iterable[Iterable[object]]) -> str:
    """The rows as the CSV text of a report: names show as written, and do nothing to a terminal or to the lines of the file."""
    return _lines(rows, _Cells(lambda text: _safe(escape_line(text))))


def _lines(rows: Iterable[Iterable[object]], cells: Mapping[str, str]) -> str:
    line = csv.writer(_Line(), lineterminator="\r\n").writerow  # csv quotes cells that contain a terminator character
    return "".join(
        f"{line([cells[value] if isinstance(value, str) else value for value in row])[:-2]}\n" for row in rows
    )


class _Cells(dict[str, str]):
    """The escaped cell of each string of one table; most strings are in many rows."""

    def __init__(self, made: Callable[[str], str]) -> None:
        super().__init__()
        self.made = made

    def __missing__(self, text: str) -> str:
        cell = self[text] = self.made(text)
        return cell


class _Line:
    """A file whose ``write`` returns its text, so that ``writerow`` returns it."""

    def write(self, text: str) -> str:
        return text


def read_cell(cell: str) -> str:
    """The string that ``format_csv`` wrote as this cell, without the ``'`` that it may have added."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def _safe(text: str) -> str:
    text = text.replace("\0", "\\x00")
    return f"'{text}" if _FORMULA.match(text) else text
