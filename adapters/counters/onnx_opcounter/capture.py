"""Runs onnx-opcounter's calculate_macs and returns its ledger: the sum in its one function is read before and after each node."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ....core.records import DEAD, LIVE, MAC, Entry, Ledger, Sighting, Tensor
from ...onnx.load import Model
from ...onnx.trace import Scope, Tracer, layer_of, live, versions
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter, CannotCount
from ..onnx_tool.capture import id_of

EXACT = 1 << 53
"""A scalar's 1 is a float64 (numpy.prod of no sizes), and so is every sum after it."""


class AsInferred(Scope):
    """The values of a graph with the shapes that onnx-opcounter has; a size that it does not know is 0 there."""

    def __init__(self, graph: Any, shapes: Any) -> None:
        super().__init__(graph, None)
        self.shapes = shapes

    def type(self, name: str) -> Tensor:
        """The shape as onnx-opcounter has it, and the dtype of the file."""
        known = super().type(name)
        if name not in self.shapes:
            return known
        return Tensor(tuple(int(size) or None for size in self.shapes[name]), known.dtype)


class Sums:
    """Follows the local variables of one function: ``sums[i]`` is what it has added after its node ``i``."""

    def __init__(self, function: Any) -> None:
        self.code = function.__code__
        self.sums: list[Any] = []
        self.nodes: list[Any] = []
        self.shapes: Any = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """As sys.settrace calls it."""
        if frame.f_code is not self.code:
            return None
        if event != "call":
            self._note(frame.f_locals)
        return self

    def _note(self, values: Any) -> None:
        node = values.get("node")
        if node is None:
            return
        if not self.nodes or node is not self.nodes[-1]:
            self.nodes.append(node)
            self.sums.append(0)
            self.shapes = values["output_shapes"]
        self.sums[-1] = values["macs"]


def sums_of(proto: Any, where: str) -> tuple[Any, Sums]:
    """Its total and what it added. Raises BeyondCounter if it stops, or if it would run the model."""
    from onnx_opcounter import onnx_opcounter as module

    def refuse(*_: Any) -> None:
        raise RuntimeError("ONNX infers no shapes in strict mode; it would run the model, which reconcile does not")

    watch = Sums(module.calculate_macs)
    tracing, saving = sys.gettrace(), module.onnx.save
    module.onnx.save = refuse  # what it would run
    sys.settrace(watch)
    try:
        total = module.calculate_macs(proto)
    except Exception as error:
        sys.settrace(tracing)
        at = f" at {watch.nodes[-1].op_type} {watch.nodes[-1].name}".rstrip() if watch.nodes else ""
        said = f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]
        raise BeyondCounter(f"onnx-opcounter stops on {where}{at} ({said}): leave onnx_opcounter out") from error
    finally:
        sys.settrace(tracing)
        module.onnx.save = saving
    return total, watch


def capture(counter: str, model: Model) -> Ledger:
    """The ledger of the whole model."""
    import onnx_opcounter

    proto = model.proto
    names = [id_of(node, index) for index, node in enumerate(proto.graph.node)]
    if len(set(names)) != len(names):
        raise BeyondCounter(f"{model.where} has several nodes of one name: name them differently")
    total, watch = sums_of(proto, model.where)
    if total >= EXACT:
        raise CannotCount(f"it adds in floating point; its total {total!r} is not exact")
    scope, alive = AsInferred(proto.graph, watch.shapes), live(proto.graph)
    tracer = Tracer({opset.domain: opset.version for opset in proto.opset_import})
    entries, sightings = [], []
    before = 0
    for index, (name, node, after) in enumerate(zip(names, proto.graph.node, watch.sums, strict=True)):
        op = tracer.record(node, name, layer_of(node.name), scope, 1, ())
        op.attrs["given"] = len(node.input)
        sightings.append(Sighting(op, name, LIVE if index in alive else DEAD))
        if after != before:
            entries.append(Entry(name, op.layer, op.op, int(after) - int(before), 1))
        before = after
    packages = {**versions(), "onnx-opcounter": version_of("onnx-opcounter", onnx_opcounter)}
    return Ledger(counter, "onnx", MAC, "graph", packages, int(total), tuple(entries), tuple(sightings))
