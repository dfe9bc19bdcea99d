"""Accessors by which formulas read an op record: element counts, shapes, attributes. What is missing raises UnknownWork."""

from __future__ import annotations

from typing import Any

from ..core.records import Op
from ..core.work import UnknownWork, known_shape, numel, prod

_MISSING = object()


def shape(op: Op, index: int = 0) -> tuple[int, ...]:
    """Shape of input ``index``. Raises UnknownWork if there is no such input or a dimension is unknown."""
    if not -len(op.inputs) <= index < len(op.inputs):
        raise UnknownWork(f"{op.op}: no tensor input {index} in the record")
    return known_shape(op.inputs[index].shape)


def n_in(op: Op, index: int = 0) -> int:
    """Number of elements of input ``index``."""
    shape(op, index)
    return numel(op.inputs[index].shape)


def out_shape(op: Op, index: int = 0) -> tuple[int, ...]:
    """Shape of output ``index``. Raises UnknownWork as :func:`shape` does."""
    if not 0 <= index < len(op.outputs):
        raise UnknownWork(f"{op.op}: no output {index} in the record")
    return known_shape(op.outputs[index].shape)


def n_out(op: Op, index: int = 0) -> int:
    """Number of elements of output ``index``."""
    out_shape(op, index)
    return numel(op.outputs[index].shape)


def attr(op: Op, name: str, default: Any = _MISSING) -> Any:
    """An attribute. Raises UnknownWork if it is not in the record and no default is given."""
    value = op.attrs.get(name, default)
    if value is _MISSING:
        raise UnknownWork(f"{op.op}: attribute {name!r} is not in the record")
    return value


def ints(op: Op, name: str) -> tuple[int, ...]:
    """A list-of-ints attribute as a tuple; a single int counts as a list of one."""
    value = attr(op, name)
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, int) for item in value):
        raise UnknownWork(f"{op.op}: attribute {name!r} is {value!r}, not a list of ints")
    return tuple(value)


def rows_along(op: Op, dim: int | None) -> tuple[int, int]:
    """(rows, length) of input 0 along a dimension; (1, all elements) for None. A scalar is one row of one."""
    sizes = shape(op)
    if dim is None or not sizes:
        return 1, prod(sizes)
    return (prod(sizes) // sizes[dim] if sizes[dim] else 0), sizes[dim]


def normalized_rows(op: Op) -> tuple[int, int]:
    """(rows, length) of input 0 whose last dimensions are ``normalized_shape``; no rows if these are empty."""
    n = prod(ints(op, "normalized_shape"))
    return (n_in(op) // n if n else 0), n


def window(op: Op, axes: int) -> int:
    """Elements of a pooling window over that many axes; a single size is that of every axis."""
    kernel = ints(op, "kernel_size")
    return prod(kernel * axes if len(kernel) == 1 else kernel)


def matrices(op: Op) -> tuple[int, ...]:
    """The shape of input 0, a stack of matrices. Raises UnknownWork for anything else."""
    sizes = shape(op)
    if len(sizes) < 2:
        raise UnknownWork(f"{op.op} of {list(sizes)}, which is not a stack of matrices")
    return sizes


def squares(op: Op, index: int = 0) -> tuple[int, int]:
    """(matrices, n) of the square matrices that input ``index`` is. Raises UnknownWork for anything else."""
    sizes = shape(op, index)
    if len(sizes) < 2 or sizes[-1] != sizes[-2]:
        raise UnknownWork(f"{op.op} of {list(sizes)}, which is not a stack of square matrices")
    return prod(sizes[:-2]), sizes[-1]


def shapes_by_sequence(op: Op, first: int = 0) -> list[tuple[tuple[int, ...], ...]]:
    """The shapes of query, key and value, the inputs from ``first`` on; of nested tensors, those of each sequence."""
    rows = op.attrs.get("rows")
    if rows is None:
        return [tuple(shape(op, first + place) for place in range(3))]
    return [tuple(map(tuple, each)) for each in zip(*rows, strict=True)]
