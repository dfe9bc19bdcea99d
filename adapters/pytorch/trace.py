"""The trace of a PyTorch model: every ATen op that reaches the dispatcher in one inference call, with its module.

A recurrent layer and an attention call are recorded as ONE op each, as the module calls them, whatever the number of
steps: the tests compare their formulas with their op-by-op decomposition.  On ``meta`` nothing is computed, and an empty
tensor of the right shape replaces a fused call's result.  Where the model takes gradients or maps a call over a batch, the
call is recorded op by op (followed_calls.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ...core.records import IN_HOOK, ON_THREAD, TANGENT, Op, Problem, Trace
from .compiled import SCRIPT, TORCHSCRIPT_RUNS_KERNELS, kind_of_kernel
from .lazy import take_lazy
from .model import TorchModel, versions
from .tracing import higher_order
from .tracing.call_records import RECURRENT, record_dispatch, recurrent, stand_in
from .tracing.elsewhere import THREAD, notice_unseen
from .tracing.followed_calls import Tangents, is_followed
from .tracing.launches import see, unsee
from .tracing.module_path import AfterForward, ModulePath
from .tracing.outside import VALUES_LEFT_PYTORCH, Crossings, numbers_kept
from .tracing.proof import record_model
from .tracing.records import plain, tensor_record, tensors_in
from .tracing.threads import record_new_threads
from .tracing.trace_notes import depends_on, keep_fast_path, of_ways
from .tracing.wrappers import is_fake, is_jagged, is_wrapper
from .tracing.written import MEMORY, WRITTEN_BY_NO_OPERATOR, Written

RAN_ON_EARLIER_THREAD = (
    "it ran on a thread that the model had started before it was called, and nothing that runs there is recorded"
)


LIFTED = "aten.lift_fresh"
"""The operator by which data of the program become a tensor."""


def is_work(func: Any) -> bool:
    """Whether a dispatched call is an operator; the profiler's marks are none."""
    return hasattr(func, "_schema") and not func._schema.name.startswith("profiler::")


class Recorder(TorchDispatchMode):
    """Records every dispatched op while not paused."""

    supports_higher_order_operators = True
    unfollowed = RAN_ON_EARLIER_THREAD

    def __init__(self, path: ModulePath) -> None:
        super().__init__()
        self.path = path
        self.ops: dict[Any, Op] = {}
        self.paused = False
        self.on_thread = False
        self.lock = Lock()
        self.crossings = Crossings()
        self.tangents = Tangents()
        self.elsewhere: list[Problem] = []
        self.remarks: list[str] = []
        self.memory = Written(self.where)

    def __enter__(self) -> Any:
        if not self.on_thread:  # a thread may outlive the call; while that runs, all launches are seen
            see()
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        if not self.on_thread:
            unsee()
        return super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(map(is_wrapper, types)):
            return NotImplemented  # the tensor's own class takes the call apart, and what it calls is met here
        if any(map(is_fake, types)):
            return func(*args, **kwargs)
        if higher_order.is_higher_order(func):
            return self.open_operator(func, args, kwargs)
        out = self.ran(func, args, kwargs)
        if not self.paused and is_work(func):
            self.add(self.record(func, args, kwargs, out, self.path.current))
        return out

    def where(self) -> str:
        """Layer of what runs now."""
        return self.path.current

    def ran(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], around: Any = None) -> Any:
        """What a dispatched call returns; ``around`` calls it, if something does. Memory is followed that it makes or reads."""
        if self.memory.made:
            self.memory.meet(func, args, kwargs)
        out = func(*args, **kwargs) if around is None else around(func, args, kwargs)
        byte = self.memory.making.get(func)
        if byte is not None:
            self.memory.make(out, byte)
        return out

    def record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, layer: str) -> Op:
        """A dispatched call as a record, with the next id."""
        op = record_dispatch(func, args, kwargs, out, self.next_id(), layer)
        if self.tangents.has(tensors_in([*args, *kwargs.values()])):
            op = op._replace(attrs=dict(op.attrs, **{TANGENT: True}))
        if op.op == LIFTED:
            self.crossings.note_lifted(out)
        return op

    def open_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let an operator through that runs functions itself, and record what they do, or the operator as one op."""
        run = None if self.paused else higher_order.open_operator(func, args)
        if run is not None:
            with self:
                return run()
        out = func(*args, **kwargs)
        if not self.paused:
            self.add(higher_order.record(func, args, out, self.next_id(), self.path.current))
        return out

    def next_id(self) -> str:
        """Ids are the order of first execution."""
        return f"op{len(self.ops)}"

    def add(self, op: Op) -> None:
        """Add the op; an op that equals an earlier one is one more call of it.

        Its id is given here: an op that waits for its phase comes after others that were made later.
        """
        if self.on_thread:
            op = op._replace(attrs=dict(op.attrs, **{ON_THREAD: True}))
        if isinstance(op.layer, AfterForward):
            op = op._replace(layer=str(op.layer), attrs=dict(op.attrs, **{IN_HOOK: True}))
        key = (op.op, op.layer, op.phase, op.inputs, op.outputs, repr(sorted(op.attrs.items())), op.within)
        with self.lock:
            held = self.ops.get(key)
            self.ops[key] = op._replace(id=self.next_id()) if held is None else held._replace(calls=held.calls + 1)

    @contextmanager
    def beside(self, layer: str) -> Iterator[None]:
        """On a thread of the model's own, started in that layer: what it runs is recorded here, too."""
        twin = Recorder(self.path)
        twin.ops, twin.lock, twin.crossings, twin.on_thread = self.ops, self.lock, self.crossings, True
        twin.memory = self.memory
        with FusedCalls(twin), twin, self.path.within(layer):
            yield


