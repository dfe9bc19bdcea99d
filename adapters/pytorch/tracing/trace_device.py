"""Chooses the device that a model is traced on (CPU, GPU or meta), and checks a trace on meta by a cheap run on the CPU.

On meta no dtype, index or factorisation is checked, and the model's code may ask for a value or a device and take another
branch.  If a real run is cheap, the ops of both are compared; if not, products of tensors of different dtypes are still
checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import isqrt, prod
from typing import TYPE_CHECKING, Any, Callable, Protocol, TypeVar

import torch

from ....core.message import text_of
from ....core.records import FORWARD, Op, Shape
from ...shared.refusal import CannotCount, FactoryError, OutOfMemory
from ..module_tensors import parameter_bytes
from .call_records import RECURRENT

if TYPE_CHECKING:
    from ..model import TorchModel
    from .module_path import ModulePath

PRODUCTS, ELEMENTS, BYTES = 10**9, 10**8, 1 << 28
"""The largest run that is made beside one on meta, about a second: multiply-adds (estimated), elements of all tensors, bytes of
weights."""
STEPS, TRAINING_STEPS = 1000, 100
"""Its steps of recurrent layers, of which a training step on the CPU is recorded op by op (fused_gradients.py)."""

SAME_OPERATORS_ON_CPU = "traced on meta, where tensors have no values; one run on the CPU called the same operators"
OTHER_OPERATORS_ON_CPU = "calls other operators on meta than on the CPU (%s): traced on the CPU"

FACTORS = {
    "aten." + name: factors
    for factors, names in {
        (0, 1): "mm bmm mv dot vdot convolution linear _int_mm",
        (1, 2): "addmm addmv baddbmm addbmm",
    }.items()
    for name in names.split()
}
"""Where the two factors of a product stand among its tensors."""


class Recording(Protocol):
    """What a recorder has of a model: its modules, and the ops that ran."""

    path: ModulePath
    ops: dict[Any, Op]


R = TypeVar("R", bound=Recording)

NOT_RUN_BESIDE_META = (
    "traced on meta, where tensors have no values: nothing checked that the model takes the same way, or that it runs at all, on "
    "a device that computes"
)
"""Note of a trace on meta: what such a run cannot show."""


def record_model(
    record: Callable[[TorchModel, str], R], model: TorchModel, died: tuple[str, ...]
) -> tuple[R, str, tuple[str, ...]]:
    """What ``record`` records of a model; the device; notes of why it is another one than the model's, and what that hides.

    A model runs where it is asked to run, on its own inputs: that is the execution that people mean.  Meta is for models
    that do not fit into memory and for users who ask for it.
    """
    if model.device == "meta":
        return _record_on_meta(record, model, died)
    why = died[-1] if died else model.too_large()
    if not why:
        try:
            with model.guard_memory():
                return record(model, model.device), model.device, ()
        except OutOfMemory as error:
            if "on meta" in str(error):
                raise
            why = str(error)
    try:
        recorder = record(model, "meta")
        check_dtypes(recorder.ops.values())
        return recorder, "meta", (why if "meta" in why else why + ": traced on meta", NOT_RUN_BESIDE_META)
    except Exception as error:
        raise OutOfMemory(CANNOT_RUN_ON_META % (why, _describe_error(error))) from error


def _record_on_meta(
    record: Callable[[TorchModel, str], R], model: TorchModel, died: tuple[str, ...]
) -> tuple[R, str, tuple[str, ...]]:
    """The same of a model that is asked to run on meta: on the CPU where it fails there.

    A run on the CPU beside it shows whether meta hid something, where it costs little. Where a process ``died`` of the two,
    the next runs on meta alone; where that died too, on the CPU alone.
    """
    on_meta, failed = None, died[-1] if len(died) > 1 else ""
    if not failed:
        try:
            on_meta = record(model, "meta")
        except Exception as error:  # whatever a model does that needs values: run it for real
            failed = _describe_error(error)
    if on_meta is not None and (died or not is_cheap(on_meta.path.root, on_meta.ops.values())):
        check_dtypes(on_meta.ops.values())
        return on_meta, "meta", (NOT_RUN_BESIDE_META,) + tuple(NO_RUN_BESIDE_META % end for end in died)
    try:
        with model.guard_memory():
            real = record(model, "cpu")
        if on_meta is None:
            return real, "cpu", (f"cannot run on meta ({failed}): traced on the CPU",)
        other = compare_runs(on_meta.ops.values(), real.ops.values())
        if not other:
            return on_meta, "meta", (SAME_OPERATORS_ON_CPU,)
        model.device = "cpu"  # counters have to run where the trace ran
        return real, "cpu", (OTHER_OPERATORS_ON_CPU % other,)
    except NotImplementedError:  # PyTorch's: a kernel of a GPU alone
        if on_meta is None:
            raise
        return on_meta, "meta", (NOT_RUN_BESIDE_META,)
    except OutOfMemory as error:
        if on_meta is not None:
            return on_meta, "meta", (NOT_RUN_BESIDE_META,)
        raise OutOfMemory(str(error) if "on meta" in str(error) else CANNOT_RUN_ON_META % (error, failed)) from error


NO_RUN_BESIDE_META = "a run on the CPU beside the one on meta was not to be had: %s"

CANNOT_RUN_ON_META = "%s, and on meta, where nothing is allocated, it cannot run (%s): mend that, or run it smaller"


def _describe_error(error: BaseException) -> str:
    text = text_of(error).strip().split("\n")[0][:200]
    return text if isinstance(error, (CannotCount, FactoryError)) else f"{type(error).__name__}: {text}"


def is_cheap(module: torch.nn.Module, ops: Iterable[Op]) -> bool:
    """Whether a run of this module that consists of these ops costs about a second at most."""
    products = elements = steps = 0
    most = STEPS
    for op in ops:
        sizes = [prod(size or 0 for size in tensor.shape or ()) for tensor in op.inputs + op.outputs]
        elements += sum(sizes) * op.calls
        largest = sorted(sizes)[-3:]
        products += isqrt(prod(largest)) * op.calls  # of (m, k) and (k, n) that is m k n
        most = most if op.phase == FORWARD else TRAINING_STEPS
        if op.op.rpartition(".")[2] in RECURRENT:
            steps += max((size or 0 for size in op.inputs[0].shape or ()), default=0) * op.calls
    within = products <= PRODUCTS and elements <= ELEMENTS and steps <= most
    return within and parameter_bytes(module) <= BYTES


def compare_runs(ops: Iterable[Op], others: Iterable[Op]) -> str:
    """The ops that only one of two runs did, in a few words; '' if they did the same.

    Left out: ops that only move values, and in a training step the layers of which a device has kernels of its own.
    """
    one, other = list(ops), list(others)
    trains = any(op.phase != FORWARD for op in one + other)
    kernels = {op.layer for op in one + other if trains and _is_kernel(op)}
    of_one, of_other = _work_done(one, kernels), _work_done(other, kernels)
    for where, more in (("the CPU", of_other - of_one), ("meta", of_one - of_other)):
        for (name, layer, _, shapes), times in more.items():
            at = f" at layer {layer}" if layer else ""
            return f"only on {where}: {name} of {', '.join(map(str, shapes))}{at}, {times} times"
    return ""


def _work_done(ops: Iterable[Op], kernels: set[str]) -> Counter[tuple[str, str, str, tuple[Shape, ...]]]:
    """Gradients follow from the forward ops; ops that hooks add to them are compared by their products."""
    found: Counter[tuple[str, str, str, tuple[Shape, ...]]] = Counter()
    for op in ops:
        compared = op.layer not in kernels and not _moves(op.op) and (op.phase == FORWARD or op.op in FACTORS)
        if compared and any(_is_floating(tensor.dtype) for tensor in op.inputs):
            found[(op.op, op.layer, op.phase, tuple(tensor.shape for tensor in op.inputs))] += op.calls
    return found


def _is_kernel(op: Op) -> bool:
    return op.op.rpartition(".")[2] in RECURRENT or ATTENTION in op.op


ATTENTION = "scaled_dot_product"
MOVES = frozenset("aten." + name for name in ("_to_copy", "_unsafe_view", "clone", "copy", "lift_fresh"))


@cache
def _moves(name: str) -> bool:
    """Whether an op moves values or looks at them otherwise. A device may take a view where another one copies."""
    if name in MOVES:
        return True
    space, _, op = name.partition(".")
    packet = getattr(getattr(torch.ops, space), op, None)
    return packet is not None and any(getattr(packet, overload).is_view for overload in packet.overloads())


def _is_floating(dtype: str) -> bool:
    return "float" in dtype or "complex" in dtype


def check_dtypes(ops: Iterable[Op]) -> None:
    """Raise CannotCount if a product of these ops is one that PyTorch refuses where it computes: meta takes any two dtypes."""
    for op in ops:
        factors = FACTORS.get(op.op)
        if factors is None or max(factors) >= len(op.inputs):
            continue
        first, second = (op.inputs[at].dtype for at in factors)
        if first != second and refused_product(first, second):
            at = f" at layer {op.layer}" if op.layer else ""
            raise CannotCount(
                f"{op.op}{at} multiplies {first} by {second}, which meta does not check and the CPU refuses "
                f"({refused_product(first, second)})"
            )


def refused_product(first: str, second: str) -> str:
    """PyTorch's error for a computed product of these dtypes; '' if it takes them."""
    try:
        torch.mm(*(torch.zeros((1, 1), dtype=getattr(torch, name)) for name in (first, second)))
    except RuntimeError as error:
        return text_of(error).strip().split("\n")[0]
    return ""
