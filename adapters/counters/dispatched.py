"""What a counter at the dispatcher adds for each op that it lets run, by module.  Python 3.6, PyTorch 2.0 and later."""

from typing import Any, Callable, Dict, List, Tuple

from ...core.records import Entry, Op, Sighting


class Added(object):
    """The amounts that a counter added, by module and name of an op. ``so_far`` gives its total at any time."""

    def __init__(self, where, so_far):
        # type: (Callable[[], str], Callable[[], int]) -> None
        self.where = where
        self.so_far = so_far
        self.amounts = {}  # type: Dict[Tuple[str, str], int]

    def by(self, name, count):
        # type: (str, Callable[[], Any]) -> Any
        """What ``count()`` returns; what it has added is noted for an op of this name."""
        before = self.so_far()
        result = count()
        amount = int(self.so_far() - before)
        if amount:
            key = (self.where(), name)
            self.amounts[key] = self.amounts.get(key, 0) + amount
        return result

    def beside(self, ops):
        # type: (List[Op]) -> Tuple[List[Entry], List[Sighting]]
        """An entry for each module and name, and a sighting of each op that ran, which feeds the entry of its own."""
        calls = {}  # type: Dict[Tuple[str, str], int]
        for op in ops:
            calls[op.layer, op.op] = calls.get((op.layer, op.op), 0) + op.calls
        entries = [
            Entry("%s|%s" % key, key[0], key[1], value, calls.get(key, 0)) for key, value in self.amounts.items()
        ]
        return entries, [Sighting(op, "%s|%s" % (op.layer, op.op)) for op in ops]
