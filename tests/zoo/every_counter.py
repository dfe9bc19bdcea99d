"""Every counter on every pair of the zoo at its own size: `make counters`, or some of its groups.

A group is what runs together: the counters that live beside the frameworks, and each family that has an environment of its own.
The recipes of tf.profiler build the model in another way, which Keras 3 cannot: `make matrix` runs them where they can. Rows are
kept in ``reports/counters.csv`` as soon as a pair is done, and a pair that has all rows of a group is not run again: delete the
file to begin anew. ``reports/counters.md`` is made from it, and from the training steps of ``make gallery``, which runs every
counter that sees one (reconcile/products/gallery/training.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconcile.core.atomic import write_file
from reconcile.core.conventions import BUILT_IN, MATMUL, Conventions
from reconcile.core.errors import UsageError
from reconcile.core.escaping import markdown
from reconcile.core.records import Ledger
from reconcile.core.registry import every_counter, known_counters
from reconcile.core.results import LedgerResult
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments import runs
from reconcile.launch.request import run_request
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery import training
from reconcile.products.gallery.rows import at_once
from reconcile.products.gallery.training import TrainingRow
from reconcile.work import load
from tests.zoo import csv_rows

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "reports/counters.csv"
JOBS = 2
"""Pairs that run at the same time."""
CLOSED = ("equal", "explained")
CANNOT = ("not_comparable", "failed", "skipped")


@dataclass(frozen=True)
class Row:
    """One counter on one pair: ``total`` as reported, ``work`` that ran in FLOPs under ``matmul``, and ``open``, the number of
    conventions under which anything is open: a residual, an entry without a rule, an entry that is not what its rule says."""

    counter: str
    pair: str
    version: str
    environment: str
    state: str
    total: str
    work: str
    causes: str
    open: str
    reason: str


def groups() -> dict[str, tuple[str, tuple[str, ...]]]:
    """What runs together: the environment and its counters, by the group's name; rare ones that need no more are there, too."""
    found = {"beside": (environments.CURRENT, every_counter())}
    for name, place in environments.load().items():
        if not place.unasked and place.counters:
            there = (
                c.name
                for c in known_counters().values()
                if c.requirements and {*c.requirements} <= {*place.requirements}
            )
            found[name] = (name, tuple(dict.fromkeys((*place.counters, *there))))
    return found


def rows_of(pair: str, place: str, counters: Sequence[str]) -> Iterator[Row]:
    """The counters of a group on one pair."""
    take = runs.collect_in(environments.load()[place])
    try:
        collected = take(run_request(model=pair, counters=counters, timeout=1800), lambda _event: None)
    except UsageError as error:
        yield from (Row(name, pair, "", place, "failed", "", "", "", "", str(error)) for name in counters)
        return
    results = [settle(collected, Conventions(convention)) for convention in BUILT_IN.values()]
    for ledger in results[list(BUILT_IN).index(MATMUL.name)].ledgers:
        yield _row(pair, place, collected, ledger, results)


def _row(pair: str, place: str, collected: Collected, ledger: LedgerResult, results: Sequence[Answer]) -> Row:
    counter = known_counters()[ledger.counter]
    taken = (x for x in collected.ledgers if isinstance(x, Ledger) and x.counter == ledger.counter)
    version = next((x.versions.get(counter.versions_key, "") for x in taken), "")
    ends = (ledger.counter, f"trace@{ledger.framework}")
    mine = [next((s for s in r.statements if (s.from_, s.to) == ends), None) for r in results]
    first = mine[list(BUILT_IN).index(MATMUL.name)]
    if first is None or first.from_total is None:
        return Row(ledger.counter, pair, version, place, ledger.state.value, "", "", "", "", ledger.reason)
    again = [next(x for x in r.ledgers if x.counter == ledger.counter) for r in results]
    off = sum(
        s is None or s.residual != 0 or s.state.value not in CLOSED or bool(x.unchecked) or bool(x.mismatches)
        for s, x in zip(mine, again, strict=True)
    )
    causes = " ".join(sorted(cause.value for cause in first.by_cause()))
    total, work = str(first.from_total), str(first.to_total)
    return Row(
        ledger.counter,
        pair,
        version,
        place,
        first.state.value,
        total,
        work,
        causes,
        str(off),
        first.reason if off else "",
    )


