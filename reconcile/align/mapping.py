"""The mapping file (``--mapping``): the matched layers of two models, one match per line, for you to review and correct.

It is a CSV table with a column ``layer``, a column named after each of the two frameworks (``tf, torch``), and ``by, comment``.
Lines with the same ``layer`` form one row of the report; a line with an empty ``layer`` is its own row, and so is a layer
without a partner. ``by`` and ``comment`` are for the reader.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from ..core import table, user_files
from ..core.errors import UsageError, brief, reason, short
from ..core.escaping import escape_line
from ..core.records import Trace
from ..core.registry import title
from ..core.results import Match
from .alignment import ROOT, enclosing_layers, name_row

LAYER, REMARKS = "layer", ("by", "comment")
GIVEN = "mapping"
HEAD_OF_FILE = """\
# The matched layers of {} and {}. Lines with the same name in the first column are one row of the report;
# a line with only one layer is a layer without a partner. Layers that are not in this file are aligned automatically.
# Read it back with --mapping FILE.
"""


def format_mapping(rows: Sequence[Match], model: str) -> str:
    """The text of a mapping file with these rows, of which there is at least one."""
    sides = list(rows[0].paths)
    names = model.split("+") if model.count("+") == 1 else [f"the {title(side)} model" for side in sides]
    lines = (line for row in rows for line in _format_row(row))
    return HEAD_OF_FILE.format(*map(escape_line, names)) + table.format_csv([_columns(sides), *lines])


def _columns(sides: Sequence[str]) -> tuple[str, ...]:
    return (LAYER, *sides, *REMARKS)


def _format_row(row: Match) -> Iterator[tuple[str, ...]]:
    for index, paths in enumerate(zip_longest(*row.paths.values())):
        remarks = (row.by, row.comment) if not index else ("", "")
        yield (row.layer, *map(_show_path, paths), *remarks)


def check(given: Path | None, write: Path | None, sides: Sequence[str]) -> None:
    """Check before anything runs that the file to read is a table of these two frameworks and that the other can be written.

    Raises UsageError.
    """
    if given is not None:
        _lines(given, sides)
    if write is None:
        return
    if os.path.isdir(write):
        raise UsageError(f"--write-mapping {write}: this is a folder; give a file name.")
    if not os.path.isdir(write.absolute().parent):
        raise UsageError(f"--write-mapping {brief(write)}: there is no folder {brief(write.parent)}.")
    try:
        user_files.check_regular(write)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"--write-mapping {brief(write)}: {reason(error)}.") from error


def read_mapping(file: Path, traces: Sequence[Trace]) -> tuple[Match, ...]:
    """The rows of the file. Raises UsageError, with the line, if it is not such a table, or if a layer is unknown or appears
    twice."""
    layers = {trace.framework: _layers(trace) for trace in traces}
    sides = list(layers)
    seen: dict[tuple[str, str], int] = {}
    rows: dict[str, dict[str, list[str]]] = {}
    for number, line in _lines(file, sides):
        where = f"the mapping file {file}, line {number}"
        named = {side: line[side] for side in sides if line[side]}
        if not named:
            raise UsageError(f"{where} names no layer; give one in the column {sides[0]}, {sides[1]} or both.")
        for side, shown in named.items():
            path = "" if shown == ROOT else shown
            if path not in layers[side]:
                raise UsageError(f"{where}: {_unknown(side, shown, layers[side])}")
            if (side, path) in seen:
                raise UsageError(
                    f"{where}: the {title(side)} layer {short(shown)} is already in line {seen[side, path]}; "
                    "a layer can be in only one row."
                )
            seen[side, path] = number
            row = rows.setdefault(line[LAYER] or f"\n{number}", {name: [] for name in sides})
            row[side].append(path)
    return tuple(_row({side: tuple(paths) for side, paths in row.items()}) for row in rows.values())


def _row(paths: dict[str, tuple[str, ...]]) -> Match:
    """A row with the name it would have without the file."""
    matched = sum(map(bool, paths.values())) > 1
    by, comment = (GIVEN, "") if matched else ("", f"left without a partner by the {GIVEN} file")
    return Match(name_row(paths), paths, by, comment)


def _lines(file: Path, sides: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    text = user_files.read_text_file(file, "the mapping file")
    columns = _columns(sides)
    form = f"the columns are {', '.join(columns)}, of which {sides[0]} and {sides[1]} are needed"
    header: list[str] | None = None
    lines = []
    reader = csv.reader(io.StringIO(text))
    try:
        for cells in reader:
            number, cells = reader.line_num, [table.read_cell(cell.strip()) for cell in cells]
            where = f"the mapping file {file}, line {number}"
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                wrong = [name for name in cells if name not in columns] or [n for n in sides if n not in cells]
                if wrong or len(set(cells)) < len(cells):
                    raise UsageError(f"{where} is not the header of a mapping file; {form}.")
                header = cells
            elif len(cells) > len(header):
                raise UsageError(
                    f"{where} has {len(cells)} cells under {len(header)} columns; quote cells that contain commas."
                )
            else:
                lines.append((number, {**dict.fromkeys(columns, ""), **dict(zip(header, cells, strict=False))}))
    except csv.Error as error:
        raise UsageError(f"the mapping file {file}, line {reader.line_num}, is not valid CSV: {error}.") from error
    if header is None:
        raise UsageError(f"the mapping file {file} is empty; {form}.")
    return lines


def _unknown(side: str, shown: str, layers: set[str]) -> str:
    near = difflib.get_close_matches(shown, sorted(layers - {""}), n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}?" if near else "To list all layers, write the file with --write-mapping."
    return f"the {title(side)} model has no layer {short(shown)}. {hint}"


def _layers(trace: Trace) -> set[str]:
    """The layers that ran and their enclosing layers, including the model itself ('')."""
    return {"", *(outer for path in trace.layers for outer in enclosing_layers(path))}


def _show_path(path: str | None) -> str:
    return "" if path is None else path or ROOT
