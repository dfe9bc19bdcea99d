"""Reader of the CSV table of claims of ``reconcile audit``: one published number per row.

A row that cannot be read carries the reason, and the audit continues.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...core import table, user_files
from ...core.errors import UsageError, brief

COLUMNS = ("model", "input", "figure", "claim", "source", "counter", "environment")
REQUIRED = ("model", "figure")
FOUND = (
    "verdict", "number", "unit", "reading", "arithmetic", "left out", "readings", "numbers", "by chance", "evidence", "macs",
    "reason",
)  # fmt: skip
"""What an audit adds to a claim."""
WRITTEN = ("row", *COLUMNS, *FOUND)
"""The columns of ``audit.csv``: each claim with what was found. It is a table of claims as well."""
LONGEST = 1000
"""The most characters of a cell: a longer one is no name, no figure and no source."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One row, by the names of its columns. A cell is '' if it is empty or the file has no such column.

    Attributes:
        row: Its number in the file, the first below the head being 1.
        model: What makes the model, such as ``timm:NAME`` or a pair of the zoo.
        input: Its inputs, as ``--input`` of ``reconcile run`` takes them.
        figure: The published figure, with the digits that were printed.
        claim: Its unit as printed, such as GMACs.
        source: Where it is printed.
        counter: The counter that the source names.
        environment: Where the model runs; without it, where the command says.
        wrong: Why the row cannot be read; '' if it can.
    """

    row: int
    model: str
    input: str = ""
    figure: str = ""
    claim: str = ""
    source: str = ""
    counter: str = ""
    environment: str = ""
    wrong: str = ""

    @property
    def printed(self) -> str:
        """The figure with its unit, as decode reads it."""
        return f"{self.figure} {self.claim}".strip()


def read_claims(path: Path) -> list[Claim]:
    """The rows of the file, which may be what an audit wrote. Raises UsageError for one that cannot be read, and for a head
    without the columns."""
    lines = csv.reader(io.StringIO(user_files.text(path, "the claims"), newline=""))
    names = next(lines, [])
    head = names if tuple(names) == WRITTEN else table.head_of(names, COLUMNS, REQUIRED, path, "the claims")
    claims = [_claim(number, head, cells) for number, cells in enumerate(_rows(lines), 1)]
    if not claims:
        raise UsageError(f"the claims {brief(path)} have no rows.")
    return claims


def _rows(lines: Iterator[list[str]]) -> Iterator[list[str] | str]:
    """The rows that are not empty; in place of one that csv cannot read, why."""
    while True:
        try:
            row = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            yield f"this row is not CSV: {error}."
            continue
        if row:
            yield row


def _claim(number: int, head: list[str], cells: list[str] | str) -> Claim:
    if isinstance(cells, str):
        return Claim(number, "", wrong=cells)
    wrong = "" if len(cells) == len(head) else f"this row has {len(cells)} cells, and the head has {len(head)}."
    given = {name: table.read_cell(cell).strip() for name, cell in zip(head, cells, strict=False) if name in COLUMNS}
    long = next((name for name, text in given.items() if len(text) > LONGEST), "")
    if long:
        wrong = f"its {long} has {len(given[long]):,} characters, and {LONGEST:,} are the most."
        given = {name: text[:80] for name, text in given.items()}
    for name in REQUIRED:
        wrong = wrong or ("" if given.get(name) else f"this row has no {name}.")
    return Claim(number, **{"model": "", **given}, wrong=wrong)
