"""Finds ops in a TorchScript trace that run only because the model's code finds out that it is traced.

It asks torch.jit.is_tracing(), or whether two of its inputs are one tensor: a trace hands over a view of a tensor that is given
a second time.  A counter of a TorchScript trace counts these ops, which no normal call runs.  The graph is made again with the
answer of a normal call: the difference shows which ops depend on the answer.  Python 3.8, torch 1.x and later.
"""

import os
import sys
from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ....core.records import Op
from .graph_nodes import kind_of, take

TORCH = os.path.dirname(torch.__file__) + os.sep


class TracingQuestions:
    """Within it, calls of torch.jit.is_tracing() by code outside of PyTorch are counted.

    They return ``answer``, or the true answer if that is None.
    """

    def __init__(self, answer: Optional[bool] = None) -> None:
        self.answer = answer
        self.times = 0

    def __enter__(self) -> "TracingQuestions":
        self._real: Callable[[], bool] = torch.jit.is_tracing
        torch.jit.is_tracing = self._is_tracing
        return self

    def _is_tracing(self) -> bool:
        real = self._real()
        if not real or sys._getframe(1).f_code.co_filename.startswith(TORCH):
            return real
        self.times += 1
        return real if self.answer is None else self.answer

    def __exit__(self, *exc: Any) -> None:
        torch.jit.is_tracing = self._real


def find_differences(told: List[Op], untold: List[Op]) -> Tuple[List[int], List[Op]]:
    """Where in ``told`` the ops are that ``untold`` lacks, and the ops of ``untold`` that ``told`` lacks."""
    left, right = Counter(map(kind_of, untold)), Counter(map(kind_of, told))
    others = [at for at, op in enumerate(told) if not take(left, kind_of(op))]
    return others, [op for op in untold if not take(right, kind_of(op))]


def _first_places(inputs: Tuple[Any, ...]) -> List[int]:
    """For each leaf of the inputs, the place of the first leaf that is the same object."""
    places: Dict[int, int] = {}
    return [places.setdefault(id(leaf), at) for at, leaf in enumerate(tree_flatten(inputs)[0])]


def has_twice(inputs: Tuple[Any, ...]) -> bool:
    """Whether one tensor is given at two places."""
    places = _first_places(inputs)
    return places != list(range(len(places)))


def give_one_tensor(module: torch.nn.Module, inputs: Tuple[Any, ...]) -> None:
    """Let the next call of the module get one tensor at all places at which ``inputs`` have one."""
    places = _first_places(inputs)

    def take_first(_: torch.nn.Module, given: Tuple[Any, ...]) -> Any:
        hook.remove()
        leaves, structure = tree_flatten(given)
        return tree_unflatten([leaves[at] for at in places], structure) if len(leaves) == len(places) else given

    hook = module.register_forward_pre_hook(take_first)
