"""Recomputes an adjustment's amount from its evidence alone, to check a line of a statement (``reconcile counter conform``)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from ..adapters.counters.bridge import Item, known_work, make_item, unknown_of
from ..adapters.counters.rulebook import NotCounted, RuleBook
from ..core.causes import Cause
from ..core.conventions import Convention
from ..core.records import Op
from ..core.registry import frameworks, known_counters
from ..core.results import Adjustment, Evidence
from ..engine.booking import book
from ..work import ZERO, Work, sum_works, work_of


def recompute(
    line: Adjustment,
    ops: Mapping[str, Op],
    versions: Mapping[str, Mapping[str, str]],
    convention: Convention,
) -> int:
    """The amount of an adjustment, in FLOPs under the convention.

    ``ops``: trace ops by ``framework:id``; ``versions``: package versions by counter (they select the rules).
    Raises KeyError if the evidence names an op or counter that does not exist.
    """
    return sum(_evidence_amount(line.cause, proof, ops, versions, convention) for proof in line.evidence)


def _evidence_amount(
    cause: Cause,
    proof: Evidence,
    ops: Mapping[str, Op],
    versions: Mapping[str, Mapping[str, str]],
    convention: Convention,
) -> int:
    if proof.side == "between":
        return _trace_difference(proof, ops, convention)
    counter = known_counters()[proof.counter]
    item = _rebuild_item(proof, ops, versions[proof.counter])
    amount = sum(b.amount for b in book(item, counter.unit, convention) if b.cause is cause)
    return amount if proof.side == "from" else -amount


def _rebuild_item(proof: Evidence, ops: Mapping[str, Op], versions: Mapping[str, str]) -> Item:
    counter = known_counters()[proof.counter]
    module = importlib.import_module(f"{counter.module}.rules")
    counted = _sum_rules(module.BOOK, proof, versions)
    ran: list[Op] = []
    if proof.times:
        ran = [ops[f"{counter.framework}:{id}"] for id in proof.ops] or list(proof.seen)
    total = sum_works(_find_known_work(op) * op.calls for op in ran) * (1 if proof.ops else proof.times)
    if proof.only:
        total = total.only(proof.only)
    return make_item(
        None,
        None,
        layer=proof.layer,
        op="",
        counted=counted,
        seen=proof.seen_times,
        ran=total // proof.times if proof.times else ZERO,
        times=proof.times,
        cause=proof.cause,
        repeat=proof.repeat,
        unknown=unknown_of(ran),
    )


def _sum_rules(book_: RuleBook, proof: Evidence, versions: Mapping[str, str]) -> Work:
    total = ZERO
    for op in proof.seen:
        rule = book_.of(op, versions)
        if rule is not None:
            try:
                total = total + rule.compute(op) * op.calls
            except NotCounted:
                continue
    return total


def _find_known_work(op: Op) -> Work:
    """The known part of one call's work; raises UnknownWork if there is none."""
    work = known_work(op)
    return work_of(op) if work is None else work


def _trace_difference(proof: Evidence, ops: Mapping[str, Op], convention: Convention) -> int:
    """Between traces: the component's sum over the second trace's ops minus its sum over the first's, in the registry's order."""
    present = {id.partition(":")[0] for id in ops}
    first = next(name for name in frameworks() if name in present)
    delta = 0
    for id in proof.ops:
        count = getattr(_find_known_work(ops[id]) * ops[id].calls, proof.component)
        delta += -count if id.startswith(f"{first}:") else count
    return convention.weight(proof.component) * delta
