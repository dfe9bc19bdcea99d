"""The trace of a PyTorch model: every ATen op that reaches the dispatcher in one inference call, with its module.

A recurrent layer and an attention call are recorded as ONE op each, as the module calls them, whatever the number of
steps: their formulas are held against their op-by-op decomposition by the tests.  On ``meta`` nothing is computed and
a stand-in of the right shape takes the place of a fused call's result.
"""

from contextlib import contextmanager
from threading import Lock
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ...core.records import POINTWISE, REGISTERED, STORED, Op, Problem, Tensor, Trace
from ..shared.refusal import CannotCount, FactoryError, OutOfMemory
from . import higher_order
from .elsewhere import THREAD, noticed
from .model import ModulePath, TorchModel, versions
from .outside import LEFT, Crossings
from .records import plain, registered_flops, stored, tensor_record, tensors_in
from .threads import followed

RECURRENT = {"gru": 1, "lstm": 2, "rnn_tanh": 1, "rnn_relu": 1}
"""Fused recurrent calls of torch._VF and how many hidden state tensors each takes."""

ELSEWHERE = (
    "it ran on a thread that the model had started before it was called, and nothing that runs there is recorded"
)


def op_name(func):
    # type: (Any) -> str
    """``aten.addmm`` of ``aten::addmm_.out``: namespace and name, no overload, no in-place underscore."""
    space, name = func._schema.name.split("::")
    return space + "." + (name[:-1] if name.endswith("_") and not name.endswith("__") else name)


def dispatched(func, args, kwargs, out, id, layer):
    # type: (Any, Tuple[Any, ...], Dict[str, Any], Any, str, str) -> Op
    """A dispatched call as a record: tensors in signature order, other arguments by their schema names."""
    inputs = []  # type: List[Tensor]
    attrs = {}  # type: Dict[str, Any]
    kept = []  # type: List[Optional[int]]
    for position, argument in enumerate(func._schema.arguments):
        given = position < len(args) or argument.name in kwargs
        value = args[position] if position < len(args) else kwargs.get(argument.name, argument.default_value)
        found = tensors_in(value)
        if found:
            inputs.extend(tensor_record(t) for t in found)
            kept.extend(stored(t) for t in found)
        elif given or value is not None or "Tensor" in str(argument.type):
            attrs[argument.name] = plain(value)
    outputs = tuple(tensor_record(t) for t in tensors_in(out))
    if any(count is not None for count in kept):
        attrs[STORED] = kept
    flops = registered_flops(func, args, kwargs, out)
    if flops is not None:
        attrs[REGISTERED] = flops
    if tagged_pointwise(func):
        attrs[POINTWISE] = True
    return Op(id, op_name(func), layer, tuple(inputs), outputs, attrs)


def tagged_pointwise(func):
    # type: (Any) -> bool
    """Whether an operator of another library is tagged as pointwise; PyTorch's own are listed at home."""
    tag = getattr(getattr(torch, "Tag", None), "pointwise", None)
    return func.namespace not in ("aten", "prims") and tag in func.tags if tag is not None else False


def recurrent(name, args, out, id, layer):
    # type: (str, Tuple[Any, ...], Any, str, str) -> Op
    """A call of torch._VF.gru / lstm / rnn_tanh / rnn_relu, padded or packed, as one record (see work/recurrent.py).

    Padded: (input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first);
    packed: (data, batch_sizes, hx, weights, has_biases, num_layers, dropout, train, bidirectional).
    """
    packed = isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))
    rest = args[4:] if packed else args[3:]
    tensors = [args[0]] + ([args[1]] if packed else [])
    tensors += tensors_in(args[2] if packed else args[1])
    weights = tensors_in(args[3] if packed else args[2])
    attrs = {  # type: Dict[str, Any]
        "has_biases": bool(rest[0]),
        "num_layers": int(rest[1]),
        "bidirectional": bool(rest[4]),
        "batch_first": False if packed else bool(rest[5]),
        "packed": packed,
        "weights_at": len(tensors),
    }
    if rest[2] and rest[3] and rest[1] > 1:  # between layers, in training
        attrs["dropout"] = float(rest[2])
    if packed and rest[4]:
        attrs["last_batch"] = int(args[1][-1])  # how many sequences are as long as the longest: reversed, they begin
    inputs = tuple(tensor_record(t) for t in tensors + weights)
    return Op(id, "aten." + name, layer, inputs, tuple(tensor_record(t) for t in tensors_in(out)), attrs)


