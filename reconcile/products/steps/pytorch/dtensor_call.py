"""``DTensorCall``: an operator on tensors that several processes share, of which this process computes its part."""

from __future__ import annotations

from typing import Any

from ....adapters.pytorch.tracing.records import tensors_in
from ....core.records import WHOLE, Op


class DTensorCall:
    """A call on whole tensors that several processes share, while this one computes its part: the operator and the shapes."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func = func
        self._inputs = _shapes([*args, *kwargs.values()])
        self._told: list[dict[str, Any]] = []

    def annotate(self, op: Op) -> Op:
        """The op on this process's part, with the shapes of the whole. One of other tensors stays as it is."""
        if len(self._inputs) != len(op.inputs):
            return op
        whole = {"inputs": self._inputs, "outputs": [list(t.shape) for t in op.outputs if t.shape is not None]}
        self._told.append(whole)
        return op._replace(attrs=dict(op.attrs, **{WHOLE: whole}))

    def finish(self, out: Any) -> None:
        """The call is done: its result has the shapes of the whole."""
        made = _shapes([out])
        for whole in self._told:
            if len(whole["outputs"]) == len(made):
                whole["outputs"] = made


def _shapes(values: Any) -> list[list[int]]:
    return [list(map(int, t.shape)) for t in tensors_in(values)]