class FusedCalls(TorchFunctionMode):
    """Lets recurrent layers and attention through as one op each."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        space = torch._C._VariableFunctions
        self.recurrent = {getattr(space, name): name for name in RECURRENT}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.recorder.tangents.begin()
        hashable = type(func).__hash__ is not None
        name = self.recurrent.get(func) if hashable else None
        crossings = self.recorder.crossings
        if self.is_own_call and hashable and crossings.concerns(func):
            return crossings.call(func, args, kwargs, self.recorder.path.current)
        if any(map(is_wrapper, types)) and not any(map(is_jagged, types)):
            return func(*args, **kwargs)  # its sizes are those of the whole, and parts of it run
        if self.is_own_call and name is not None and not kwargs and self.stands(tensors_in(args)):
            return self.recurrent_call(name, func, args)
        attends = self.is_own_call and func is torch.nn.functional.scaled_dot_product_attention
        if attends and self.stands(tensors_in([*args, *kwargs.values()])):
            return self.attention(func, args, kwargs)
        return func(*args, **kwargs)

    @property
    def is_own_call(self) -> bool:
        """Whether a call now is one of the model's own."""
        return not self.recorder.paused

    def stands(self, tensors: list[torch.Tensor]) -> bool:
        """Whether one op may stand for a call on these tensors: nothing comes of the call but its result."""
        return not is_followed(tensors)

    def one(self, compute: Callable[..., Any], record: Callable[[Any], Op], tensors: list[torch.Tensor]) -> Any:
        """Let a call on these tensors through and record it, made of its result, as one op; ``compute(*tensors)`` calls."""
        self.recorder.paused = True
        try:
            out = compute(*tensors)
            made = record(out)
        finally:
            self.recorder.paused = False
        self.recorder.add(made)
        return out

    def recurrent_call(self, name: str, func: Any, args: tuple[Any, ...]) -> Any:
        """A call of torch._VF.gru and the like; on meta no step is run."""
        recorder, meta = self.recorder, args[0].device.type == "meta"

        def make_op(out: Any) -> Op:
            return recurrent(name, args, out, recorder.next_id(), recorder.path.current)

        return self.one(lambda *_: stand_in(name, args) if meta else func(*args), make_op, tensors_in(args))

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
            id, layer = recorder.next_id(), recorder.path.current
            return Op(id, "aten.scaled_dot_product_attention", layer, inputs, (tensor_record(out),), attrs)

        return self.one(lambda *found: func(**dict(given, **dict(zip(of_tensors, found)))), make_op, tensors)


def trace(model: TorchModel, died: tuple[str, ...] = ()) -> Trace:
    """Trace of one inference call where the model is asked to run; on ``meta`` if it does not fit there, with a note.

    ``died`` says how each earlier process ended that traced the model.
    """
    recorder, device, notes = record_model(_record, model, died)
    return finish_trace(recorder, device, notes + tuple(of_ways(recorder.path.modules, list(recorder.ops.values()))))


def finish_trace(recorder: Recorder, device: str, notes: tuple[str, ...]) -> Trace:
    """The trace of what was recorded; layers in order of execution."""
    ops = tuple(recorder.ops.values())
    layers = tuple(dict.fromkeys(op.layer for op in ops))
    problems = [Problem(layer, THREAD, layer, recorder.unfollowed) for layer in dict.fromkeys(recorder.path.unseen)]
    problems += recorder.elsewhere
    problems += [
        Problem(layer, MEMORY, layer, WRITTEN_BY_NO_OPERATOR) for layer in dict.fromkeys(recorder.memory.unseen)
    ]
    fused = [(layer, kind_of_kernel(module)) for module, layer in recorder.path.scripts.items()]
    problems += [Problem(layer, SCRIPT, layer, TORCHSCRIPT_RUNS_KERNELS % kind) for layer, kind in fused if kind]
    problems += [
        Problem(layer, "(numpy)", layer, VALUES_LEFT_PYTORCH) for layer in dict.fromkeys(recorder.crossings.back)
    ]
    notes += tuple(depends_on(ops)) + tuple(recorder.remarks)
    return Trace("torch", versions(recorder.path.root), device, ops, tuple(problems), (), layers, notes)


def _record(model: TorchModel, device: str) -> Recorder:
    module = model.build(device)
    inputs = model.example(device)
    path = ModulePath(module)
    recorder = Recorder(path)
    threads = record_new_threads(lambda: recorder.beside(path.current))
    elsewhere = notice_unseen(path, recorder.elsewhere, recorder.remarks)
    ways, calls, memory = keep_fast_path(), FusedCalls(recorder), recorder.memory.until_given_back()
    with (
        elsewhere,
        memory,
        numbers_kept(),
        torch.no_grad(),
        higher_order.disable_compilation(),
        calls,
        recorder,
        path,
        threads,
        ways,
    ):
        take_lazy(module(*inputs))
    return recorder
