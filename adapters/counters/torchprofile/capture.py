"""Runs torchprofile.profile_macs and returns its ledger, one entry per module and operator. PyTorch 2.0 and later.

It counts the nodes of a TorchScript trace.  Its own records of nodes do not say where in the model a node belongs, since
``torch.jit._get_trace_graph`` opens no scopes; reconcile opens one for each module, which changes no node, and reads the same
graph.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from ....core.records import DEAD, IN_PLACE, MAC, Entry, Ledger, Op, Sighting
from ...pytorch.model import TorchModel, versions
from ...shared.distribution import version_of
from ...shared.refusal import CannotCount
from ..fvcore.capture import OURS, Scopes, compare_untold, traceable_on
from ..fvcore.graph_nodes import dropped_ops, is_seen, node_record
from ..fvcore.is_tracing import TracingQuestions
from ..fvcore.limits import limits
from ..limits import Limit, explain_limits
from ..patched_functions.capture import replace_attributes

LIMITS = (
    Limit(
        ("torchprofile/ir.py:__post_init__",),
        "it stops at a tensor without a type (torchprofile/ir.py:25), such as the weights that nn.MultiheadAttention leaves "
        "out: it counts such a model where gradients are on, outside of torch.no_grad",
    ),
    Limit(
        ("torchprofile/handlers.py:_scaled_dot_product_attention",),
        "it stops at attention whose keys have other heads or another batch than its queries (torchprofile/handlers.py:171): "
        "leave torchprofile out",
    ),
)
"""What torchprofile cannot count, besides what no TorchScript trace shows."""


class Layers(Scopes):
    """A scope of its own in the trace for every module."""

    def __init__(self, root: torch.nn.Module) -> None:
        super().__init__(root)
        self.hidden = set(self.modules)


def layer_of(scope: str) -> str:
    """The module of a node, by its innermost scope; the root for what runs around the model."""
    innermost = scope.rpartition("/")[2]
    return innermost[len(OURS) :] if innermost.startswith(OURS) else ""


def is_known(node: Any) -> bool:
    """Whether torchprofile's table has the node's operator, with a handler or as one that counts 0."""
    return node.kind().lower() in import_module("torchprofile.handlers").HANDLER_MAP


class Profiled:
    """profile_macs on a fresh module: its number for each node, and the graph that it read."""

    def __init__(self, model: TorchModel, answer: bool | None = None) -> None:
        self.module = model.build(model.device)
        inputs = tuple(model.example(model.device))
        self.scopes = Layers(self.module)
        with (
            torch.no_grad(),
            traceable_on(model.device),
            TracingQuestions(answer) as asked,
            _keep_graph() as kept,
            self.scopes,
        ):
            counts = _profile(self.module, inputs)
        self.asked = asked.times
        self.counts = [(node, counts.get(own)) for node, own in zip(kept[0].nodes(), kept[1].nodes, strict=True)]
        self.nodes = [(node, count) for node, count in self.counts if is_seen(node)]

    def ops(self) -> list[Op]:
        """The nodes as records. Its table has a few operators in place; one that it lacks there is marked, and has no rule."""
        ops = [node_record(node, f"node{at}", layer_of(node.scopeName())) for at, (node, _) in enumerate(self.nodes)]
        for op, (node, _) in zip(ops, self.nodes, strict=True):
            if node.kind().endswith("_") and not is_known(node):
                op.attrs[IN_PLACE] = True
        return ops


def _profile(module: torch.nn.Module, inputs: tuple[Any, ...]) -> Any:
    from torchprofile import profile_macs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of each operator without a handler, which the ledger names
        return profile_macs(module, inputs, reduction=None)


@contextmanager
def _keep_graph() -> Iterator[list[Any]]:
    """Within this, the graph that PyTorch makes for torchprofile and torchprofile's own records of it are kept, in this order."""
    profile = import_module("torchprofile.profile")
    kept: list[Any] = []
    make, read = torch.jit._get_trace_graph, profile.trace

    def make_graph(*args: Any, **kwargs: Any) -> Any:
        graph, outputs = make(*args, **kwargs)
        kept.append(graph)
        return graph, outputs

    def records(*args: Any, **kwargs: Any) -> Any:
        kept.append(read(*args, **kwargs))
        return kept[-1]

    with replace_attributes(torch.jit, _get_trace_graph=make_graph), replace_attributes(profile, trace=records):
        yield kept


def _untold(model: TorchModel) -> list[Op] | None:
    """The nodes of a fresh module whose code is told that nothing is traced; None where there is no graph then."""
    try:
        return Profiled(model, False).ops()
    except Exception:  # their code may know why it asks
        return None


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run profile_macs on a fresh module (eval, no_grad) on ``model.device``."""
    import torchprofile

    with explain_limits((*LIMITS, *limits(counter)), lambda: _profile(torch.nn.Linear(1, 1), (torch.zeros(1, 1),))):
        profiled = Profiled(model)
    values: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str]] = Counter()
    unsupported: Counter[str] = Counter()
    sightings = []
    ops = profiled.ops()
    for op, (node, count) in zip(ops, profiled.nodes, strict=True):
        key = (op.layer, node.kind())
        calls[key] += 1
        values[key] += count or 0
        sightings.append(Sighting(op, "{}|{}".format(*key)))
        if not is_known(node):
            unsupported[node.kind()] += 1
    if profiled.asked:
        sightings = compare_untold(sightings, _untold(model))
    made = [op._replace(layer=layer_of(scope)) for scope, op in profiled.scopes.made]
    for at, op in enumerate(dropped_ops(made, ops)):
        sightings.append(Sighting(op._replace(id=f"dropped{at}"), f"{op.layer}|{op.op}|{DEAD}", DEAD))
    entries = [Entry("{}|{}".format(*key), *key, amount, calls[key]) for key, amount in values.items() if amount]
    total = sum(count or 0 for _, count in profiled.counts)
    if total != sum(entry.value for entry in entries):
        raise CannotCount(f"{counter} counts {total} in all, and the operators that it counts are not all known here")
    numbers = dict(versions(profiled.module), torchprofile=version_of("torchprofile", torchprofile))
    return Ledger(
        counter, "torch", MAC, model.device, numbers, total, tuple(entries), tuple(sightings), dict(unsupported)
    )
