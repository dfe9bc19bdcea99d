"""Bridge from a ledger of inductor's count_flops_fx to the PyTorch trace, product by product.

Inductor's graph has other ops than the model ran: it decomposes elementwise work, and fuses attention.  It counts products,
convolutions and attention, and such a node has as many multiply-adds as its op in the trace.  So an op of the trace accounts for
nodes of its module that have its multiply-adds, and a fused op, if there are none, for all that are left there.  A node that no
op of the trace accounts for stays in the residual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ....work import ZERO, Work, sum_works
from ..bridge import (
    Bridge,
    Item,
    View,
    known_work,
    make_item,
    modules_around,
    other_ops,
    unknown_gap,
    unknown_of,
    unmet,
)
from . import NAMELESS
from .rules import BOOK

FUSED = (
    "aten.scaled_dot_product_attention",
    "aten._transformer_encoder_layer_fwd",
    "aten._native_multi_head_attention",
)
"""Ops of the trace that may be several nodes of a graph, and nodes that may be several ops of the trace."""
KERNELS = ("aten._scaled_dot_product_flash_attention_for_cpu",)
"""Ops that attention is in inductor's graph, and that flop_counter's registry lacks before PyTorch 2.15. Passes of inductor's put
one in the place of products and a softmax, and name no module."""


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of the trace's ops that have nodes, of those that have none, and of nodes that are left."""
    return Bridge(tuple(_Matching(view).items(trace)))


def _macs(op: Op, view: View) -> Work:
    return BOOK.counts(op, view.versions)


@dataclass(slots=True)
class _Matching:
    """A view, and its counted nodes by module that no op of the trace accounts for yet."""

    view: View
    left: dict[str, list[Sighting]] = field(default_factory=dict)
    named: dict[str, dict[str, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for sighting in self.view.sightings:
            self.named.setdefault(sighting.op.layer, {})[sighting.op.op] = None
            if sighting.op.inputs and _macs(sighting.op, self.view):
                self.left.setdefault(sighting.op.layer, []).append(sighting)

    def items(self, trace: Trace) -> list[Item]:
        items: list[Item] = []
        others: list[tuple[Op, Work]] = []
        for op in trace.ops:
            work = known_work(op)
            nodes = self._alike(op, work.mac) if work is not None and work.mac else []
            if nodes:
                assert work is not None
                items.append(self._of_nodes(op, work, nodes))
            elif work is None or work or unknown_of([op]):
                others.append((op, work or ZERO))
        for op, work in others:
            nodes = self._within(op.layer, work.mac * op.calls) if op.op in FUSED and work.mac else []
            items += self._of_parts(op, work, nodes) if nodes else [self._unmet(op, work)]
        return items + [self._extra(s) for s in (s for each in self.left.values() for s in each)]

    def _alike(self, op: Op, macs: int) -> list[Sighting]:
        """Nodes of the op's module with its multiply-adds, of one entry and no more than its calls: they are taken. If there are
        none, those that name no module."""
        alike = [s for s in self.left.get(op.layer, []) if _macs(s.op, self.view).mac == macs]
        if not alike:
            alike = [s for s in self.left.get("", []) if NAMELESS in s.op.attrs and _macs(s.op, self.view).mac == macs]
        taken = [s for s in alike if s.entry == alike[0].entry][: op.calls]
        self._take(taken)
        return taken

    def _within(self, layer: str, macs: int) -> list[Sighting]:
        """All nodes that are left in this module and below; none if they have more multiply-adds than these."""
        below = f"{layer}." if layer else ""
        found = [s for path, each in self.left.items() if path == layer or path.startswith(below) for s in each]
        if sum(_macs(s.op, self.view).mac for s in found) > macs:
            return []
        self._take(found)
        return found

    def _take(self, taken: Iterable[Sighting]) -> None:
        gone = {s.op.id for s in taken}
        self.left = {layer: [s for s in each if s.op.id not in gone] for layer, each in self.left.items()}

    def _of_nodes(self, op: Op, work: Work, nodes: list[Sighting]) -> Item:
        """An op of which each call is one node."""
        return make_item(
            nodes[0].op,
            BOOK.of(nodes[0].op, self.view.versions),
            layer=op.layer,
            op=op.op,
            counted=_macs(nodes[0].op, self.view),
            seen=len(nodes),
            ran=work,
            times=op.calls,
            repeat=Cause.CALL_NOT_SEEN,
            entry=nodes[0].entry,
            ops=(op.id,),
            unknown=unknown_of([op]),
        )

    def _of_parts(self, op: Op, work: Work, nodes: list[Sighting]) -> list[Item]:
        """A fused op, of which inductor's graph has these parts: an item for each entry; the first has what ran."""
        by_entry: dict[str, list[Sighting]] = {}
        for node in nodes:
            by_entry.setdefault(node.entry, []).append(node)
        whole = sum(_macs(s.op, self.view).mac for s in nodes) == work.mac * op.calls
        reason = f"inductor's graph has parts of {op.op}, and others of which flop_counter's registry has none"
        items: list[Item] = []
        for entry, each in by_entry.items():
            item = make_item(
                op,
                BOOK.of(each[0].op, self.view.versions),
                met=(s.op for s in each),
                counted=sum_works(_macs(s.op, self.view) for s in each),
                seen=1,
                cause=None if whole else Cause.OP_NOT_COUNTED,
                repeat=Cause.FORMULA_DIFFERS,
                entry=entry,
            )
            if not items:
                item = replace(item, ran=work * op.calls, times=1, ops=(op.id,), unknown=unknown_of([op]))
            if not whole:
                item = replace(item, formula=reason)
            items.append(item)
        return items

    def _unmet(self, op: Op, work: Work) -> Item:
        """An op of which inductor's graphs have no node that is counted."""
        gap = unknown_gap([op])
        fused = self._find_fused_op(op)
        if fused and (work.mac or op.layer not in self.named):
            made = (
                f"no node of {op.op} is counted; inductor's graph has {fused}, which is not in flop_counter's registry"
            )
            return unmet(op, work, Cause.OP_NOT_COUNTED, made, gap=gap)
        if op.layer not in self.named:
            reason = f"{op.op} ran outside of the graphs that inductor was given: they have no node of this module"
            return unmet(op, work, Cause.CALL_NOT_SEEN, reason, gap=gap)
        made = (
            "inductor's graph has other ops in its place" if work.mac else f"{op.op} is not in flop_counter's registry"
        )
        return unmet(op, work, Cause.OP_NOT_COUNTED, made, gap=gap)

    def _find_fused_op(self, op: Op) -> str:
        """A node's op without a formula that may be this op: in its module, in one around, or attention that names no module."""
        found = (name for path in modules_around(op.layer) for name in self.named.get(path, ()) if name in FUSED)
        attention = (name for path in (op.layer, "") for name in self.named.get(path, ()) if name in KERNELS)
        return next(found, "") or (next(attention, "") if op.op in FUSED or op.op == "aten.bmm" else "")

    def _extra(self, node: Sighting) -> Item:
        """A node that no op of the trace accounts for."""
        counted, difference = _macs(node.op, self.view), f"{node.op.op} is in inductor's graph alone"
        rule = BOOK.of(node.op, self.view.versions)
        gap = other_ops(self.view.counter, node.op.layer, difference)
        return make_item(node.op, rule, counted=counted, seen=1, entry=node.entry, gap=gap)
