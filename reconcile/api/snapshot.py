"""FLOPs that stand in a user's test (``flops.snapshot(model, x) == 3_632_960``): found in its source, and written there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class Literal(NamedTuple):
    """A number in a line of a file, between two offsets in bytes, and the number that takes its place."""

    path: str
    line: int
    start: int
    end: int
    number: int

    @property
    def text(self) -> str:
        """The number as it is written."""
        return f"{self.number:_}"


class Snapshot(int):
    """FLOPs of a model, as an int. ``settle(other, file, line)`` answers ``== other`` in that line of a test."""

    settle: Callable[[object, Path, int], bool]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Snapshot):  # two models are compared, and neither number is written
            return int(self) == int(other)
        frame = sys._getframe(1)
        return self.settle(other, Path(frame.f_code.co_filename), frame.f_lineno)

    def __ne__(self, other: object) -> bool:
        return not int(self) == other

    __hash__ = int.__hash__


def find_literal(value: object, path: Path, line: int, number: int) -> Literal | None:
    """The only place where the statement in that line compares this value (a number or ``...``), with the ``number`` to write
    there; None if there is none, or more than one."""
    statements = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.stmt))
    within = [
        node for node in statements if node.lineno <= line <= (node.end_lineno or 0) and not hasattr(node, "body")
    ]
    places = {
        Literal(str(path), side.lineno, side.col_offset, side.end_col_offset or 0, number)
        for statement in within
        for compared in ast.walk(statement)
        if isinstance(compared, ast.Compare)
        for side in (compared.left, *compared.comparators)
        if isinstance(side, ast.Constant) and type(side.value) is type(value) and side.value == value
    }
    return places.pop() if len(places) == 1 else None


def write_literals(literals: Iterable[Literal]) -> list[str]:
    """Write numbers into their files; a place that several tests give several numbers stays as it is. Returns a line for each."""
    places: dict[tuple[str, int, int, int], set[Literal]] = {}
    for literal in literals:
        places.setdefault(literal[:4], set()).add(literal)
    said = []
    for (name, line, start, end), wanted in sorted(places.items(), reverse=True):
        numbers = " and ".join(sorted(literal.text for literal in wanted))
        if len(wanted) > 1:
            said.append(f"{name}:{line}: stays as it is: several tests would write {numbers}")
            continue
        lines = Path(name).read_bytes().splitlines(keepends=True)
        lines[line - 1] = lines[line - 1][:start] + numbers.encode() + lines[line - 1][end:]
        Path(name).write_bytes(b"".join(lines))
        said.append(f"{name}:{line}: {numbers}")
    return said[::-1]
