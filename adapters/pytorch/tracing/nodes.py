"""Nodes of PyTorch's autograd graph: in which module's forward each was made, and where its results go.

Training traces find the layer of each backward op by it.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch.utils import checkpoint
from torch.utils.checkpoint import CheckpointFunction

from .module_path import ModulePath
from .wrapped_functions import wrap_function

WEIGHT, INPUT = 1, 2
"""What a gradient is taken with respect to; an op may serve both."""
_FRAME = "_CheckpointFrame"
"""What a checkpoint without reentrance keeps of its function (torch/utils/checkpoint.py)."""


class Slot(NamedTuple):
    """Where one result of an autograd node goes: to a parameter's gradient or on, and the layer it arrives in."""

    goal: int
    layer: str


class TrainingPath(ModulePath):
    """Module paths that remember in whose forward each autograd node was made."""

    def __init__(self, root: torch.nn.Module) -> None:
        super().__init__(root)
        self._since = [0]
        self._layers = [""]
        self._again: list[str] = []  # the layers of the checkpoints that are being recomputed, outermost first
        self._frames = ExitStack()

    def mark(self, layer: str, since: int | None = None) -> None:
        """From here on, or from this node on, nodes are made in this layer."""
        self._since.append(newest() if since is None else since)
        self._layers.append(layer)

    def at(self, layer: str, since: int) -> None:
        """From this node on they are made in this layer, which need not be that of a module that runs."""
        if self._layers[-1] != layer:
            self.mark(layer, since)

    def made_in(self, node: int) -> str:
        """The layer in which the node of this sequence number was made."""
        return self._layers[bisect.bisect_right(self._since, node) - 1]

    @property
    def inner(self) -> str:
        """The innermost running module; of what is recomputed outside of any, the one whose forward made the checkpoint."""
        if self.current or self._again:
            return self.current or self._again[-1]
        node = torch._C._current_autograd_node()
        return "" if node is None else self.made_in(node._sequence_nr())

    def unwind(self, depth: int) -> None:
        """Leave the modules that an exception ended: this many run."""
        del self.running_paths[depth:]

    def __enter__(self) -> TrainingPath:
        super().__enter__()
        if hasattr(checkpoint, _FRAME):  # PyTorch's own: without it a layer is the one that asks for a gradient
            self._frames.enter_context(wrap_function(checkpoint, _FRAME, lambda plain: _frame_of(self, plain)))
        return self

    def __exit__(self, *exc: Any) -> None:
        self._frames.close()
        super().__exit__(*exc)

    def again(self, function: Callable[..., None]) -> Callable[..., None]:
        """This function, which recomputes the ops of a checkpoint of the layer that runs now. An exception ends it as soon as
        nothing more is needed (torch/utils/checkpoint.py, early stop), so modules that it entered are not left."""
        layer = self.attempt(lambda: self.inner) or ""

        def begin() -> int:
            self._again.append(layer)
            return len(self.running_paths)

        def end(depth: int) -> None:
            self._again.pop()
            self.unwind(depth)

        @wraps(function)
        def run_again(*args: Any) -> None:
            depth = self.attempt(begin)
            try:
                function(*args)
            finally:
                self.attempt(end, depth)

        return run_again

    def _push(self, module: torch.nn.Module, inputs: Any) -> None:
        super()._push(module, inputs)
        self.mark(self.inner)

    def _pop(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        super()._pop(module, inputs, outputs)
        self.mark(self.inner)


def _frame_of(path: TrainingPath, plain: Any) -> Any:
    """The class of what a checkpoint without reentrance keeps, which remembers the layer that made it."""

    class Frame(plain):
        def __init__(self, recompute_fn: Callable[..., None], *args: Any, **kwargs: Any) -> None:
            super().__init__(path.attempt(path.again, recompute_fn) or recompute_fn, *args, **kwargs)

    return Frame


def newest() -> int:
    """The sequence number that the next node will get."""
    return int(torch.autograd._get_sequence_nr())


def is_recomputing() -> bool:
    """Whether what runs now is recomputed for the backward pass: nothing else turns gradients on inside of it, and a
    checkpoint with use_reentrant=True, which may turn them off again for one inside of it, does nothing else."""
    node = torch._C._current_autograd_node()
    return node is not None and (torch.is_grad_enabled() or isinstance(node, CheckpointFunction._backward_cls))


def is_leaf(node: Any) -> bool:
    """Whether a gradient ends here (AccumulateGrad)."""
    return hasattr(node, "variable")


def behind(root: Any) -> list[Any]:
    """Every node that gradients of this one reach, itself included, leaves left out."""
    seen, stack, found = {root}, [root], []
    while stack:
        node = stack.pop()
        found.append(node)
        for other, _ in node.next_functions:
            if other is not None and other not in seen and not is_leaf(other):
                seen.add(other)
                stack.append(other)
    return found
