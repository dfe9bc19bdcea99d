"""Readings of a trace for published tables of model libraries: without fused attention, with norms, without classifier.

They are the third part of the list in grammar.py. A table of a model library is made by a counter that sees only part of a call
(it misses fused attention, or products between activations), or that adds norms to the products, or of a model without its
classifier. Here each is a reading of the trace, exact in its products; that of fvcore's norms takes the rules that fvcore's own
ledgers are held to (adapters/counters/fvcore/rules.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...adapters.counters.fvcore.rules import BOOK
from ...core.causes import Cause
from ...core.number_format import number
from ...core.records import FLOP, FORWARD, MAC, Op
from ...work import Work
from .readings import DERIVED, PART, Candidate, derive, list_names

ATTENTION = "aten.scaled_dot_product_attention"
"""One op of a trace, whatever kernel ran."""
BETWEEN = frozenset(["aten.bmm", "aten.baddbmm"])
"""Products of two activations in batches: what a model's own attention runs. A layer's weight has no axis for a batch."""
FVCORE = {BOOK.package: "0.1.5.post20221221"}
SEEN_AS = {
    "aten.native_layer_norm": "aten.layer_norm",
    "aten.native_group_norm": "aten.group_norm",
    "aten.native_batch_norm": "aten.batch_norm",
    "aten._native_batch_norm_legit": "aten.batch_norm",
    "aten._native_batch_norm_legit_no_training": "aten.batch_norm",
    "aten.cudnn_batch_norm": "aten.batch_norm",
    "aten._adaptive_avg_pool2d": "aten.adaptive_avg_pool2d",
    "aten.grid_sampler_2d": "aten.grid_sampler",
    "aten.upsample_nearest2d": "aten.upsample_nearest2d",
    "aten.upsample_bilinear2d": "aten.upsample_bilinear2d",
}
"""The functions in a graph of torch.jit.trace, which fvcore counts, by the operators that they dispatch to."""
POOLED = {"dim": [-1, -2], "keepdim": True}
"""How adaptive_avg_pool2d calls aten.mean for an output of 1 × 1 (ATen native/AdaptiveAveragePooling.cpp)."""


def of_tables(known: Sequence[tuple[Op, Work]]) -> Iterator[Candidate]:
    """The readings of the calls of a whole forward pass, each with its work."""
    products = [(op, work.mac * op.calls) for op, work in known if work.mac]
    macs = sum(count for _, count in products)
    if not macs or any(op.phase != FORWARD for op, _ in known):
        return
    fused = [(op, count) for op, count in products if op.op == ATTENTION]
    between = [(op, count) for op, count in products if op.op in BETWEEN]
    norms = sum(_beside(op, work) * op.calls for op, work in known)
    yield from _with_norms(macs, fused, norms)
    if fused:
        lost = sum(count for _, count in fused)
        what = "the products that ran without those of fused attention"
        yield from _left_out(macs, lost, what, Cause.ATTENTION_LEFT_OUT, fused)
    if between:
        lost = sum(count for _, count in (*fused, *between))
        what = "the products of weights that ran, without those of activations with each other"
        yield from _left_out(macs, lost, what, Cause.ATTENTION_LEFT_OUT, (*fused, *between))
    last, head = products[-1]
    if last.op in ("aten.addmm", "aten.mm") and head < macs:
        what = "the products that ran without those of the last layer"
        yield from _left_out(macs, head, what, Cause.HEAD_LEFT_OUT, [(last, head)])


def _with_norms(macs: int, fused: Sequence[tuple[Op, int]], norms: int) -> Iterator[Candidate]:
    """What fvcore adds up, with fused attention, which it has no handle for, and without."""
    if norms:
        what = "the products that ran, and norms and pools as fvcore counts them"
        yield derive(macs + norms, PART, MAC, what, f"{number(macs)} + {number(norms)}", family=BOOK.name)
    if not fused:
        return
    lost = sum(count for _, count in fused)
    terms = f"{number(macs)} − {number(lost)}" + (f" + {number(norms)}" if norms else "")
    what = f"the products that ran without those of fused attention, {'and norms and pools ' * bool(norms)}as fvcore counts them"
    yield derive(macs - lost + norms, PART, MAC, what, terms, _note(Cause.OP_NOT_COUNTED, fused), BOOK.name)


def _left_out(macs: int, lost: int, what: str, cause: Cause, ops: Sequence[tuple[Op, int]]) -> Iterator[Candidate]:
    """The rest, and twice the rest."""
    rest = macs - lost
    if not rest:
        return
    note, terms = _note(cause, ops), f"{number(macs)} − {number(lost)}"
    yield derive(rest, PART, MAC, what, terms, note)
    yield derive(2 * rest, DERIVED, FLOP, f"{what}, doubled", f"2 × ({terms})", note)


def _note(cause: Cause, ops: Sequence[tuple[Op, int]]) -> str:
    layers = list(dict.fromkeys(op.layer for op, _ in ops))
    are = "layers" if len(layers) > 1 else "layer"
    lost = sum(count for _, count in ops)
    return f"{cause.value}: {number(lost)} products of {number(len(layers))} {are} are not in it: {list_names(layers)}."


def _beside(op: Op, work: Work) -> int:
    """What fvcore counts of one call beside products: elementwise work at 1."""
    name = SEEN_AS.get(op.op)
    if op.op == "aten.mean" and all(op.attrs.get(key) == value for key, value in POOLED.items()):
        name = "aten.adaptive_avg_pool2d"
    rule = BOOK.find(name, FVCORE) if name and not work.mac else None
    if rule is None:
        return 0
    counted = rule.compute(op)
    return counted.mul + counted.add
