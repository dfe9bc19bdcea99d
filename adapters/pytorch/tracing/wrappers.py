"""Tells which tensor classes take operators apart themselves (DTensor, quantised, low-rank), and notes a DTensor's whole shapes.

Such a class has its own ``__torch_dispatch__``; its tensor has the sizes of the whole, and what runs are operators on the tensors
that it holds.  Recorders ask here: they let the operator of the whole pass (return NotImplemented, as
torch.distributed.tensor.debug.CommDebugMode does) and meet the operators that the class calls.  ``DTensorCall`` adds the shapes
of the whole to the ops on this process's part.  Python 3.8, torch 1.x and later.
"""

import sys
from typing import Any, Dict, List, Tuple

import torch

from ....core.records import WHOLE, Op
from .records import tensors_in

_PLAIN = getattr(getattr(torch, "_C", None), "_disabled_torch_dispatch_impl", None)


def is_wrapper(kind: Any) -> bool:
    """Whether a class of tensors takes operators apart itself."""
    if kind is torch.Tensor or kind is torch.nn.Parameter or _PLAIN is None:
        return False
    return getattr(kind, "__torch_dispatch__", _PLAIN) is not _PLAIN and not is_fake(kind) and not _is_functional(kind)


def is_fake(kind: Any) -> bool:
    """Whether it has sizes and nothing to compute with: DTensor asks such tensors for the sizes of a result."""
    return _is(kind, "torch._subclasses.fake_tensor", "FakeTensor")


def _is_functional(kind: Any) -> bool:
    return _is(kind, "torch._subclasses.functional_tensor", "FunctionalTensor")


MODEL_HAS_FAKE_TENSORS = (
    "The model has FakeTensors, which have sizes and nothing to compute with: make it outside of FakeTensorMode; under "
    "torch.device('meta') it needs no memory either."
)
"""Why such a model cannot be counted."""


def overrides_functions(kind: Any) -> bool:
    """Whether a class of tensors has its own ``__torch_function__``, such as an attention bias that chooses a kernel."""
    own = getattr(getattr(kind, "__torch_function__", None), "__func__", None)
    return own is not None and own is not getattr(torch.Tensor.__torch_function__, "__func__", None)


def is_jagged(kind: Any) -> bool:
    """Whether it is PyTorch's nested tensor of jagged layout, whose attention is recorded row by row."""
    return _is(kind, "torch.nested._internal.nested_tensor", "NestedTensor")


def is_distributed(kind: Any) -> bool:
    """Whether it is a tensor that several processes share: it has the shape of the whole, and this process its part."""
    return _is(kind, "torch.distributed.tensor", "DTensor")


def is_awaited(kind: Any) -> bool:
    """Whether it is a plain tensor that other processes still send: what is called on it is called on the tensor."""
    return _is(kind, "torch.distributed._functional_collectives", "AsyncCollectiveTensor")


def _is(kind: Any, module: str, name: str) -> bool:
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(kind, type) and issubclass(kind, known)


class DTensorCall:
    """A call on whole tensors that several processes share, while this one computes its part: the operator and the shapes."""

    def __init__(self, func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.func = func
        self._inputs = _shapes([*args, *kwargs.values()])
        self._told: List[Dict[str, Any]] = []

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


def _shapes(values: Any) -> List[List[int]]:
    return [list(map(int, t.shape)) for t in tensors_in(values)]
