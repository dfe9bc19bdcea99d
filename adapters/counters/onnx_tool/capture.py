"""Runs onnx-tool's shape inference and profile of an ONNX model, as its README does, and returns its ledger.

The model itself never runs.
"""

from __future__ import annotations

from typing import Any

from ....core.records import DEAD, LIVE, MAC, Entry, Ledger, Sighting, Tensor
from ...onnx.load import Model
from ...onnx.trace import Scope, Tracer, layer_of, live, versions
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter


class Seen(Scope):
    """The values of a graph with the shapes that onnx-tool inferred."""

    def __init__(self, graph: Any, tensors: Any) -> None:
        super().__init__(graph, None)
        self.tensors = tensors

    def type(self, name: str) -> Tensor:
        """The shape as onnx-tool has it, and the dtype of the file."""
        shape = tuple(int(size) if not isinstance(size, str) else None for size in self.tensors[name].get_shape())
        return Tensor(shape, super().type(name).dtype)


def profile_model(proto: Any, where: str) -> Any:
    """onnx-tool's graph of the model, profiled. Raises BeyondCounter if onnx-tool cannot infer the shapes."""
    import onnx_tool

    try:
        graph = onnx_tool.Model(proto).graph
        graph.graph_reorder_nodes()
        graph.shape_infer(None)
        graph.profile()
    except Exception as error:
        what = str(error).strip().splitlines()[0][:200] if str(error).strip() else "it says no more"
        raise BeyondCounter(
            f"onnx-tool cannot infer the shapes of {where} ({type(error).__name__}: {what}): leave onnx_tool out"
        ) from error
    return graph


def capture(counter: str, model: Model) -> Ledger:
    """The ledger of the whole model. A node without a name is called by its kind and number, in the trace as well."""
    import onnx
    import onnx_tool

    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    names = {id_of(node, index): index for index, node in enumerate(proto.graph.node)}
    if len(names) != len(proto.graph.node):
        raise BeyondCounter(
            f"{model.where} has several nodes of one name, of which onnx-tool keeps the last: name them differently"
        )
    graph = profile_model(proto, model.where)
    scope, alive = Seen(proto.graph, graph.tensormap), live(proto.graph)
    tracer = Tracer({opset.domain: opset.version for opset in proto.opset_import})
    entries, sightings = [], []
    for name, node in graph.nodemap.items():
        index = names[name]
        message = proto.graph.node[index]
        op = tracer.record(message, name, layer_of(message.name), scope, 1, ())
        op.attrs["given"] = len(message.input)  # onnx-tool counts the inputs, also those that are left out
        sightings.append(Sighting(op, name, LIVE if index in alive else DEAD))
        if node.macs[0]:
            entries.append(Entry(name, op.layer, op.op, int(node.macs[0]), 1))
    packages = {**versions(), "onnx-tool": version_of("onnx-tool", onnx_tool)}
    return Ledger(counter, "onnx", MAC, "graph", packages, round(graph.macs[0]), tuple(entries), tuple(sightings))


def id_of(node: Any, index: int) -> str:
    """The name under which onnx-tool and the trace know a node."""
    return node.name or f"{node.op_type}_{index}"
