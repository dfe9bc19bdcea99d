"""Makes op records of PyTorch calls: a dispatched operator, or a fused recurrent call (GRU, LSTM, RNN) as one op.

It also asks PyTorch where an operator's kernels were registered, and tests whether an operator acts element by element.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch

from ....core.records import (
    IN_PLACE,
    LENGTHS,
    MEETING,
    PACKED,
    PARTS,
    POINTWISE,
    REGISTERED,
    STORED,
    Op,
    Tensor,
)
from .groups import PROCESSES, with_group
from .numpy_crossings import numbers_of
from .records import (
    is_in_place,
    part_sizes,
    plain,
    registered_flops,
    sparse_product_counts,
    stored_values,
    tensor_record,
    tensors_in,
)

RECURRENT = {"gru": 1, "lstm": 2, "rnn_tanh": 1, "rnn_relu": 1}
"""Fused recurrent calls of torch._VF and how many hidden state tensors each takes."""
OF_TWO_SPARSE = ("aten::_sparse_sparse_matmul", "aten::mm", "aten::addmm", "aten::_sparse_addmm")
"""Products whose factors may both be sparse."""
OF_SEQUENCES = ("aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd")
"""Fused calls whose work on a nested tensor depends on how long each of its sequences is."""


def op_name(func: Any) -> str:
    """``aten.addmm`` of ``aten::addmm_.out``: namespace and name, no overload, no in-place underscore."""
    space, name = func._schema.name.split("::")
    return space + "." + (name[:-1] if name.endswith("_") and not name.endswith("__") else name)


def record_dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, id: str, layer: str) -> Op:
    """A dispatched call as a record: tensors in signature order, other arguments by their schema names."""
    inputs: list[Tensor] = []
    attrs: dict[str, Any] = {}
    kept: list[int | None] = []
    parts: list[list[list[int]] | None] = []
    packed: list[Tensor] = []
    known = operator(func)
    for position, (argument, default, of_tensors) in enumerate(known.arguments):
        given = position < len(args) or argument in kwargs
        value = args[position] if position < len(args) else kwargs.get(argument, default)
        found = tensors_in(value)
        if found:
            inputs.extend(tensor_record(t) for t in found)
            kept.extend(stored_values(t) for t in found)
            parts.extend(part_sizes(t) for t in found)
        elif given or value is not None or of_tensors:
            attrs[argument] = plain(value)
        weight = unpack_weight(value)
        if weight is not None:
            packed.append(weight)
    if func.namespace == "aten" and args and isinstance(args[0], (list, tuple)) and not func._schema.returns:
        out = args[0]  # of _foreach_add_ and the like: the list that it changes
    outputs = tuple(tensor_record(t) for t in tensors_in(out))
    if any(count is not None for count in kept):
        attrs[STORED] = kept
        pairs = sparse_product_counts(tensors_in(list(args)), out) if func._schema.name in OF_TWO_SPARSE else None
        if pairs is not None:
            attrs[MEETING] = pairs
    parts.extend(part_sizes(t) for t in tensors_in(out))
    if any(sizes is not None and t.shape is None for sizes, t in zip(parts, (*inputs, *outputs))):
        attrs[PARTS] = parts
    if func._schema.name in OF_SEQUENCES and getattr(args[0], "is_nested", False):
        attrs["rows"] = args[0]._nested_tensor_size()[:, 0].tolist()
    if known.takes_lengths:
        lengths = lengths_of({a.name: v for a, v in zip(func._schema.arguments, args)}, kwargs)
        if lengths is not None:
            attrs[LENGTHS] = lengths
    if packed:
        inputs.extend(packed)
        attrs[PACKED] = True
    if func.namespace in PROCESSES:
        attrs = with_group(attrs, [*args, *kwargs.values()])
    flops = registered_flops(func, args, kwargs, out)
    if flops is not None:
        attrs[REGISTERED] = flops
    if known.in_place:
        attrs[IN_PLACE] = True
    if known.pointwise and acts_pointwise(func, args, kwargs):
        attrs[POINTWISE] = True
    return Op(id, known.name, layer, tuple(inputs), outputs, attrs)


class Operator(NamedTuple):
    """What is the same in all calls of an operator: its name, and each argument's name, its default, and whether it is a tensor
    or several; whether it takes packed sequences, is a product in place, or is of another library and tagged pointwise."""

    name: str
    arguments: tuple[tuple[str, Any, bool], ...]
    takes_lengths: bool
    in_place: bool
    pointwise: bool


@cache
def operator(func: Any) -> Operator:
    """Asked of every call, and answered once for each operator."""
    schema = func._schema
    return Operator(
        op_name(func),
        tuple((a.name, a.default_value, "Tensor" in str(a.type)) for a in schema.arguments),
        any(a.name == queries for a in schema.arguments for queries, _ in OFFSETS),
        is_in_place(schema.name.split("::")[1]),
        tagged_pointwise(func),
    )


OFFSETS = (("cum_seq_q", "cum_seq_k"), ("cu_seqlens_q", "cu_seqlens_k"), ("cu_seq_q", "cu_seq_k"))
"""Names of the arguments of attention that say where each packed sequence begins, and the last one ends."""
USED = ("seqused_k", "seqlen_k")
"""Names of the argument that says how many keys of each sequence are read."""


def lengths_of(given: dict[str, Any], kwargs: dict[str, Any]) -> list[list[int]] | None:
    """The lengths of the packed sequences of a call: of their queries and of their keys; None of another call, and on meta of
    offsets that the program did not write as numbers."""
    names = {**given, **kwargs}
    used = [names[name] for name in USED if isinstance(names.get(name), torch.Tensor)]
    for pair in OFFSETS:
        offsets = [names[name] for name in pair if isinstance(names.get(name), torch.Tensor)]
        with _python_dispatch._disable_current_modes():  # what reads a value is no op of the model
            ends, read = [numbers_of(t) for t in offsets], [numbers_of(t) for t in used]
        if not offsets or None in ends or None in read:
            continue
        lengths = [[b - a for a, b in zip(row, row[1:])] for row in ends if row is not None]
        return [lengths[0], (read[0] if read else None) or lengths[-1]]
    return None


def unpack_weight(value: Any) -> Tensor | None:
    """The weight in what a quantised layer or convolution keeps packed; None of anything else."""
    if not isinstance(value, torch.ScriptObject) or not value._has_method("unpack"):
        return None
    try:
        weight = value.unpack()[0]
    except Exception:  # a library's own class
        return None
    return tensor_record(weight) if isinstance(weight, torch.Tensor) else None


def tagged_pointwise(func: Any) -> bool:
    """Whether an operator of another library is tagged as pointwise; PyTorch's own are listed at home."""
    tag = getattr(getattr(torch, "Tag", None), "pointwise", None)
    return func.namespace not in ("aten", "prims") and tag in func.tags if tag is not None else False