def stand_in(name, args):
    # type: (str, Tuple[Any, ...]) -> Any
    """An output of a recurrent call on meta: right shapes, no step run."""
    packed = isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))
    hidden = tensors_in(args[2] if packed else args[1])
    bidirectional = args[8] if packed else args[7]
    width = hidden[0].shape[-1] * (2 if bidirectional else 1)
    out = args[0].new_empty(tuple(args[0].shape[:-1]) + (width,))
    return (out,) + tuple(torch.empty_like(h) for h in hidden)


LIFTED = "aten.lift_fresh"
"""The operator by which data of the program become a tensor."""


def is_work(func):
    # type: (Any) -> bool
    """Whether a dispatched call is an operator; the profiler's marks are none."""
    return hasattr(func, "_schema") and not func._schema.name.startswith("profiler::")


class Recorder(TorchDispatchMode):
    """Records every dispatched op while not paused."""

    supports_higher_order_operators = True
    unfollowed = ELSEWHERE

    def __init__(self, path):
        # type: (ModulePath) -> None
        super(Recorder, self).__init__()
        self.path = path
        self.ops = {}  # type: Dict[Any, Op]
        self.paused = False
        self.lock = Lock()
        self.crossings = Crossings()
        self.elsewhere = []  # type: List[Problem]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # type: (Any, Any, Any, Any) -> Any
        kwargs = kwargs or {}
        if higher_order.is_higher_order(func):
            return self.opened(func, args, kwargs)
        out = func(*args, **kwargs)
        if not self.paused and is_work(func):
            self.add(self.record(func, args, kwargs, out, self.path.current))
        return out

    def record(self, func, args, kwargs, out, layer):
        # type: (Any, Tuple[Any, ...], Dict[str, Any], Any, str) -> Op
        """A dispatched call as a record, with the next id."""
        op = dispatched(func, args, kwargs, out, self.next_id(), layer)
        if op.op == LIFTED:
            self.crossings.lifted(out)
        return op

    def opened(self, func, args, kwargs):
        # type: (Any, Tuple[Any, ...], Dict[str, Any]) -> Any
        """Let an operator through that runs functions itself, and record what they do, or the operator as one op."""
        run = None if self.paused else higher_order.opened(func, args)
        if run is not None:
            with self:
                return run()
        out = func(*args, **kwargs)
        if not self.paused:
            self.add(higher_order.record(func, args, out, self.next_id(), self.path.current))
        return out

    def next_id(self):
        # type: () -> str
        """Ids are the order of first execution."""
        return "op%d" % len(self.ops)

    def add(self, op):
        # type: (Op) -> None
        """Take the op in; one that differs from an earlier one in nothing is one more call of it.

        Its id is given here: an op that waits for its phase comes after others that were made later.
        """
        key = (op.op, op.layer, op.phase, op.inputs, op.outputs, repr(sorted(op.attrs.items())), op.within)
        with self.lock:
            held = self.ops.get(key)
            self.ops[key] = op._replace(id=self.next_id()) if held is None else held._replace(calls=held.calls + 1)

    @contextmanager
    def beside(self, layer):
        # type: (str) -> Iterator[None]
        """On a thread of the model's own, started in that layer: what it runs is recorded here, too."""
        twin = Recorder(self.path)
        twin.ops, twin.lock, twin.crossings = self.ops, self.lock, self.crossings
        with FusedCalls(twin), twin, self.path.within(layer):
            yield


