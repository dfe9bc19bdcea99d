"""Turns the traces and ledgers of a run into its ``Answer``, under one convention or under each, and decides its exit code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..align.alignment import Alignment
from ..core.causes import State
from ..core.conventions import Convention, Conventions
from ..core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from ..core.framework import pause_garbage_collection
from ..core.number_format import format_count
from ..core.records import (
    CALLED_WITH,
    DECODE,
    FORWARD,
    INFERENCE,
    LOSS,
    OPTIMIZER,
    OTHER,
    PHASES,
    PREFILL,
    TRAINING,
    Layer,
    Ledger,
    Trace,
)
from ..core.results import LedgerResult, Match
from .answer import Answer
from .reconcile import Books, Facts, Missing, books_of, gather_facts

NOT_INSTALLED_NOTE = "not installed, so it was not run beside the others: %s"
"""Note of a trace whose framework has more counters than could run."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The workers' results: the pair's description, traces and ledgers, or why one is missing."""

    meta: Mapping[str, Any]
    traces: tuple[Trace | Missing, ...]
    ledgers: tuple[Ledger | Missing, ...]

    @property
    def declared_layers(self) -> Alignment:
        """Which layers belong together, as the pair declares it."""
        return Alignment(list(map(Layer.from_list, self.meta["layers"])))


def settle_each(collected: Collected, conventions: Conventions, mapping: Path | None = None) -> Answer:
    """As ``settle``, with the results under the other conventions in ``others``."""
    chosen, *others = _settle_conventions(collected, conventions, mapping, list(conventions.every.values()))
    return replace(chosen, others=tuple(others))


def settle(collected: Collected, conventions: Conventions, mapping: Path | None = None) -> Answer:
    """The answer under the chosen convention alone. Raises UsageError for a mapping file that cannot be used."""
    return _settle_conventions(collected, conventions, mapping)[0]


@pause_garbage_collection()
def _settle_conventions(
    collected: Collected, conventions: Conventions, mapping: Path | None, others: Sequence[Convention] = ()
) -> list[Answer]:
    """The answers under the chosen convention and under each of the others."""
    align, rows = _align_traces(collected, mapping)
    found = gather_facts(collected.traces, collected.ledgers, align)
    asked = [conventions.chosen, *(c for c in others if c.name != conventions.chosen.name)]
    return [_make_answer(collected, found, rows, replace(conventions, chosen=convention)) for convention in asked]


def without_absent(collected: Collected, asked: Collection[str]) -> Collected:
    """The results without counters that were neither requested nor installed: a note of their trace names them."""
    traced = {t.framework for t in collected.traces if isinstance(t, Trace)}
    gone = [
        x
        for x in collected.ledgers
        if isinstance(x, Missing) and x.absent and x.framework in traced and x.name not in asked
    ]
    if not gone:
        return collected
    traces: list[Trace | Missing] = []
    for trace in collected.traces:
        names = dict.fromkeys(x.absent for x in gone if x.framework == trace.framework)
        if names and isinstance(trace, Trace):
            trace = trace._replace(notes=(*trace.notes, NOT_INSTALLED_NOTE % ", ".join(names)))
        traces.append(trace)
    return replace(collected, traces=tuple(traces), ledgers=tuple(x for x in collected.ledgers if x not in gone))


def packages_not_installed(note: str) -> list[str]:
    """The packages that a note by ``without_absent`` names as not installed; none for any other note."""
    before, _, names = note.partition(NOT_INSTALLED_NOTE.removesuffix("%s"))
    return [] if before or not names else names.split(", ")


def _align_traces(collected: Collected, mapping: Path | None) -> tuple[Alignment, tuple[Match, ...]]:
    """How layers become rows: this depends on no convention, and of a training step only on the forward pass."""
    if collected.meta["layers"] and mapping is None:
        return collected.declared_layers, ()
    from ..align.automatic import alignment

    declared = list(map(Layer.from_list, collected.meta["layers"]))
    return alignment(declared, [_keep_call(trace) for trace in collected.traces if isinstance(trace, Trace)], mapping)


