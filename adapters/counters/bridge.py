"""Items, of which each counter's bridge from ledger to trace consists, and what all bridges make them with.

A bridge gets a ``View``, a ledger without its values, so no explanation can depend on a reported number. ``OpCounter`` asks a
counter's rules what it counts of an op; other functions give the work of the trace's ops, and sentences.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.causes import Cause
from ...core.records import Ledger, Op, Sighting
from ...work import COMPONENTS, ZERO, Known, Work, is_integer_op, is_ours, known_part, signature, sum_works
from .rulebook import NotCounted, Rule, RuleBook, WhyNot, apply


@dataclass(frozen=True, slots=True)
class View:
    """A ledger without its values: everything that a bridge may know about it."""

    counter: str
    framework: str
    unit: str
    versions: Mapping[str, str]
    sightings: tuple[Sighting, ...]
    notes: tuple[str, ...]


def view(ledger: Ledger) -> View:
    """A ledger without its reported values."""
    return View(ledger.counter, ledger.framework, ledger.unit, ledger.versions, ledger.sightings, ledger.notes)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a counter counted, or failed to, beside the work that ran: ``counted`` x ``seen`` against ``ran`` x ``times``.

    Attributes:
        entry: The id of the ledger entry that it feeds; '' for none.
        layer: The framework's path of the layer in which the ops ran.
        op: The name under which it stands in a line.
        counted: The components that the counter includes, per execution.
        seen: How often it includes them.
        ran: The components that ran, per execution.
        times: How often they ran.
        cause: Set if the whole item has one cause: counted but never run (dead-op, ...), or run but not counted
            (op-not-counted, ...). None otherwise.
        repeat: Why ``seen`` and ``times`` differ; None leaves that to the booking.
        rule: The id of the rule that says what is counted; '' for none.
        source: The rule's place in the counter's source; '' without a rule.
        formula: The rule's formula in print, or, without a rule, the reason why the item stands here; '' for neither.
        sightings: The ops as the counter saw them, with as ``calls`` the calls that make up one execution.
        ops: Ids of trace ops; () if the work is that of the sightings themselves.
        gap: Why nothing can be booked for it: its whole difference stays in the residual. '' otherwise.
        only: The components of ``ran`` that it is about; () for all.
        unknown: The components of ``ran`` whose amount is unknown: nothing is booked for them.
    """

    entry: str = ""
    layer: str = ""
    op: str = ""
    counted: Work = ZERO
    seen: int = 0
    ran: Work = ZERO
    times: int = 0
    cause: Cause | None = None
    repeat: Cause | None = None
    rule: str = ""
    source: str = ""
    formula: str = ""
    sightings: tuple[Op, ...] = ()
    ops: tuple[str, ...] = ()
    gap: str = ""
    only: tuple[str, ...] = ()
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bridge:
    """A ledger explained item by item."""

    items: tuple[Item, ...]


def known_work(op: Op) -> Work | None:
    """Work of one call, or None if no component of it is known (the trace is incomplete there and says so).

    Of work that is known in part, the unknown components are 0 here, and ``unknown_of`` names them.
    """
    part = known_part(op)
    return None if len(part.unknown) == len(COMPONENTS) else part.work


def by_layer(ops: Iterable[Op]) -> dict[str, list[Op]]:
    """The ops of each layer, in order."""
    layers: dict[str, list[Op]] = {}
    for op in ops:
        layers.setdefault(op.layer, []).append(op)
    return layers


def sum_of(ops: Iterable[Op]) -> Work:
    """The known work of all calls of these ops."""
    return sum_works((known_work(op) or ZERO) * op.calls for op in ops)


def unknown_of(ops: Iterable[Op]) -> frozenset[str]:
    """The components that are unknown in the work of any of these ops."""
    return frozenset[str]().union(*(known_part(op).unknown for op in ops))