class FusedCalls(TorchFunctionMode):
    """Lets recurrent layers and attention through as one op each."""

    def __init__(self, recorder):
        # type: (Recorder) -> None
        super(FusedCalls, self).__init__()
        self.recorder = recorder
        space = torch._C._VariableFunctions
        self.recurrent = {getattr(space, name): name for name in RECURRENT}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # type: (Any, Any, Any, Any) -> Any
        kwargs = kwargs or {}
        hashable = type(func).__hash__ is not None
        name = self.recurrent.get(func) if hashable else None
        crossings = self.recorder.crossings
        if self.wanted and hashable and crossings.concerns(func):
            return crossings.call(func, args, kwargs, self.recorder.path.current)
        if self.wanted and name is not None and not kwargs:
            return self.recurrent_call(name, func, args)
        if self.wanted and func is torch.nn.functional.scaled_dot_product_attention:
            return self.attention(func, args, kwargs)
        return func(*args, **kwargs)

    @property
    def wanted(self):
        # type: () -> bool
        """Whether a call now is one of the model's own."""
        return not self.recorder.paused

    def one(self, compute, record, tensors):
        # type: (Callable[[], Any], Callable[[Any], Op], List[torch.Tensor]) -> Any
        """Let a call on these tensors through and record it, made of its result, as one op."""
        self.recorder.paused = True
        try:
            out = compute()
            made = record(out)
        finally:
            self.recorder.paused = False
        self.recorder.add(made)
        return out

    def recurrent_call(self, name, func, args):
        # type: (str, Any, Tuple[Any, ...]) -> Any
        """A call of torch._VF.gru and the like; on meta no step is run."""
        recorder, meta = self.recorder, args[0].device.type == "meta"

        def made(out):
            # type: (Any) -> Op
            return recurrent(name, args, out, recorder.next_id(), recorder.path.current)

        return self.one(lambda: stand_in(name, args) if meta else func(*args), made, tensors_in(args))

    def attention(self, func, args, kwargs):
        # type: (Any, Any, Any) -> Any
        """scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)."""
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
        given = dict(zip(names, args))
        given.update(kwargs)
        recorder = self.recorder
        tensors = [given[n] for n in names[:4] if isinstance(given.get(n), torch.Tensor)]

        def made(out):
            # type: (Any) -> Op
            attrs = {n: plain(given.get(n)) for n in names[4:]}
            if given.get("attn_mask") is None:
                attrs["attn_mask"] = None
            if any(getattr(t, "is_nested", False) for t in tensors):
                attrs["rows"] = [[list(map(int, part.shape)) for part in t.unbind()] for t in tensors[:3]]
            inputs = tuple(tensor_record(t) for t in tensors)
            id, layer = recorder.next_id(), recorder.path.current
            return Op(id, "aten.scaled_dot_product_attention", layer, inputs, (tensor_record(out),), attrs)

        return self.one(lambda: func(*args, **kwargs), made, tensors)


def trace(model, died=""):
    # type: (TorchModel, str) -> Trace
    """Trace of one inference call, on ``meta`` where the model allows, else on the CPU with a note.

    ``died`` says how an earlier process ended when the model ran on meta, if one did.
    """
    recorder, device, notes = recorded(_record, model, died)
    if any(takes_fast_path(module) for module in recorder.path.modules):
        notes += (FAST_PATH,)
    if any(op.op == "aten._nested_tensor_from_mask_left_aligned" for op in recorder.ops.values()):
        notes += (PADDING,)
    if any(op.attrs.get("block_mask") for op in recorder.ops.values() if op.op == higher_order.FLEX):
        notes += (higher_order.BLOCKS,)
    return finished(recorder, device, notes)


R = TypeVar("R", bound=Recorder)


