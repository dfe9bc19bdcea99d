"""FusedCalls: a TorchFunctionMode under which a recurrent layer or a call of attention is recorded as one op.

The record of such a call is that of what the module calls, whatever the number of steps: the tests compare their formulas with
their op-by-op decomposition.  On ``meta`` no step is run, and an empty tensor of the right shape replaces the result.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode

from ....core.records import Op
from .call_records import RECURRENT, recurrent, stand_in
from .followed_calls import is_followed
from .records import plain, tensor_record, tensors_in
from .wrappers import is_jagged, is_wrapper, overrides_functions

FUSED = "a fused call"
"""The reader of the inputs of a call that is recorded as one op."""


class FusedCalls(TorchFunctionMode):
    """Records a recurrent layer, or a call of attention, in ``recorder`` as one op in place of the ops that it runs."""

    def __init__(self, recorder: Any) -> None:
        super().__init__()
        self.recorder = recorder  # a Recorder, whose file imports this one
        space = torch._C._VariableFunctions
        self.recurrent = {getattr(space, name): name for name in RECURRENT}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.recorder.tangents.begin()
        # PyTorch asks for every attribute of a tensor that anybody reads, too
        if type(func).__hash__ is None or not self._is_fused(func) or not self.is_own_call:
            return func(*args, **kwargs)
        own = next((kind for kind in types if overrides_functions(kind) and not is_jagged(kind)), None)
        if own is not None:  # it calls the function again, with other arguments perhaps
            with self:
                return own.__torch_function__(func, types, args, kwargs)
        if any(map(is_wrapper, types)) and not any(map(is_jagged, types)):
            return func(*args, **kwargs)  # its sizes are those of the whole, and parts of it run
        if not self.can_stand_for(tensors_in([*args, *kwargs.values()])):
            return func(*args, **kwargs)
        if func not in self.recurrent:
            return self.attention(func, args, kwargs)
        return func(*args, **kwargs) if kwargs else self.recurrent_call(self.recurrent[func], func, args)

    def _is_fused(self, func: Any) -> bool:
        return func is torch.nn.functional.scaled_dot_product_attention or func in self.recurrent

    @property
    def is_own_call(self) -> bool:
        """Whether a call now is one of the model's own: the recorder is not paused."""
        return not self.recorder.paused

    def can_stand_for(self, tensors: list[torch.Tensor]) -> bool:
        """Whether one op may be recorded in place of a call on these tensors: none of them is followed for derivatives."""
        return not is_followed(tensors)

    def record_op(self, compute: Callable[..., Any], record: Callable[[Any], Op], tensors: list[torch.Tensor]) -> Any:
        """Run ``compute(*tensors)`` unrecorded, and record the op that ``record`` makes of its result. Returns the result."""
        self.recorder.check_memory(tensors, FUSED)
        self.recorder.paused = True
        try:
            out = compute(*tensors)
            made = record(out)
        finally:
            self.recorder.paused = False
        self.recorder.hold_memory(out)
        self.recorder.add(made)
        return out

    def recurrent_call(self, name: str, func: Any, args: tuple[Any, ...]) -> Any:
        """A call of torch._VF.gru and the like; on meta no step is run."""
        recorder, meta = self.recorder, args[0].device.type == "meta"

        def make_op(out: Any) -> Op:
            return recurrent(name, args, out, recorder.path.current)

        return self.record_op(lambda *_: stand_in(name, args) if meta else func(*args), make_op, tensors_in(args))

    def attention(self, func: Any, args: Any, kwargs: Any) -> Any:
        """scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)."""
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
        given = dict(zip(names, args))
        given.update(kwargs)
        recorder = self.recorder
        of_tensors = [n for n in names[:4] if isinstance(given.get(n), torch.Tensor)]
        tensors = [given[n] for n in of_tensors]

        def make_op(out: Any) -> Op:
            attrs = {n: plain(given.get(n)) for n in names[4:]}
            if given.get("attn_mask") is None:
                attrs["attn_mask"] = None
            if any(getattr(t, "is_nested", False) for t in tensors):
                attrs["rows"] = [[list(map(int, part.shape)) for part in t.unbind()] for t in tensors[:3]]
            inputs = tuple(tensor_record(t) for t in tensors)
            layer = recorder.path.current
            return Op("", "aten.scaled_dot_product_attention", layer, inputs, (tensor_record(out),), attrs)

        return self.record_op(lambda *found: func(**dict(given, **dict(zip(of_tensors, found)))), make_op, tensors)
