"""Writes CSV that is safe to open in a spreadsheet, which takes no string for a formula; reads users' CSV, checks its columns.

A string that starts like a formula gets a leading ``'`` (OWASP, CSV Injection); a number, even a negative one, stays a number.
Reading removes that ``'``, so every string comes back as it was.  The exception is a NUL, which CSV cannot hold (Python 3.10
neither writes nor reads one): it becomes ``\\x00``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from . import user_files
from .errors import UsageError, brief, short
from .escaping import escape_line

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_ESCAPED = re.compile(rf"'{_FORMULA.pattern}")
LONGEST = 1000
"""The most characters of a cell of a user's table: a longer one is no name, no figure and no source."""


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


def head_of(cells: Sequence[str], columns: Sequence[str], required: Sequence[str], path: Path, what: str) -> list[str]:
    """The names of a header: each is one of ``columns``, none is twice, and all of ``required`` are there. Raises UsageError, in
    which ``what`` names the file: "the claims"."""
    head = [name.strip() for name in cells]
    known = ", ".join(columns)
    for name in required:
        if name not in head:
            raise UsageError(
                f"{what} {brief(path)} have no column {name}: expected a head with some of the columns {known}."
            )
    for name in head:
        if name not in columns:
            raise UsageError(f"{what} {brief(path)} have an unknown column {short(name)}: the columns are {known}.")
        if head.count(name) > 1:
            raise UsageError(f"{what} {brief(path)} have the column {name} twice.")
    return head


def read_rows(
    path: Path, columns: Sequence[str], required: Sequence[str], what: str, written: Sequence[str] = ()
) -> list[tuple[dict[str, str], str]]:
    """The rows of a user's file that are not empty: the cells of these columns by name, and why the row cannot be read, '' if it
    can.

    ``written`` is the head of a file that the tool writes, which may have more columns. Raises UsageError for a file that cannot
    be read or has no rows, and as ``head_of``.
    """
    lines = csv.reader(io.StringIO(user_files.read_text_file(path, what), newline=""))
    try:
        names = next(lines, [])
    except csv.Error as error:
        raise UsageError(f"{what} {brief(path)} are not CSV: {error}.") from error
    head = names if written and names == list(written) else head_of(names, columns, required, path, what)
    rows: list[tuple[dict[str, str], str]] = []
    while True:
        try:
            cells = next(lines)
        except StopIteration:
            break
        except csv.Error as error:
            rows.append(({}, f"this row is not CSV: {error}."))
            continue
        if cells:
            rows.append(_read_row(cells, head, columns, required))
    if not rows:
        raise UsageError(f"{what} {brief(path)} have no rows.")
    return rows


def _read_row(
    cells: Sequence[str], head: Sequence[str], columns: Sequence[str], required: Sequence[str]
) -> tuple[dict[str, str], str]:
    given = {name: read_cell(cell).strip() for name, cell in zip(head, cells, strict=False) if name in columns}
    long = next((name for name, text in given.items() if len(text) > LONGEST), "")
    if long:
        wrong = f"its {long} has {len(given[long]):,} characters, and {LONGEST:,} are the most."
        return {name: text[:80] for name, text in given.items()}, wrong
    if len(cells) != len(head):
        return given, f"this row has {len(cells)} cells, and the head has {len(head)}."
    lacking = next((name for name in required if not given.get(name)), "")
    return given, f"this row has no {lacking}." if lacking else ""


def _safe(text: str) -> str:
    text = text.replace("\0", "\\x00")
    return f"'{text}" if _FORMULA.match(text) else text
