"""The products of one trace beside the parameters of one model: what the bridges of all formulas read, found once for all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ....core.causes import Cause
from ....core.records import FORWARD, Op, Trace
from ....work import Known, Work, known_part, sum_works
from ..bridge import Item, by_layer, unmet
from .parameter_products import (
    Facts,
    experts_that_ran,
    in_indexer,
    key_of,
    products_by_parameter,
    scopes_of,
    was_read,
)
from .terms import ATTENTION, INDEXER, ROUTER, SCORES, WEIGHTS

PRODUCTS_ONLY = "a formula counts products only"


class TraceProducts:
    """Attributes:
    weights: Every parameter of the model, with its facts.
    layers: The paths of the model's layers.
    known: The work of one call of each op, by the op's id.
    products: The ops that have multiply-adds.
    layer: The layer of each product, '' outside of them.
    inside: The products of each layer.
    tied: The products that read each parameter, by its name.
    read: The ids of the products that read one.
    routers: Those that read a router's.
    frozen: Those that read one that is not trained.
    balanced_experts: The parameters of experts that share all tokens as the configuration states.
    partial_experts: Those of experts used a constant number of times per token that nothing states.
    pictures: Whether the model reads images alone.
    softmax: The modules inside the layers in which a softmax ran; all of them if the model reads images alone.
    rest: Each op with the items of one that is no product, which are alike for all formulas; None for a product.
    """

    def __init__(self, trace: Trace, weights: list[Facts], layers: list[str]) -> None:
        self.trace, self.weights, self.layers = trace, weights, layers
        self.known: dict[str, Known] = {op.id: known_part(op) for op in trace.ops}
        self.products = [op for op in trace.ops if self.known[op.id].work.mac]
        self.layer = {op.id: self._find_layer(op) for op in self.products}
        self.inside: dict[str, list[Op]] = {}
        for op in self.products:
            self.inside.setdefault(self.layer[op.id], []).append(op)
        self.tied = products_by_parameter(weights, self.products)
        self.read = {op.id for ops in self.tied.values() for op in ops}
        routers = [w for w in weights if w["E"] and len(w["shape"]) == 2 and w["E"] in w["shape"]]
        self.routers = {op.id for w in routers for op in self.tied[w["name"]]}
        self.frozen = {op.id for w in weights if not w["trainable"] for op in self.tied[w["name"]]}
        self.balanced_experts, self.partial_experts = experts_that_ran(weights, self.tied)
        self.pictures = any(weight.get("pictures") for weight in weights)
        softmaxes = [op for op in trace.ops if "softmax" in op.op and op.layer]
        self.softmax = {op.layer for op in softmaxes if self.pictures or self._find_layer(op)}  # a head may have one
        self.rest = [(op, None if op.id in self.layer else self._list_rest(op)) for op in trace.ops]

    @cached_property
    def ran(self) -> dict[str, list[Op]]:
        """The ops of each module."""
        return by_layer(self.trace.ops)

    @cached_property
    def unread(self) -> set[str]:
        """The parameters that no op of the forward pass reads, by name, where the trace shows as much: no op ran in their module,
        each op on a tensor of their shape ran where another parameter of that shape is, and each product that is not one of
        attention's on batches reads a known parameter. A part of a parameter that is read elsewhere would be a product that reads
        none of them, so one of those leaves all open. Few formulas meet such a parameter."""
        ops = [op for op in self.trace.ops if op.phase == FORWARD]
        for op in ops:
            matrix = any(len(tensor.shape or ()) < 3 for tensor in op.inputs)
            if op.id in self.layer and op.id not in self.read and (matrix or not self.attends(op)):
                return set()
        ran = by_layer(ops)
        elsewhere: dict[tuple[int, ...], set[str]] = {}
        for op in ops:
            for tensor in op.inputs:
                elsewhere.setdefault(key_of(tensor.shape), set()).add(op.layer)
        shapes = {weight["name"]: key_of(tuple(weight["shape"])) for weight in self.weights}
        for weight in self.weights:
            if was_read(weight, ran):
                elsewhere[shapes[weight["name"]]].difference_update(scopes_of(weight))
        silent = [weight for weight in self.weights if not any(ran.get(owner) for owner in weight["owners"])]
        return {weight["name"] for weight in silent if not elsewhere.get(shapes[weight["name"]])}

    def attends(self, op: Op) -> bool:
        """Whether a product is one of attention: the op says so, or the module in which it ran takes a softmax."""
        near = (layer == op.layer or layer.startswith(f"{op.layer}.") for layer in self.softmax)
        return "attention" in op.op or any(near)

    def _find_layer(self, op: Op) -> str:
        """The layer of the network in which an op ran; '' for one outside of them."""
        return next((layer for layer in self.layers if f"{op.layer}.".startswith(f"{layer}.")), "")

    def kind_of(self, op: Op) -> str:
        """The kind of the terms that stand for a product of a layer."""
        if in_indexer(op):
            return INDEXER if op.id in self.read else SCORES
        if op.id not in self.read:
            return ATTENTION
        return ROUTER if op.id in self.routers else WEIGHTS

    def sum(self, ops: Iterable[Op]) -> Work:
        """The known work of all calls of these ops."""
        return sum_works(self.known[op.id].work * op.calls for op in ops)

    def unknown(self, ops: Iterable[Op]) -> frozenset[str]:
        """The components that are unknown in the work of any of these ops."""
        return frozenset[str]().union(*(self.known[op.id].unknown for op in ops))

    def forward(self, ops: Iterable[Op]) -> int:
        """The multiply-adds of the forward pass."""
        return int(self.sum(op for op in ops if op.phase == FORWARD).mac)

    def _list_rest(self, op: Op) -> list[Item]:
        work, unknown, _ = self.known[op.id]
        return [unmet(op, work, Cause.OP_NOT_COUNTED, PRODUCTS_ONLY)] if work or unknown else []


_read: list[TraceProducts] = []


def read_trace(trace: Trace, weights: list[Facts], layers: list[str]) -> TraceProducts:
    """What the bridges read of this trace, kept until another one is asked for: formulas follow one another on one trace."""
    weights = [{name: fact for name, fact in weight.items() if name != "passes"} for weight in weights]
    if not _read or _read[0].trace is not trace or _read[0].weights != weights or _read[0].layers != layers:
        _read[:] = [TraceProducts(trace, weights, layers)]
    return _read[0]
