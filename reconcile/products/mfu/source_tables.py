"""``reconcile mfu trainers FILE.py``: reads the table of peak FLOP/s in a trainer's source from its syntax, never run.

Three forms are known: a chain of ``if "H100" in name``; a dict from parts of names to FLOP/s, or to a dict of them by dtype, of
which the longest part wins; and rows of parts and FLOP/s, of which the first wins whose parts are all in the name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...core.errors import UsageError, brief
from ...core.user_files import read_text_file
from .peaks import LARGEST, TERA, Device, Peak, devices

DTYPES = ("bf16", "fp16")
"""What such a table is taken to hold: the first of these that a device has."""
SPELT = ("bfloat16", "bf16", "float16", "fp16", "half")
"""The same as keys of a table by dtype, in the order in which they are looked for."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a trainer divides by for a device, at this line of its source; the factor is its number over the datasheet's."""

    device: Device
    name: str
    peak: Peak
    flops: Fraction
    line: int

    @property
    def factor(self) -> Fraction:
        """A true MFU is shown divided by this."""
        return self.flops / self.peak.dense


def read_peaks(path: Path) -> list[Given]:
    """What the file gives for every device that it has a number for. Raises UsageError."""
    try:
        tree = ast.parse(read_text_file(path, "the source"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # MemoryError: it is nested too deeply
        raise UsageError(f"the source {brief(path)} is not Python: {error}.") from error
    tables = [table for node in ast.walk(tree) if (table := _table(node) or _rows(node))]
    bodies = list(_find_chains(tree))
    known = _numbers(tree)
    found = [one for device in devices() for one in _of(device, tables, bodies, known)]
    if not found:
        raise UsageError(
            f"the source {brief(path)} has no table of peaks that is read: a dict from parts of names to numbers of at least "
            '1e12 ({"h100": 989e12}) or to a dict of them by dtype, rows of parts and such numbers ((["h100", "nvl"], 835e12)), '
            'or a chain of `if "H100" in name` that returns or assigns one.'
        )
    return found


def _of(
    device: Device,
    tables: Sequence[_Table],
    bodies: Sequence[Sequence[ast.stmt]],
    known: dict[str, Fraction],
) -> Iterator[Given]:
    peak = next((p for dtype in DTYPES for p in device.rates(dtype)), None)
    if peak is None:
        return
    name = device.names[0]
    for table in tables:
        found = next((row for row in table if all(part.lower() in name.lower() for part in row[0])), None)
        if found is not None:
            yield Given(device, name, peak, *found[1:])
            return
    for body in bodies:
        taken = _find_number(body, name, known)
        if taken is not None:
            yield Given(device, name, peak, *taken)
            return


def _find_chains(tree: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    """The statements of each block from its first chain on, that within no other's: what follows the chain is the fall-back."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        for block in (getattr(node, "body", ()), getattr(node, "orelse", ())):
            for at, statement in enumerate(block if isinstance(block, list) else ()):
                if isinstance(statement, ast.If) and id(statement) not in inside and _asks(statement.test):
                    yield block[at:]
                    inside |= {id(child) for rest in block[at:] for child in ast.walk(rest)}
                    break


def _find_number(body: Sequence[ast.stmt], name: str, known: Mapping[str, Fraction]) -> tuple[Fraction, int] | None:
    """The first number that these statements return or assign for the name."""
    for node in body:
        if isinstance(node, ast.If):
            branch = node.body if _holds(node.test, name) else node.orelse
            found = _find_number(branch, name, known)
        elif isinstance(node, (ast.Return, ast.Assign)) and node.value is not None:
            value = _peak(node.value, known)
            found = None if value is None else (value, node.lineno)
        else:
            found = None
        if found is not None:
            return found
    return None


def _asks(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Compare) and _part(node) is not None for node in ast.walk(test))


def _part(node: ast.Compare) -> str | None:
    """The text of ``"H100" in name``."""
    left = node.left
    inside = len(node.ops) == 1 and isinstance(node.ops[0], ast.In)
    return left.value if inside and isinstance(left, ast.Constant) and isinstance(left.value, str) else None


def _holds(test: ast.expr, name: str) -> bool:
    if isinstance(test, ast.BoolOp):
        parts = [_holds(value, name) for value in test.values]
        return all(parts) if isinstance(test.op, ast.And) else any(parts)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not _holds(test.operand, name)
    part = _part(test) if isinstance(test, ast.Compare) else None
    return part is not None and part in name


def _numbers(tree: ast.AST) -> dict[str, Fraction]:
    """Names that stand for one number in the file."""
    found: dict[str, Fraction] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = _number(node.value, {})
            if value is not None:
                found[node.targets[0].id] = value
    return found


def _number(node: ast.expr, known: Mapping[str, Fraction]) -> Fraction | None:
    """The value of a number, a product or quotient of numbers, or int() of one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return Fraction(repr(node.value)) if abs(node.value) < float("inf") else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.func, ast.Name):
        return _number(node.args[0], known) if node.func.id in ("int", "float") else None
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, known), _number(node.right, known)
        if left is not None and right is not None:
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Div) and right:
                return left / right
    return None


_Table = list[tuple[tuple[str, ...], Fraction, int]]
"""Rows of a table, the first that fits wins: parts of a name, FLOP/s, and the line."""


def _table(node: ast.AST) -> _Table:
    """The rows of a dict, the longest part first; [] for a dict of anything else."""
    found: _Table = []
    pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    for key, value in pairs:
        flops = _peak(_find_dtype_value(value) or value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and flops is not None:
            found.append(((key.value,), flops, value.lineno))
    if {parts for parts, _, _ in found} <= {(spelt,) for spelt in SPELT}:
        return []  # the peaks of one device, by dtype
    return sorted(found, key=lambda row: -len(row[0][0]))


def _rows(node: ast.AST) -> _Table:
    """The rows of a list or tuple of parts and numbers; [] for one of anything else."""
    found: _Table = []
    for row in node.elts if isinstance(node, (ast.List, ast.Tuple)) else ():
        cells = row.elts if isinstance(row, (ast.List, ast.Tuple)) else []
        flops = _peak(cells[1]) if len(cells) == 2 else None
        if flops is not None:
            parts = cells[0].elts if isinstance(cells[0], (ast.List, ast.Tuple)) else [cells[0]]
            texts = tuple(
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            if texts and len(texts) == len(parts):
                found.append((texts, flops, row.lineno))
    return found


def _find_dtype_value(node: ast.expr) -> ast.expr | None:
    """The value of a dict by dtype for the first of the dtypes that it has: ``torch.bfloat16`` or a text."""
    if not isinstance(node, ast.Dict):
        return None
    held = {
        key.attr if isinstance(key, ast.Attribute) else str(getattr(key, "value", "")): value
        for key, value in zip(node.keys, node.values, strict=True)
    }
    return next((held[spelt] for spelt in SPELT if spelt in held), None)


def _peak(node: ast.expr, known: Mapping[str, Fraction] = {}) -> Fraction | None:
    """The number if it may be FLOP/s of a device."""
    flops = _number(node, known)
    return flops if flops is not None and TERA <= flops < LARGEST else None
