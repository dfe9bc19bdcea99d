"""Bridge from paddle.flops' ledger of a converted model to the PyTorch trace: by module path, kind, and sizes of the output.

A layer of the converted model is one operator of TorchScript, and the trace has ATen's name for it at the module where that ran.
"""

from __future__ import annotations

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ..bridge import Bridge, Item, View, by_layer, known_work, make_item, other_ops, sum_of, unknown_of, unmet
from ..rulebook import apply
from .rules import BOOK, NN

ALSO = {
    "adaptiveavgpool": ("mean",),  # to one element
    "linear": ("addmm", "mm"),
    "relu6": ("hardtanh",),
    "dropout": ("nativedropout",),
    "instancenorm": ("nativebatchnorm",),
}
"""ATen's names that do not contain the kind of the layer."""
NOT_A_LAYER = (
    "no layer of the converted model does it: X2Paddle writes it as a function of paddle or leaves it out, and paddle.flops "
    "hooks layers"
)


def kind_of(op: Op) -> str:
    """The kind of a layer, whatever its axes: ``conv`` of paddle.nn.Conv2DTranspose."""
    name = op.op.removeprefix(NN).removesuffix("Transpose")
    return name.rstrip("D").rstrip("123").lower() if name.endswith("D") else name.lower()


def does(layer: Op, op: Op) -> bool:
    """Whether an op of ATen is what such a layer does."""
    kind, name = kind_of(layer), op.op.removeprefix("aten.").replace("_", "")
    if kind == "avgpool" and "adaptive" in name:
        return False
    return kind in name or name in ALSO.get(kind, ())


def sizes(op: Op) -> list[int | None]:
    """The sizes of the first output, but those of 1: a pool of one axis is one of two in ATen."""
    shape = op.outputs[0].shape if op.outputs else None
    return [size for size in shape or () if size != 1]


def same_sizes(layer: Op, op: Op) -> bool:
    """Whether both have one size of output and, if it is a convolution, one weight: PyTorch and paddle lay it out alike."""
    weights = kind_of(layer) != "conv" or list(op.inputs[1].shape or ()) == layer.attrs["weight"]
    return weights and sizes(op) == sizes(layer)


def why_not(layer: Op) -> str:
    """The reason why a layer without a rule is not counted."""
    return f"paddle.flops has no count function for {layer.op}, and treats it as zero"


def bridge(view: View, trace: Trace) -> Bridge:
    """One item for each layer with a number; what else ran is booked op by op."""
    ran = by_layer(trace.ops)
    taken: set[str] = set()
    items: list[Item] = []
    silent: dict[str, list[tuple[Op, Cause, str]]] = {}
    for sighting in view.sightings:
        rule = BOOK.of(sighting.op, view.versions)
        _, missed = apply(rule, sighting.op, why_not)
        if missed is not None:
            silent.setdefault(sighting.op.layer, []).append((sighting.op, missed.cause, missed.reason))
            continue
        alike = (op for op in ran.get(sighting.op.layer, ()) if op.id not in taken and does(sighting.op, op))
        ops = [op for op in alike if same_sizes(sighting.op, op) and known_work(op)]
        taken |= {op.id for op in ops}
        items.append(_of_layer(view, sighting, ops))
    for op in trace.ops:
        work = known_work(op)
        if op.id in taken or not work:
            continue
        there = (said for said in silent.get(op.layer, ()) if does(said[0], op))
        _, cause, reason = next(there, (op, Cause.CALL_NOT_SEEN, NOT_A_LAYER))
        items.append(unmet(op, work, cause, reason))
    return Bridge(tuple(items))


def _of_layer(view: View, sighting: Sighting, ops: list[Op]) -> Item:
    """The layers that are alike beside the ops that they are; a gap if these did not run as often."""
    layer, rule = sighting.op, BOOK.of(sighting.op, view.versions)
    counted, _ = apply(rule, layer, why_not)
    times = sum(op.calls for op in ops)
    said = f"{layer.op} ran {layer.calls} x in the converted model, and {times} x in the trace"
    return make_item(
        layer,
        rule,
        met=(layer,),
        counted=counted * layer.calls,
        seen=1,
        ran=sum_of(ops),
        times=1,
        entry=sighting.entry,
        ops=tuple(op.id for op in ops),
        gap="" if times == layer.calls else other_ops(view.counter, layer.layer, said),
        unknown=unknown_of(ops),
    )