def _keep_call(trace: Trace) -> Trace:
    """The trace of the model's call alone: of a training step, the forward pass."""
    if all(op.phase != LOSS for op in trace.ops):
        return trace
    ops = tuple(op for op in trace.ops if op.phase == FORWARD)
    return trace._replace(ops=ops, layers=tuple(dict.fromkeys(op.layer for op in ops)))


def _make_answer(collected: Collected, found: Facts, rows: tuple[Match, ...], conventions: Conventions) -> Answer:
    meta = collected.meta
    books = books_of(found, conventions)
    return Answer(
        model=meta["name"],
        pass_=_describe_cache(meta.get("context")) or "+".join(_phases_that_ran(collected.traces)),
        convention=conventions.chosen,
        params=meta["params"],
        environment=_package_versions(collected),
        description=meta["doc"],
        traces=books.traces,
        ledgers=books.ledgers,
        layers=books.layers,
        statements=books.statements,
        exit_code=exit_code(books),
        notes=tuple(meta["notes"]),
        inputs=_inputs_by_framework(collected),
        alignment=rows,
    )


def _inputs_by_framework(collected: Collected) -> dict[str, str]:
    """The model's inputs by framework: from its trace, else from the pair."""
    given = ", ".join(f"{dtype} {tuple(shape)}" for _, shape, dtype in collected.meta.get("inputs", ()))
    texts = {}
    for trace in collected.traces:
        notes = trace.notes if isinstance(trace, Trace) else ()
        told = next((note for note in notes if note.startswith(CALLED_WITH)), "")
        texts[trace.framework] = told.removeprefix(CALLED_WITH) or given
    return {framework: text for framework, text in texts.items() if text}


def _phases_that_ran(traces: tuple[Trace | Missing, ...]) -> tuple[str, ...]:
    """The phases that ran, in order; a training step is one phase, and the forward pass stands in if there is no trace."""
    ran = {op.phase for trace in traces if isinstance(trace, Trace) for op in trace.ops}
    if {LOSS, OPTIMIZER} & ran:
        return (TRAINING,)
    return tuple(phase for phase in PHASES if phase in ran - {INFERENCE, OTHER}) or (FORWARD,)


def _describe_cache(context: int | None) -> str:
    """A call with a cache, as a pass; '' for a call without one."""
    if context is None:
        return ""
    return f"{DECODE} with a cache of {format_count(context, 'token')}" if context else PREFILL


def exit_code(books: Books) -> int:
    """1 if anything is unexplained or a trace is incomplete, else 3 if anything failed to run, else 0.

    A counter that cannot see this pass, or cannot count this model, leaves nothing open if another counter was run. Neither does
    a trace that is missing for the same reason: the model could not be made for that counter.
    """
    unseeing = counters_that_cannot_see(books.ledgers)
    reasons = {(led.framework, led.reason) for led in books.ledgers if led.counter in unseeing}
    unmade = {t.name for t in books.traces if (t.framework, t.reason) in reasons}
    states = {t.state for t in books.traces if t.name not in unmade}
    states |= {led.state for led in books.ledgers if led.counter not in unseeing}
    states |= {s.state for s in books.statements if not (unseeing | unmade) & {s.from_, s.to}}
    if State.UNEXPLAINED in states or State.NOT_COMPARABLE in states:
        return EXIT_UNEXPLAINED
    return EXIT_FAILED if states & {State.FAILED, State.SKIPPED} else EXIT_OK


def counters_that_cannot_see(ledgers: Sequence[LedgerResult]) -> set[str]:
    """Counters that cannot see this pass or cannot count this model; empty if that is true of all counters."""
    counters = {led.counter for led in ledgers if led.state is State.NOT_COMPARABLE and led.total is None}
    return counters if len(counters) < len(ledgers) else set()


def _package_versions(collected: Collected) -> dict[str, str]:
    versions = {"reconcile": __version__}
    for record in (*collected.traces, *collected.ledgers):
        if not isinstance(record, Missing):
            versions.update(record.versions)
    return dict(sorted(versions.items()))
