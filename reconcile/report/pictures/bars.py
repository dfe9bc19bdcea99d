"""Records of chart data: bars of a waterfall, columns of a chart by layer. charts.py makes them, and drawing.py draws them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a waterfall: a bar from ``start``, ``amount`` long. ``kind`` is total, cause or residual."""

    label: str
    about: str
    start: int
    amount: int
    kind: str

    @property
    def end(self) -> int:
        """The value at which the next bar begins."""
        return self.start + self.amount


@dataclass(frozen=True, slots=True)
class Column:
    """One counter of a chart by layer: its values and the work that ran, row by row; None if that work is unknown."""

    counter: str
    values: tuple[int, ...]
    work: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Layers:
    """A chart by layer: row labels and a column per counter."""

    labels: tuple[str, ...]
    columns: tuple[Column, ...]
