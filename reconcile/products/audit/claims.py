"""Reader of the CSV table of claims of ``reconcile audit``: one published number per row.

A row that cannot be read carries the reason, and the audit continues.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .. import user_tables

COLUMNS = ("model", "input", "figure", "claim", "source", "counter", "environment")
REQUIRED = ("model", "figure")
FOUND = (
    "verdict", "number", "unit", "reading", "arithmetic", "left out", "readings", "numbers", "by chance", "evidence", "macs",
    "reason",
)  # fmt: skip
"""What an audit adds to a claim."""
WRITTEN = ("row", *COLUMNS, *FOUND)
"""The columns of ``audit.csv``: each claim with what was found. It is a table of claims as well."""


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

    def names(self, family: str) -> bool:
        """Whether the source names a counter of that family, in a text such as ``thop 0.1 or fvcore``."""
        return bool(family) and family.lower() in re.split(r"[^\w.@:-]+", self.counter.lower())


def read_claims(path: Path) -> list[Claim]:
    """The rows of the file, which may be what an audit wrote. Raises UsageError for one that cannot be read, and for a head
    without the columns."""
    rows = user_tables.read_rows(path, COLUMNS, REQUIRED, "the claims", WRITTEN)
    return [Claim(number, **{"model": "", **given}, wrong=wrong) for number, (given, wrong) in enumerate(rows, 1)]