def read() -> dict[tuple[str, str], Row]:
    """The rows of the committed file, by counter and pair."""
    return {(row.counter, row.pair): row for row in csv_rows.read(DATA, Row)}


def write(rows: dict[tuple[str, str], Row]) -> None:
    """The file and the page."""
    order = {name: index for index, name in enumerate(known_counters())}
    ordered = sorted(rows.values(), key=lambda row: (order.get(row.counter, len(order)), row.pair))
    csv_rows.write(DATA, Row, ordered)
    write_file(DATA.with_suffix(".md"), page(ordered, training.read_training()))


def page(rows: Sequence[Row], steps: Mapping[str, TrainingRow]) -> str:
    """A line per counter, a line per pair that it does not close, and a line per counter on the training ``steps``."""
    lines = [
        "# Every counter on every pair",
        "",
        "Written by `make counters`: each pair of the zoo at its own size, one call. *Closed* means that named causes explain",
        "the counter's number to the unit under all three conventions, that every entry is covered by a rule, and that each is",
        "what its rule says. *Exact* is the part of these whose number is the work that ran. *Cannot* are pairs that the counter",
        "does not take; the second table gives its reason. `counters.csv`, which `make counters` writes, has every number.",
        "",
        "| counter | version | environment | pairs | closed | exact | open | cannot |",
        "|:--|:--|:--|--:|--:|--:|--:|--:|",
    ]
    names = list(dict.fromkeys(row.counter for row in rows))
    for name in names:
        own = [row for row in rows if row.counter == name]
        version = next((row.version for row in own if row.version), "")
        closed = [row for row in own if row.state in CLOSED and row.open == "0"]
        exact = [row for row in closed if row.state == "equal"]
        cannot = [row for row in own if row.state in CANNOT]
        left = len(own) - len(closed) - len(cannot)
        lines.append(
            f"| {name} | {version} | {own[0].environment} | {len(own)} | {len(closed)} | {len(exact)} | {left} | {len(cannot)} |"
        )
    lines += ["", "| counter | pairs | why it has no number, or what is open |", "|:--|:--|:--|"]
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.state not in CLOSED or row.open != "0":
            reasons.setdefault((row.counter, row.reason), []).append(row.pair)
    lines += [f"| {name} | {', '.join(pairs)} | {markdown(reason)} |" for (name, reason), pairs in reasons.items()]
    return "\n".join([*lines, "", *_training(names, steps), ""])


def _training(names: Sequence[str], steps: Mapping[str, TrainingRow]) -> list[str]:
    """The counters on a training step of every pair: those that see it, and why the others do not."""
    lines = [
        "## A training step",
        "",
        "Written by `make gallery`: a step of each pair, in [training.md](training.md). *Closed* means the same as above.",
        "",
        "| counter | pairs | closed | exact | why it has no number |",
        "|:--|--:|--:|--:|:--|",
    ]
    for name in names:
        cells = [(row, row.cells[name]) for row in steps.values() if name in row.cells]
        blind = known_counters()[name].blind if name in known_counters() else ""
        closed = [cell for row, cell in cells if cell.state in CLOSED and not row.open and not any(row.states.values())]
        exact = [cell for cell in closed if cell.state == "equal"]
        if blind:
            lines.append(f"| {name} | | | | {markdown(blind)} |")
        elif cells:
            lines.append(f"| {name} | {len(cells)} | {len(closed)} | {len(exact)} | |")
        else:
            lines.append(f"| {name} | | | | not run: `reconcile run --pass training --counter {name}` |")
    return lines


def main(names: Sequence[str]) -> int:
    """Run what is missing of these groups, or of all; 1 if anything is open."""
    load()
    rows = read()
    everything = groups()
    for name in names or everything:
        place, counters = everything[name]
        missing = [pair for pair in zoo_names() if any((counter, pair) not in rows for counter in counters)]

        def each(pair: str, new: list[Row]) -> None:
            rows.update({(row.counter, row.pair): row for row in new})
            write(rows)
            for row in new:
                print(f"{'ok  ' if row.open == '0' else row.state} {row.counter} {pair} {row.reason}", flush=True)

        at_once(missing, JOBS, lambda pair, p=place, c=counters: list(rows_of(pair, p, c)), each)  # type: ignore[misc]
    write(rows)
    return int(any(row.open not in ("", "0") for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
