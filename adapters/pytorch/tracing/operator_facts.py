"""What the seal has to know of an operator: which arguments hold values, which memory it writes, and what leaves by it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from .dispatched_calls import ATEN

ITEMS = ("aten::_local_scalar_dense", "aten::item")
"""The operators by which a number leaves, one within the other: the outer one is met beneath autograd, as in a kernel."""
FROM_FILE = "aten::from_file"
"""The operator that maps a file."""
VALUES = ("number", "Tensor", "float", "complex", "Scalar")
"""Types of a schema's arguments that hold values; a whole number elsewhere is a size or an index."""


COPIES = tuple(f"aten::{name}" for name in ("_to_copy", "clone", "copy_", "empty", "empty_strided")) + ITEMS
"""Operators that make memory for values, and that copy them into other memory, or out of it."""


def is_move(schema: Any) -> bool:
    """Whether an operator computes nothing: it copies values, or what it returns may be the memory that it was given, as of views
    and of ``to``."""
    returned = [each.alias_info for each in schema.returns]
    return schema.name in COPIES or (
        bool(returned) and all(info is not None and not info.is_write for info in returned)
    )


class OperatorFacts(NamedTuple):
    """What the seal has to know of an operator.

    Attributes:
        values: The positions and names of arguments that hold numbers, and which types of Python are values there.
        sizes: The same of whole numbers that are no values.
        written: The positions and names of arguments that it writes.
        takes_number: Whether a number leaves by it.
        takes_storage: Whether it makes a tensor of memory that is there.
        makes_empty: Whether it makes memory without values.
        has_lengths: Whether the shape of what it returns depends on values.
    """

    values: tuple[tuple[int, str, tuple[type, ...]], ...]
    sizes: tuple[tuple[int, str, tuple[type, ...]], ...]
    written: tuple[tuple[int, str], ...]
    takes_number: bool
    takes_storage: bool
    makes_empty: bool
    has_lengths: bool


@cache
def find_facts(func: Any) -> OperatorFacts:
    """The facts of an operator, from its schema and tags."""
    values, sizes, written = [], [], []
    for position, argument in enumerate(func._schema.arguments):
        text = str(argument.type)
        if any(kind in text for kind in VALUES):
            values.append(
                (position, argument.name, (float, complex) if "float" in text else (float, complex, int, bool))
            )
        elif "int" in text.lower():
            sizes.append((position, argument.name, (int,)))
        declared = argument.alias_info is not None and argument.alias_info.is_write
        # a batch norm does not say that it writes its statistics, and another library's operator need not say anything
        if "Tensor" in text and (declared or argument.name.startswith("running_") or func.namespace not in ATEN):
            written.append((position, argument.name))
    name = func._schema.name
    takes_storage = name == FROM_FILE or any("Storage" in str(argument.type) for argument in func._schema.arguments)
    has_lengths = any(tag.name == "dynamic_output_shape" for tag in getattr(func, "tags", ()))
    return OperatorFacts(
        tuple(values), tuple(sizes), tuple(written), name in ITEMS, takes_storage, "empty" in name, has_lengths
    )
