"""Finds the Flax nnx objects that a function captures instead of taking as arguments, in closure cells and module globals.

A call writes to them (a batch norm's averages, an optimiser's state, a counter of random numbers), which JAX allows only for
objects that were made inside the same trace.  During a trace, ``hold_values`` replaces them with objects that were made inside
it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from . import layers

INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages, whose functions' globals are not searched."""


class Place(NamedTuple):
    """A variable: the namespace that holds it, or its cell, and its name."""

    holder: Any
    name: str

    @property
    def value(self) -> Any:
        """What it holds now."""
        return self.holder[self.name] if isinstance(self.holder, dict) else self.holder.cell_contents

    def put(self, value: Any) -> None:
        """Let it hold something else."""
        if isinstance(self.holder, dict):
            self.holder[self.name] = value
        else:
            self.holder.cell_contents = value


def find_places(function: Any) -> list[Place]:
    """The variables with objects of nnx that a function reads, or a function that it calls by such a variable."""
    found: dict[tuple[int, str], Place] = {}
    _search(function, found, set())
    return list(found.values())


def _search(value: Any, found: dict[tuple[int, str], Place], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    for inner in ("__wrapped__", "func", "__func__"):  # what jit, partial and a method hold
        if getattr(value, inner, None) is not None:
            _search(getattr(value, inner), found, seen)
    if not isinstance(value, types.FunctionType):
        return
    cells = [Place(cell, name) for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)]
    installed = any(part in value.__code__.co_filename for part in INSTALLED)
    names = () if installed else _names(value.__code__)
    for place in (*cells, *(Place(value.__globals__, name) for name in names if name in value.__globals__)):
        try:
            held = place.value
        except ValueError:  # the variable is not set yet
            continue
        if isinstance(held, types.ModuleType | type):
            continue
        if callable(held) and not layers.of_nnx(held):
            _search(held, found, seen)
        elif _holds(held):
            found[id(place.holder), place.name if isinstance(place.holder, dict) else ""] = place


def _holds(value: Any) -> bool:
    try:
        return layers.inside(value) is not None
    except Exception:  # a dict whose keys have no order, say, is no tree of JAX
        return False


def _names(code: Any) -> Iterator[str]:
    """The names of a function's globals, and of those inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@contextmanager
def hold_values(these: Sequence[Place], values: Sequence[Any]) -> Iterator[None]:
    """Meanwhile these variables hold these values."""
    before = [place.value for place in these]
    try:
        for place, value in zip(these, values, strict=True):
            place.put(value)
        yield
    finally:
        for place, value in zip(these, before, strict=True):
            place.put(value)
