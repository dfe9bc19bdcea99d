"""Every release of the counters' packages on the layers of the zoo's families: `make releases`, or some of its counters.

What each gave (release_takes.py) is compared with the release before it, as `reconcile check` compares two takes of a model:
``reports/releases/changes.csv`` has a line for each layer and op that moved, ``releases.csv`` one for each release, and the page
is made of the two. Git keeps the page alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.align.alignment import Alignment
from reconcile.core.atomic import write_file
from reconcile.core.conventions import MATMUL
from reconcile.core.records import Layer, Ledger, Trace, from_json
from reconcile.drift.changes import CounterDrift
from reconcile.drift.compare import compare
from reconcile.engine.ledger import reconcile_ledger
from reconcile.engine.settle import Collected
from reconcile.work import load
from tests.zoo.csv_rows import read, write
from tests.zoo.release_takes import ROOT, looked_at, of_release, package_of, traces
from tests.zoo.releases_page import page

PAGE, RELEASES, CHANGES = (ROOT / "reports/releases" / name for name in ("README.md", "releases.csv", "changes.csv"))
COUNTERS = (
    "thop", "fvcore", "ptflops@pytorch", "torchinfo", "ultralytics-thop", "calflops", "deepspeed", "mmengine", "onnx_tool",
    "flop_counter", "tf.profiler@frozen", "xla@lowered",
)  # fmt: skip


@dataclass(frozen=True)
class Release:
    """One release: how many ``families`` it counted, of how many the rules explain every entry, or why it did not run.
    ``where`` is the environment it ran over, ``listed`` the number of releases on the index, of which some may be left out."""

    counter: str
    package: str
    release: str
    where: str
    families: int
    explained: int
    listed: int
    reason: str


@dataclass(frozen=True)
class Moved:
    """What one release moved: an op of a layer, in the counter's unit, and the lines of its bridge to the work that ran. It is
    ``explained`` if the causes of both bridges account for the whole change of the family's total: "yes", "no" or "unknown"."""

    counter: str
    before: str
    release: str
    family: str
    layer: str
    op: str
    was: str
    now: str
    unit: str
    causes: str
    explained: str


def explained(ledger: Ledger, trace: Trace, meta: Mapping[str, Any]) -> bool:
    """Whether the rules of that version explain every entry."""
    align = Alignment(list(map(Layer.from_list, meta["layers"])))
    return not reconcile_ledger(ledger, trace, align, MATMUL).residuals


def anywhere(reason: str) -> str:
    """The reason without the paths and addresses of this machine."""
    return re.sub(r" \(/[^)]*\)| at 0x[0-9a-f]+", "", reason)


def moved(counter: str, names: tuple[str, str], family: str, drift: CounterDrift) -> Iterator[Moved]:
    """A line for each layer and op, with the sums before and after."""
    sums: dict[tuple[str, str], list[int | None]] = {}
    for change in drift.changes:
        both = sums.setdefault((change.layer, change.op), [None, None])
        for side, entry in enumerate((change.before, change.after)):
            if entry is not None and isinstance(entry.amount, int):
                both[side] = (both[side] or 0) + entry.amount
    for (layer, op), (was, now) in sums.items():
        lines = (f"{c.cause.value} {c.before} -> {c.after}" for c in drift.causes if c.layer == layer)
        closed = "no" if drift.residual else "yes" if drift.residual == 0 else "unknown"
        amounts = ("" if n is None else str(n) for n in (was, now))
        yield Moved(counter, *names, family, layer, op, *amounts, drift.units[1], "; ".join(lines), closed)


def of_counter(counter: str) -> tuple[list[Release], list[Moved]]:
    """Every release of a counter's package."""
    rows, changes = [], list[Moved]()
    before: dict[str, Collected] = {}
    last, package = "", package_of(counter)
    releases, listed = looked_at(counter)
    for release, python in releases.items():
        taken = of_release(counter, release, python)
        found, held = taken["families"], traces(counter, taken)
        ledgers = {name: from_json(one["record"]) for name, one in found.items() if "record" in one}
        ran = {
            name: Collected(held[name][1], held[name][:1], (each,)) for name, each in ledgers.items() if name in held
        }
        closed = sum(explained(ledgers[name], *held[name]) for name in ran)
        why = "" if ran else anywhere(next((one["error"] for one in found.values() if "error" in one), "no trace"))
        rows.append(Release(counter, package, release, taken["where"], len(ran), closed, listed, why))
        print(f"{counter} {release}: {len(ran)} families, {closed} explained {why}", file=sys.stderr, flush=True)
        for name, now in ran.items():
            if name in before:
                changes += moved(counter, (last, release), name, compare(before[name], now).counters[0])
        if ran:
            before, last = before | ran, release
    return rows, changes


def main(*names: str) -> None:
    """Look at the releases of these counters, or of all, and write the page; the rows of others stay."""
    load()
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    for counter in names or COUNTERS:
        rows, changes = of_counter(counter)
        for path, kind, fresh in ((RELEASES, Release, rows), (CHANGES, Moved, changes)):
            kept = [row for row in read(path, kind) if row.counter != counter]
            write(path, kind, sorted([*kept, *fresh], key=lambda row: row.counter))
    write_file(PAGE, page(read(RELEASES, Release), read(CHANGES, Moved)))


if __name__ == "__main__":
    main(*sys.argv[1:])
