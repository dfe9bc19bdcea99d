"""Reads the tables of small models, for each class of a library a configuration and inputs of a call, and makes the inputs."""

from __future__ import annotations

import functools
import json
import math
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

TENSOR = {"shape", "value", "runs", "dtype"}
"""What a table says of a tensor."""


class Unfit(Exception):
    """There is no small model of a class; the message says of which, and what to give instead."""


@dataclass(frozen=True)
class Row:
    """How to make and call the small model of one class."""

    configuration: Mapping[str, Any]
    """Named arguments of the configuration that differ from its defaults; those of a part are a mapping of their own."""
    inputs: Mapping[str, Any]
    """Named arguments of a call, each as ``make_input`` takes it."""


@dataclass(frozen=True)
class Table:
    """The small models of a library."""

    library: str
    """The package, such as transformers."""
    release: str
    """The release whose code takes these configurations and inputs."""
    rows: Mapping[str, Row]
    """By the name of the class."""


@functools.cache
def load(library: str) -> Table:
    """The table of a library that comes with this package."""
    data = pkgutil.get_data(__package__, f"{library}.jsonl")
    assert data is not None
    return parse(data.decode(), f"{library}.jsonl")


def parse(text: str, name: str) -> Table:
    """A table from its lines: library and release, then a class each. Raises ValueError, which says in which line of ``name``."""
    head, *lines = text.splitlines()
    rows = {}
    for number, line in enumerate(lines, 2):
        try:
            values = json.loads(line)
            model = values.pop("class")
            row = rows[model] = Row(**values)
            for value in row.inputs.values():
                _check(value)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name}, line {number}: {error}") from error
    return Table(rows=rows, **json.loads(head))


def _check(value: Any) -> None:
    """Raise ValueError for an input that cannot be made."""
    if isinstance(value, list):
        for item in value:
            _check(item)
    elif isinstance(value, dict):
        if "shape" not in value or not set(value) <= TENSOR:
            raise ValueError(f"a tensor has a shape, and value or runs, and dtype; not {', '.join(value)}")
        if "runs" in value and sum(length for _, length, _ in value["runs"]) != math.prod(value["shape"]):
            raise ValueError(f"the runs do not fill the shape {value['shape']}")


def make_input(value: Any) -> Any:
    """An input of a call.

    A mapping is a tensor of that ``shape``: with ``value`` at each place, with integers in ``runs``, each (first, length, step),
    or else with uniform random numbers, the same ones every time. Its ``dtype`` is that of its numbers unless given. A list has
    inputs, and anything else is the input itself.
    """
    if isinstance(value, list):
        return [make_input(item) for item in value]
    if not isinstance(value, dict):
        return value
    shape, dtype = value["shape"], getattr(torch, value.get("dtype", ""), None)
    if "value" in value:
        return torch.full(shape, value["value"], dtype=dtype, device="cpu")
    if "runs" in value:
        return torch.tensor(list(_expand(value["runs"])), dtype=dtype, device="cpu").view(shape)
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=dtype, device="cpu")


def _expand(runs: list[list[int]]) -> Iterator[int]:
    for first, length, step in runs:
        yield from (first + step * i for i in range(length))


def match_sequences(value: Any, default: Any) -> Any:
    """A value of a table as the default that it replaces: a tuple where that has one, in each of its items."""
    if not isinstance(value, list):
        return value
    before = list(default) if isinstance(default, (list, tuple)) else []
    items = [match_sequences(item, before[i] if i < len(before) else None) for i, item in enumerate(value)]
    return tuple(items) if isinstance(default, tuple) else items


def describe(changed: str, own: bool) -> str:
    """A note on a small model: which values of its configuration differ from the default ones. Only the table's ``own`` classes
    were made smaller until their code refused."""
    if not own:
        return f"made from the small configuration of another class of its architecture: {changed or 'the default one'}"
    if not changed:
        return "made from its default configuration: none of the smaller ones that were tried fits its code"
    return f"made from the smallest configuration that its code allows: {changed}"
