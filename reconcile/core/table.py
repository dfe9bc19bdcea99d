"""CSV as it is written here, for spreadsheets too: a text that one of them would take for a formula is none.

A text that begins like a formula gets a ``'`` in front (OWASP, CSV Injection); a number, negative ones included, stays a number.
What is read back loses that ``'`` again, so that every text comes back as it was.  Only a NUL does not, which no CSV holds
(Python 3.10 neither writes nor reads one): it becomes ``\\x00``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_HELD = re.compile(rf"'{_FORMULA.pattern}")


def written(rows: Iterable[Iterable[object]]) -> str:
    """The rows as CSV text."""
    line = csv.writer(_Line(), lineterminator="\r\n").writerow  # what is in the terminator is quoted in a cell
    return "".join(f"{line([_cell(value) for value in row])[:-2]}\n" for row in rows)


class _Line:
    """Hands back what it is given, as writerow does then."""

    def write(self, text: str) -> str:
        return text


def read(cell: str) -> str:
    """The text that was written as this cell."""
    return cell[1:] if _HELD.match(cell) else cell


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\\x00")
    return f"'{text}" if _FORMULA.match(text) else text