def unknown_gap(ops: Iterable[Op]) -> str:
    """The gap of ops of one of which no component of the work is known; '' if there is no such op."""
    unknown = next((op.op for op in ops if known_work(op) is None), "")
    return f"the work of {unknown} is unknown" if unknown else ""


def show_components(work: Work) -> str:
    """A difference of work in a sentence: ``mac +6, add -2``."""
    return ", ".join(f"{name} {count:+,}" for name, count in work.items() if count)


def modules_around(layer: str) -> list[str]:
    """The path of a module and those of the modules around it, the innermost first; the last is the model, ''."""
    parts = layer.split(".") if layer else []
    return [".".join(parts[:end]) for end in range(len(parts), -1, -1)]


def other_ops(counter: str, layer: str, difference: str) -> str:
    """The reason why a module cannot be booked: other ops ran there under the counter than in the trace."""
    where = f"at {layer}" if layer else "at the root"
    return (
        f"the model ran other ops here under {counter} than when it was traced: {where}, {difference}. If the model keeps state "
        f"between calls (a cache), run this counter alone with --counter {counter}; if it has a random generator of its own, seed"
        " that; if it does neither, the two are matched wrongly here: report it with the JSON file"
    )


def make_item(
    sighting: Op | None, rule: Rule | None, *, met: Iterable[Op] | None = None, reason: str = "", **fields: Any
) -> Item:
    """An item with these fields, of one sighting, at its layer and under its name unless others are given; ``met`` are the ops
    that the counter saw if they are not one call of it. The rule's id, source and formula go along as evidence, without a rule
    the ``reason``."""
    if met is None:
        met = (sighting if sighting.calls == 1 else sighting._replace(calls=1),) if sighting else ()
    place = {"layer": sighting.layer, "op": sighting.op} if sighting else {}
    cited = {"rule": rule.id, "source": rule.source, "formula": rule.formula} if rule else {"formula": reason}
    return Item(**{**place, **cited, **fields}, sightings=tuple(met))


def unmet(op: Op, ran: Work, cause: Cause | None, reason: str, *, only: tuple[str, ...] = (), gap: str = "") -> Item:
    """An item of a trace op for which the counter has no sighting; ``ran`` is the part of its work that the item covers."""
    return make_item(
        op, None, met=(), ran=ran, times=op.calls, cause=cause, ops=(op.id,), reason=reason, only=only, gap=gap,
        unknown=unknown_of([op]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """What a counter's rules say of an op, besides its work: the same for all ops that differ only in their place."""

    rule: Rule | None
    counted: Work
    missed: NotCounted | None
    part: Known
    work: Work | None
    cause: Cause | None


@dataclass(frozen=True, slots=True)
class OpCounter:
    """A counter's rules in its version, and the reason why it does not count an op without a rule."""

    name: str
    book: RuleBook
    versions: Mapping[str, str]
    why_not: WhyNot
    _judged: dict[Hashable, Judged] = field(default_factory=dict)

    def rule(self, op: Op) -> Rule | None:
        return self.judge_op(op).rule

    def judge_op(self, op: Op) -> Judged:
        """What the rules say of this op; no rule and no reason reads an op's place (its id, layer or phase)."""
        if not is_ours(op.op):
            return self._judge(op)
        key = (signature(op), op.calls)
        judged = self._judged.get(key)
        if judged is None:
            judged = self._judged[key] = self._judge(op)
        return judged

    def _judge(self, op: Op) -> Judged:
        rule = self.book.of(op, self.versions)
        counted, missed = apply(rule, op, self.why_not)
        cause = missed.cause if missed else None
        if counted and is_integer_op(op):
            cause = Cause.INTEGER_OP
        return Judged(rule, counted, missed, known_part(op), known_work(op), cause)

    def includes(self, op: Op) -> Work:
        """The work that it would count for one call of this op."""
        return self.judge_op(op).counted

    def inside(self, holder: Op) -> str:
        """The reason why it does not count the ops that run inside this one."""
        return f"ran inside of {holder.op}: {self.why_not(holder)}"
