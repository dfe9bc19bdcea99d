"""Draft rules for a counter that has none: what it seems to count in each class or op, by exact fit over the zoo's families.

A draft is a start for reading the counter's source, never the cause of a difference: a RuleBook refuses its rules
(adapters/counters/rulebook.py) until each cites the source.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...adapters.counters.rulebook import DRAFT
from ...core.counter import Counter
from ...core.errors import UsageError
from ...core.number_format import format_count
from ...core.records import MAC, Ledger
from ...core.registry import known_counters
from ...engine.settle import Collected
from ...launch.request import RunRequest, run_request
from ...launch.runner import collect
from ...work import COMPONENTS, load
from ..decode.fit_counter import Case, Draft, Reading, draft
from .quantities import SIZES, quantities, total, work_component

NAMES = (*COMPONENTS, *SIZES)


def drafts(counter: str, models: Sequence[str], take: Callable[[RunRequest], Collected] = collect) -> list[Draft]:
    """A draft for each class or op that the counter met. Raises UsageError if it could count none of these pairs."""
    load()
    by_op: dict[str, list[Case]] = {}
    reasons = []
    for model in models:
        request = replace(run_request(model=model, counters=(counter,)), trace=False)
        (ledger,) = take(request).ledgers
        if not isinstance(ledger, Ledger):
            reasons.append(f"{model}: {ledger.reason.rstrip('.')}")
            continue
        for op, case in cases_of(ledger, model):
            by_op.setdefault(op, []).append(case)
    if not by_op:
        raise UsageError(f"{counter} counted none of the cases; {'; '.join(reasons) or 'it met no layer'}.")
    return [draft(op, cases, NAMES) for op, cases in sorted(by_op.items())]


def cases_of(ledger: Ledger, model: str) -> Iterator[tuple[str, Case]]:
    """A case for each entry that counts calls of one class or op alone. A multiply-add is two units of a counter of FLOPs."""
    values = {entry.id: entry.value for entry in ledger.entries}
    fed: dict[str, list[int]] = {}
    for index, sighting in enumerate(ledger.sightings):
        fed.setdefault(sighting.entry, []).append(index)
    for entry, indices in fed.items():
        sightings = [ledger.sightings[i] for i in indices]
        ops = {s.op.op for s in sightings}
        if len(ops) == 1:
            whole = total((quantities(s.op), s.op.calls * s.copies) for s in sightings)
            scale = 1 if ledger.unit == MAC else 2
            whole = {
                name: count * (scale if name in ("mac", "output_products") else 1) for name, count in whole.items()
            }
            yield ops.pop(), Case(f"{model}:{entry}", whole, values.get(entry, 0))


def text(counter: Counter, made: Sequence[Draft]) -> str:
    """The draft as a module ``rules.py``. Raises UsageError if no class of the counter has a reading."""
    fitting = [d for d in made if d.reading is not None and d.reading.terms]
    if not fitting:
        raise UsageError(
            f"no reading fits what {counter.name} reports: its totals are not linear in the work or the tensor sizes of "
            f"these {len(made)} classes of layers. Read its source instead."
        )
    name = counter.family
    lines = [
        f'"""A draft of the rules of {name}: what it seems to count, fitted to its numbers. It is never a statement\'s cause.',
        "",
        'Read the counter\'s source for each rule, correct the rule, and cite the file and the line in place of "draft": until',
        "then no statement uses it. Each rule says how many readings fit, and how many cases support them.",
        '"""',
        "",
        "from reconcile.products.authors.quantities import quantities",
        "from reconcile.adapters.counters.rulebook import RuleBook",
        "from reconcile.work import Work",
        "",
        f'BOOK = RuleBook("{name}", "{counter.versions_key}", {{}})',
    ]
    for number, d in enumerate(fitting):
        lines += ["", "", *_rule(d, number)]
    silent = [d.op for d in made if d.reading is not None and not d.reading.terms]
    unread = [d for d in made if d.reading is None]
    if silent:
        lines += ["", "", *_comment(f"It counts nothing for: {', '.join(silent)}.")]
    if unread:
        lines += ["", ""]
        lines += [x for d in unread for x in _comment(f"{d.op}: {d.reason} ({format_count(len(d.cases), 'case')}).")]
    return "\n".join(lines) + "\n"


def _rule(made: Draft, number: int) -> list[str]:
    reading = made.readings[0]
    others = [formula(other) for other in made.readings[1:4]]
    fits = f"Readings that fit: {len(made.readings)}; cases that support them: {len(made.cases)}"
    support = f"{fits}; held out and confirmed: {made.held_out}"
    return [
        *_comment(support + (f"; others: {'; '.join(others)}" if others else "") + "."),
        f'@BOOK.rule("{made.op}", source="{DRAFT}", formula="{formula(reading)}")',
        f"def rule{number}(op):",
        "    q = quantities(op)",
        f"    return Work({_work(reading)})",
    ]


def formula(reading: Reading) -> str:
    """A reading as text: ``mac + 3 special``."""
    return " + ".join(name if factor == 1 else f"{factor} {name}" for name, factor in reading.terms)


def _work(reading: Reading) -> str:
    parts: dict[str, list[str]] = {}
    for name, factor in reading.terms:
        times = "" if factor.numerator == 1 else f" * {factor.numerator}"
        divided = "" if factor.denominator == 1 else f" // {factor.denominator}"
        parts.setdefault(work_component(name), []).append(f'q["{name}"]{times}{divided}')
    return ", ".join(f"{name}={' + '.join(terms)}" for name, terms in parts.items())


def _comment(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def draft_of(counter: str, models: Sequence[str], take: Callable[[RunRequest], Collected] = collect) -> str:
    """The draft of a counter. Raises UsageError if there is none."""
    return text(known_counters()[counter], drafts(counter, models, take))
