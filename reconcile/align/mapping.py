"""The mapping file: which layer of the one model is which of the other, a line each, to be looked through and corrected.

A CSV table with the columns ``layer, tf, torch, by, comment``. A row of the report is all lines with the same ``layer``; a line
without one is a row by itself, and so is a layer without a partner. ``by`` and ``comment`` are for the reader.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from ..core import table, user_files
from ..core.errors import UsageError, brief, reason, short
from ..core.escapes import clean
from ..core.records import Trace
from ..core.results import Match
from .alignment import ROOT

COLUMNS = ("layer", "tf", "torch", "by", "comment")
SIDES = {"tf": "TensorFlow", "torch": "PyTorch"}
GIVEN = "mapping"
HEAD = """\
# Which layer of {tf} is which of {torch}. Lines with the same name in the first column are one row of the report;
# a line with one layer alone is one without a partner. What this file does not list is aligned by itself.
# Read it back with --mapping FILE.
"""


def written(rows: Iterable[Match], model: str) -> str:
    """The file's text."""
    names = model.split("+") if model.count("+") == 1 else ["the TensorFlow model", "the PyTorch model"]
    head = HEAD.format(tf=clean(names[0]), torch=clean(names[1]))
    return head + table.written([COLUMNS, *(line for row in rows for line in _written(row))])


def _written(row: Match) -> Iterator[tuple[str, ...]]:
    for index, (tf, torch) in enumerate(zip_longest(row.tf, row.torch)):
        said = (row.by, row.comment) if not index else ("", "")
        yield (row.layer, _shown(tf), _shown(torch), *said)


def check(given: Path | None, write: Path | None) -> None:
    """Before anything runs: that the file to read is a table, and that the other can be written. Raises UsageError."""
    if given is not None:
        _lines(given)
    if write is None:
        return
    if os.path.isdir(write):
        raise UsageError(f"--write-mapping {write}: that is a folder; name a file.")
    if not os.path.isdir(write.absolute().parent):
        raise UsageError(f"--write-mapping {brief(write)}: there is no folder {brief(write.parent)}.")
    try:
        user_files.regular(write)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"--write-mapping {brief(write)}: {reason(error)}.") from error


def read(file: Path, traces: Sequence[Trace]) -> tuple[Match, ...]:
    """The rows of the file. Raises UsageError, with the line, for what is no table, for a layer that the models do not have and
    for one that is there twice."""
    there = {trace.framework: _layers(trace) for trace in traces}
    seen: dict[tuple[str, str], int] = {}
    rows: dict[str, dict[str, list[str]]] = {}
    for number, line in _lines(file):
        where = f"the mapping file {file}, line {number}"
        found = {side: line[side] for side in SIDES if line[side]}
        if not found:
            raise UsageError(f"{where} names no layer; give one in the column tf, torch or both.")
        for side, shown in found.items():
            path = "" if shown == ROOT else shown
            if path not in there[side]:
                raise UsageError(f"{where}: {_unknown(side, shown, there[side])}")
            if (side, path) in seen:
                raise UsageError(
                    f"{where}: the {SIDES[side]} layer {short(shown)} is in line {seen[side, path]} already; "
                    "a layer is in one row."
                )
            seen[side, path] = number
            row = rows.setdefault(line["layer"] or f"\n{number}", {name: [] for name in SIDES})
            row[side].append(path)
    return tuple(_row(layer, row["tf"], row["torch"]) for layer, row in rows.items())


def _row(layer: str, tf: list[str], torch: list[str]) -> Match:
    """A row by the name that it has by itself, too: its first PyTorch layer, or the framework and the layer."""
    if "" in (*tf, *torch):
        name = ROOT
    elif tf and torch:
        name = torch[0]
    else:
        name = f"torch:{torch[0]}" if torch else f"tf:{tf[0]}"
    by, comment = (GIVEN, "") if tf and torch else ("", f"left without a partner by the {GIVEN} file")
    return Match(name, tuple(tf), tuple(torch), by, comment)


def _lines(file: Path) -> list[tuple[int, dict[str, str]]]:
    said = user_files.text(file, "the mapping file")
    form = f"the columns are {', '.join(COLUMNS)}, of which tf and torch are needed"
    header: list[str] | None = None
    found = []
    reader = csv.reader(io.StringIO(said))
    try:
        for cells in reader:
            number, cells = reader.line_num, [table.read(cell.strip()) for cell in cells]
            where = f"the mapping file {file}, line {number}"
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                wrong = [name for name in cells if name not in COLUMNS] or [n for n in SIDES if n not in cells]
                if wrong or len(set(cells)) < len(cells):
                    raise UsageError(f"{where} is no header of a mapping file; {form}.")
                header = cells
            elif len(cells) > len(header):
                raise UsageError(
                    f"{where} has {len(cells)} cells under {len(header)} columns; quote a cell with commas."
                )
            else:
                found.append((number, {**dict.fromkeys(COLUMNS, ""), **dict(zip(header, cells, strict=False))}))
    except csv.Error as error:
        raise UsageError(f"the mapping file {file}, line {reader.line_num}, is no CSV: {error}.") from error
    if header is None:
        raise UsageError(f"the mapping file {file} is empty; {form}.")
    return found


def _unknown(side: str, shown: str, there: set[str]) -> str:
    near = difflib.get_close_matches(shown, sorted(there - {""}), n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}?" if near else "The file that --write-mapping writes has them all."
    return f"the {SIDES[side]} model has no layer {short(shown)}. {hint}"


def _layers(trace: Trace) -> set[str]:
    """The layers that ran and those around them, the model itself ('') included."""
    found = {""}
    for path in trace.layers:
        parts = path.split(".")
        found.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return found


def _shown(path: str | None) -> str:
    return "" if path is None else path or ROOT
