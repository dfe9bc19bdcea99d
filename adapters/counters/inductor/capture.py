"""Compiles a model and returns the ledger of inductor's count_flops_fx on the compiled graphs, one entry per module and ATen op.

``torch.compile`` makes the graphs, with inductor's decompositions and the passes before its code generation; they are run as they
are, without it.  A node belongs to the module that its ``nn_module_stack`` names.
"""

from __future__ import annotations

from typing import Any

import torch

from ....core.records import FLOP, Entry, Ledger, Op, Sighting
from ...pytorch.call_adapter import CallAdapter, is_leaf, same_numbers
from ...pytorch.model import TorchModel, forget_compiled, versions
from ...pytorch.tracing.call_records import op_name, record_dispatch
from ...pytorch.tracing.module_path import module_paths
from ...shared import nested
from ...shared.refusal import BeyondCounter
from ..limits import Limit, explain_limits
from . import NAMELESS

LIMITS = (
    Limit(
        ("/torch/_dynamo/",),
        "torch.compile, which makes the graphs that it counts, stops on this model",
    ),
)
"""What torch.compile cannot take."""
NO_GRAPH = "torch.compile gave inductor no graph of this model; TORCH_LOGS=graph_breaks tells where it stops"
COUNTS_SYMBOLS = "it counts symbols where torch.compile takes a size for one that changes, as here in %s"


class NotedNodes:
    """The nodes of every graph that inductor is given, by what ``layers`` says of the modules, and what it counts of each."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.layers = {str(id(each)): path for each, path in module_paths(module).items()}
        self.ops: list[tuple[Op, int]] = []

    def inner(self, graph: Any, _inputs: Any, **_settings: Any) -> Any:
        """What inductor compiles a graph with: it notes the nodes, and leaves the graph as it is."""
        from torch._functorch.aot_autograd import make_boxed_func
        from torch._inductor.fx_utils import count_flops_fx

        for node in graph.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload):
                counted = count_flops_fx(node)
                if isinstance(counted, torch.SymInt):
                    raise BeyondCounter(COUNTS_SYMBOLS % node.target)
                self.ops.append((self._record(node, counted), counted or 0))
        return make_boxed_func(graph.forward)

    def _record(self, node: Any, counted: int | None) -> Op:
        layer, id = self._layer(node), f"node{len(self.ops)}"
        if counted is None:  # no formula reads its shapes
            return Op(id, op_name(node.target), layer, (), (), {})
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda of: of.meta["val"])
        op = record_dispatch(node.target, tuple(args), dict(kwargs), node.meta["val"], id, layer)
        return op if node.meta.get("nn_module_stack") else op._replace(attrs=dict(op.attrs, **{NAMELESS: True}))

    def _layer(self, node: Any) -> str:
        """Of the innermost module of the model in whose forward the node was made; '' if none is named."""
        for key in reversed(list(node.meta.get("nn_module_stack") or {})):
            path = self.layers.get(str(key).partition("@")[0])
            if path is not None:
                return path
        return ""


def _compile_module(module: torch.nn.Module, positional: Any, named: Any) -> NotedNodes:
    from torch._inductor.compile_fx import compile_fx

    nodes = NotedNodes(module)
    adapter = getattr(module.forward, "__self__", None)
    if isinstance(adapter, CallAdapter):  # the compiler would compile it, too
        module.forward = adapter.forward
    forget_compiled()
    compiled = torch.compile(module, backend=lambda graph, given: compile_fx(graph, given, inner_compile=nodes.inner))
    same_numbers()
    with torch.no_grad(), torch.compiler.set_stance("default"):
        compiled(*positional, **named)
    forget_compiled()
    return nodes


def _count_smallest_model() -> None:
    nodes = _compile_module(torch.nn.Linear(1, 1), (torch.zeros(2, 1),), {})
    if not nodes.ops:
        raise AssertionError(NO_GRAPH)


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    module = model.build(model.device)
    positional, named = nested.fill_leaves(model.arguments, is_leaf, model.example(model.device))
    with explain_limits(LIMITS, _count_smallest_model):
        nodes = _compile_module(module, positional, named)
    if not nodes.ops:
        raise BeyondCounter(NO_GRAPH)
    amounts: dict[tuple[str, str], list[int]] = {}
    for op, counted in nodes.ops:
        if counted:
            amounts.setdefault((op.layer, op.op), []).append(counted)
    entries = [Entry("{}|{}".format(*key), *key, sum(each), len(each)) for key, each in amounts.items()]
    sightings = [Sighting(op, f"{op.layer}|{op.op}" if (op.layer, op.op) in amounts else "") for op, _ in nodes.ops]
    total = sum(counted for _, counted in nodes.ops)
    return Ledger(counter, "torch", FLOP, model.device, versions(module), total, tuple(entries), tuple(sightings))