TRIED = 8
"""How often elements of each tensor are changed to see what they move: each time other ones, and so many apart."""
_found_pointwise: dict[Any, bool] = {}


def acts_pointwise(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether elements that change move no more elements of the result than there are places for them: a tag may be wrong.

    The operator is called for it, on copies, once for each operator and sizes. On meta, where no value can tell, the tag is all
    there is.
    """
    from torch.utils import _pytree  # which an old PyTorch has not

    leaves, tree = _pytree.tree_flatten((args, kwargs))
    tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.numel()]
    if any(leaves[at].is_meta for at in tensors):
        return True
    sizes = [(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else type(leaf) for leaf in leaves]
    key = (func, str(tree), tuple(sizes))
    if key not in _found_pointwise:
        with _python_dispatch._disable_current_modes(), torch.no_grad(), torch.random.fork_rng(devices=()):
            try:
                _found_pointwise[key] = bool(tensors) and _moves_own_places(func, leaves, tree, tensors)
            except Exception:  # of a library's own code: it refuses the changed element
                return False
    return _found_pointwise[key]


def _moves_own_places(func: Any, leaves: list[Any], tree: Any, tensors: list[int]) -> bool:
    from torch.utils import _pytree

    def call(changed: int, first: int) -> list[torch.Tensor]:
        copies = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        if changed >= 0:
            held = copies[changed]
            chosen = torch.arange(held.numel(), device=held.device).reshape(held.shape) % TRIED == first
            held[chosen] = ~held[chosen] if held.dtype is torch.bool else held[chosen] + 1
        args, kwargs = _pytree.tree_unflatten(copies, tree)
        torch.manual_seed(0)
        return tensors_in([func(*args, **kwargs), *copies])

    results = call(-1, 0)
    for at in tensors:
        elements = leaves[at].numel()
        places = max(1, *(out.numel() // elements for out in results))
        for first in range(min(TRIED, elements)):
            moved = zip(results, call(at, first))
            if any(int((one != other).sum()) > places * len(range(first, elements, TRIED)) for one, other in moved):
                return False
    return True


def kernel_replaced(func: Any) -> bool:
    """Whether PyTorch's dispatcher has a kernel, or an overload, of an ATen operator that PyTorch was not built with, on a device
    that computes: it need not do what the name says."""
    if func.namespace != "aten":
        return False
    given = [kernel.__module__ or "" for kernel in getattr(func, "py_kernels", {}).values()]
    return any(not module.startswith("torch.") for module in given) or any(
        not place.startswith(source_folder()) and "Meta" not in key and not _is_native(place)
        for key, place in registered_places(func)
    )


def registered_places(func: Any) -> list[tuple[str, str]]:
    """Where an operator is declared ("debug") and each of its kernels registered, with the key: a file and a line."""
    pattern = r"^([\w\[\] ()]+): registered at (\S+)"
    return re.findall(pattern, torch._C._dispatch_dump(func.name()), re.MULTILINE)


@cache
def source_folder() -> str:
    """The folder of the sources that this PyTorch was built from, as its dispatcher names them; '' of one that does not."""
    found = re.search(r"^debug: registered at (.*?)build/aten/", torch._C._dispatch_dump("aten::relu"), re.MULTILINE)
    return found.group(1) if found else ""


def _is_native(place: str) -> bool:
    """Whether a file of PyTorch's own registers it for devices that its build has no kernel for."""
    return place.startswith(os.path.join(os.path.dirname(torch.__file__), "_"))


def recurrent(name: str, args: tuple[Any, ...], out: Any, layer: str) -> Op:
    """A call of torch._VF.gru / lstm / rnn_tanh / rnn_relu, padded or packed, as one record (see work/recurrent.py).

    Padded: (input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first);
    packed: (data, batch_sizes, hx, weights, has_biases, num_layers, dropout, train, bidirectional).
    """
    packed = isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))
    rest = args[4:] if packed else args[3:]
    tensors = [args[0]] + ([args[1]] if packed else [])
    tensors += tensors_in(args[2] if packed else args[1])
    weights = tensors_in(args[3] if packed else args[2])
    attrs: dict[str, Any] = {
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
    return Op("", "aten." + name, layer, inputs, tuple(tensor_record(t) for t in tensors_in(out)), attrs)


def stand_in(name: str, args: tuple[Any, ...]) -> Any:
    """An output of a recurrent call on meta: right shapes, no step run."""
    packed = isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))
    hidden = tensors_in(args[2] if packed else args[1])
    bidirectional = args[8] if packed else args[7]
    width = hidden[0].shape[-1] * (2 if bidirectional else 1)
    out = args[0].new_empty(tuple(args[0].shape[:-1]) + (width,))
    return (out,) + tuple(torch.empty_like(h) for h in hidden)
