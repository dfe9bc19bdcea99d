"""Layers that differ in nothing but numbers in their names, as one line: the sixty blocks of a transformer are read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core.results import LayerRow
from ..core.text import number
from ..engine.breakdown import Part

FEW = 10
"""So many lines are all shown, however alike they are."""

T = TypeVar("T", Part, LayerRow)


def parts(of_cause: Sequence[Part]) -> list[Part]:
    """The layers of a cause; those that are alike share a line, with the sum of their amounts."""
    return _together(
        of_cause,
        lambda part: (part.amount, *part.ops, None, *part.counters, None, part.reason),
        lambda part, name, times: replace(part, layer=name, amount=part.amount * times),
    )


def rows(of_layers: Sequence[LayerRow]) -> list[LayerRow]:
    """The rows of a table of layers; those that are alike share a row, with the sums of their values."""
    return _together(of_layers, lambda row: _frozen((row.work, row.counters, row.causes, row.residuals)), _times)


def _together(lines: Sequence[T], values: Callable[[T], Any], merged: Callable[[T, str, int], T]) -> list[T]:
    if len(lines) <= FEW:
        return list(lines)
    groups: dict[Any, list[T]] = {}
    for line in lines:
        groups.setdefault((re.sub(r"\d+", "0", line.layer), values(line)), []).append(line)
    return [
        group[0] if len(group) == 1 else merged(group[0], _name([line.layer for line in group]), len(group))
        for group in groups.values()
    ]


def _name(layers: Sequence[str]) -> str:
    """What these names have in common, with * for each number in which they differ, and how many they are."""
    pieces = [re.split(r"(\d+)", layer) for layer in layers]
    common = "".join(column[0] if len(set(column)) == 1 else "*" for column in zip(*pieces, strict=True))
    return f"{common} ({number(len(layers))} layers)"


def _times(row: LayerRow, name: str, times: int) -> LayerRow:
    def each(values: Mapping[Any, int]) -> dict[Any, int]:
        return {key: value * times for key, value in values.items()}

    causes = {counter: each(amounts) for counter, amounts in row.causes.items()}
    return LayerRow(name, each(row.work), each(row.counters), causes, each(row.residuals))


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(inner)) for key, inner in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, tuple) else value