def recorded(record, model, died):
    # type: (Callable[[TorchModel, str], R], TorchModel, str) -> Tuple[R, str, Tuple[str, ...]]
    """What ``record`` records of a model on meta, or on the CPU where it ``died`` or fails there; the device; a note of why."""
    if not died:
        try:
            return record(model, "meta"), "meta", ()
        except Exception as error:  # whatever a model does that needs values: run it for real
            text = str(error).strip().split("\n")[0][:200]
            died = text if isinstance(error, (CannotCount, FactoryError)) else "%s: %s" % (type(error).__name__, text)
    try:
        return record(model, "cpu"), "cpu", ("cannot run on meta (%s): traced on the CPU" % died,)
    except OutOfMemory as error:
        remedy = "%s, and on meta, where nothing is allocated, it cannot run (%s): mend that, or run it smaller"
        raise OutOfMemory(str(error) if "on meta" in str(error) else remedy % (error, died)) from error


def finished(recorder, device, notes):
    # type: (Recorder, str, Tuple[str, ...]) -> Trace
    """The trace of what was recorded; layers in order of execution."""
    ops = tuple(recorder.ops.values())
    layers = tuple(dict.fromkeys(op.layer for op in ops))
    problems = [Problem(layer, THREAD, layer, recorder.unfollowed) for layer in dict.fromkeys(recorder.path.unseen)]
    problems += recorder.elsewhere
    problems += [Problem(layer, "(numpy)", layer, LEFT) for layer in dict.fromkeys(recorder.crossings.back)]
    notes += tuple(depends_on(ops))
    return Trace("torch", versions(recorder.path.root), device, ops, tuple(problems), (), layers, notes)


def depends_on(ops):
    # type: (Tuple[Op, ...]) -> Iterator[str]
    """Notes of what the work of these ops rests on besides their shapes: stored values, and formulas of other libraries."""
    if any(STORED in op.attrs for op in ops):
        yield SPARSE
    masked = ["aten.index with a mask"] if any(map(_is_masked, ops)) else []
    sized = list(dict.fromkeys(op.op for op in ops if op.op in SIZED_BY_VALUES)) + masked
    if sized:
        yield BY_VALUES % ", ".join(sized)
    for name in dict.fromkeys(op.op for op in ops if REGISTERED in op.attrs):
        yield OF_LIBRARY % (name, name)


def _is_masked(op):
    # type: (Op) -> bool
    """Whether it picks the elements at which a mask is true: as many as there are."""
    return op.op == "aten.index" and any(tensor.dtype == "bool" for tensor in op.inputs[1:])


SPARSE = "the work on sparse tensors depends on how many values they store, and is counted as it ran with these"
SIZED_BY_VALUES = ("aten.nonzero", "aten.masked_select", "aten._unique2", "aten.unique_dim", "aten.unique_consecutive")
BY_VALUES = "values decide how large some tensors are (%s), and the work is counted as it ran with these"
OF_LIBRARY = (
    "%s is counted by the formula that its library registered with torch.utils.flop_counter, which nothing here checks, unless "
    "you give one of your own: flop_counter agrees with it because it uses the same one, so this says nothing about %s"
)
FAST_PATH = (
    "nn.MultiheadAttention is traced op by op, as hooks and traces see it; in inference mode PyTorch may run it, or the "
    "encoder layer around it, as one fused op: the same products, but only the query is scaled, and no row is tested for "
    "being masked whole"
)
PADDING = (
    "nn.TransformerEncoder is traced with the positions that its padding mask leaves out, as a trace of a graph has them; in "
    "inference mode PyTorch may drop them (nested tensors), and then its layers do less work than is shown here"
)


def takes_fast_path(module):
    # type: (Any) -> bool
    """Whether PyTorch has another path for this attention in inference mode (nn/modules/activation.py, forward)."""
    if not isinstance(module, torch.nn.MultiheadAttention):
        return False
    return module.batch_first and module.num_heads % 2 == 0 and module._qkv_same_embed_dim


def _record(model, device):
    # type: (TorchModel, str) -> Recorder
    module = model.build(device)
    inputs = model.example(device)
    path = ModulePath(module)
    recorder = Recorder(path)
    threads = followed(lambda: recorder.beside(path.current))
    elsewhere = noticed(path, recorder.elsewhere)
    with elsewhere, torch.no_grad(), higher_order.uncompiled(), FusedCalls(recorder), recorder, path, threads:
        module(*inputs)
    return recorder
