"""Reads a user's CSV with known columns, such as claims: checks its head, and says of a row why it cannot be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from ..core import user_files
from ..core.errors import UsageError, brief, short
from ..core.table import read_cell

LONGEST = 1000
"""The most characters of a cell of a user's table: a longer one is no name, no figure and no source."""


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
        quoted = ' A cell with commas stands in quotes: "1,3,224,224".' if len(cells) > len(head) else ""
        return given, f"this row has {len(cells)} cells, and the head has {len(head)}.{quoted}"
    lacking = next((name for name in required if not given.get(name)), "")
    return given, f"this row has no {lacking}." if lacking else ""
