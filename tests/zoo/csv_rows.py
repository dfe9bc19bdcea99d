"""Committed CSV files of dataclass rows, as the pages of counters and of releases are made from."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar

from reconcile.core import table
from reconcile.core.atomic import write_file

R = TypeVar("R")


def read(path: Path, kind: type[R]) -> list[R]:
    """The rows of that file, none if it is missing. Fields are text or whole numbers."""
    if not path.exists():
        return []
    whole = {field.name for field in fields(kind) if field.type == "int"}  # type: ignore[arg-type]
    with path.open(newline="", encoding="utf-8") as file:
        lines = [{name: table.read_cell(cell) for name, cell in line.items()} for line in csv.DictReader(file)]
    return [kind(**{name: int(cell or 0) if name in whole else cell for name, cell in line.items()}) for line in lines]


def write(path: Path, kind: type[Any], rows: Sequence[Any]) -> None:
    """Write them, under a head of the fields' names."""
    write_file(path, table.format_csv([[field.name for field in fields(kind)], *map(astuple, rows)]))
