"""Entries of counters that are dispatch modes (flop_counter, ptflops@aten): what each op added to the counter's total, by module.

PyTorch 2.0 and later.
"""

from __future__ import annotations

from typing import Any, Callable

from ...core.records import Entry, Op, Sighting


class AddedAmounts:
    """The amounts that a counter added, by module and name of an op. ``so_far`` gives its total at any time."""

    def __init__(self, where: Callable[[], str], so_far: Callable[[], int]) -> None:
        self.where = where
        self.so_far = so_far
        self.amounts: dict[tuple[str, str], int] = {}

    def by(self, name: str, count: Callable[[], Any]) -> Any:
        """The result of ``count()``; the amount that it adds is noted for an op of this name."""
        before = self.so_far()
        result = count()
        amount = int(self.so_far() - before)
        if amount:
            key = (self.where(), name)
            self.amounts[key] = self.amounts.get(key, 0) + amount
        return result

    def move_amounts(self, layer: str, to: str) -> None:
        """Move the amounts of one layer to another."""
        for where, name in [key for key in self.amounts if key[0] == layer]:
            amount = self.amounts.pop((where, name))
            self.amounts[to, name] = self.amounts.get((to, name), 0) + amount

    def beside(self, ops: list[Op]) -> tuple[list[Entry], list[Sighting]]:
        """An entry for each module and name, and a sighting of each op that ran, which feeds the entry of its own."""
        calls: dict[tuple[str, str], int] = {}
        for op in ops:
            calls[op.layer, op.op] = calls.get((op.layer, op.op), 0) + op.calls
        entries = [
            Entry("{}|{}".format(*key), key[0], key[1], value, calls.get(key, 0)) for key, value in self.amounts.items()
        ]
        return entries, [Sighting(op, f"{op.layer}|{op.op}") for op in ops]
