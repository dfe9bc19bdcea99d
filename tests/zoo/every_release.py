"""Every release of the counters' packages on the layers of the zoo's families: `make releases`, or some of its counters.

A release is installed over the packages that run here, in an environment of its own that is deleted afterwards, and one process
there counts every family (release_layers.py). What it gave is kept in the cache, so an interrupted run goes on. Each release is
then compared with the one before it, as `reconcile check` compares two takes of a model: ``reports/releases/changes.csv`` has a
line for each layer and op that moved, ``releases.csv`` one for each release, and the page is made of the two.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from reconcile.align.alignment import Alignment
from reconcile.core.atomic import write_file
from reconcile.core.conventions import MATMUL
from reconcile.core.errors import UsageError
from reconcile.core.protocol import TRACE, to_text
from reconcile.core.records import Layer, Ledger, Trace, from_json
from reconcile.core.registry import known_counters
from reconcile.drift.changes import CounterDrift
from reconcile.drift.compare import compare
from reconcile.engine.ledger import reconcile_ledger
from reconcile.engine.settle import Collected
from reconcile.launch.environments import CURRENT, Environment
from reconcile.launch.environments import load as environments
from reconcile.launch.in_environment import made
from reconcile.launch.provision import cache_root, folder_of
from reconcile.model_zoo.loading import pair_path
from reconcile.work import load
from reconcile.zoo.conform import families
from reconcile.zoo.upgrade import sides
from tests.workers import request
from tests.zoo.csv_rows import read, write
from tests.zoo.releases_page import page

ROOT = Path(__file__).resolve().parents[2]
PAGE, RELEASES, CHANGES = (ROOT / "reports/releases" / name for name in ("README.md", "releases.csv", "changes.csv"))
COUNTERS = (
    "thop", "fvcore", "ptflops@pytorch", "torchinfo", "ultralytics-thop", "calflops", "deepspeed", "mmengine", "onnx_tool",
)  # fmt: skip
LEGACY = ("gru_demo", "crnn", "mobilenet_v2")
"""Pairs that also run on Python 3.8, beside the families, which need 3.10."""
OLDER = "torch-1.10.1"
"""The environment, of Python 3.8, where a release is tried that asks the packages here for what they no longer have."""
LIMIT = 600.0
"""Seconds for the families of one release."""


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


def on_index(package: str) -> list[str]:
    """The releases of a package that the index has for this Python, oldest first, without pre-releases."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", package]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = said.partition("Available versions: ")[2].splitlines()[0].split(", ")
    return sorted((text for text in listed if text.replace(".", "").replace("post", "").isdigit()), key=age)


def age(release: str) -> tuple[str, Version]:
    """Sorts releases by the day in their post tag, if they have one (2206102148 and 20220610 are both 220610): thop 0.0.4 of 2021
    is younger than its 0.0.31 of 2020."""
    tag = str(Version(release).post or "")
    day = {6: tag, 8: tag[2:], 10: tag[:6]}.get(len(tag), "")
    return day, Version(release)


def chosen(found: Sequence[str]) -> list[str]:
    """The releases to look at: all; of more than fifty, the last of each minor release, or else one in so many."""
    if len(found) <= 50:
        return list(found)
    last = list({Version(text).release[:2]: text for text in found}.values())
    return last if len(last) > 10 else list(found)[:: -(len(found) // 25)][::-1]


def layers(python: Path, framework: str, task: str, names: Sequence[str]) -> dict[str, Any]:
    """What release_layers.py prints there. Raises UsageError if it prints nothing."""
    counters = () if task == TRACE else (task,)
    asked = request(framework, *counters, tasks=(task,))
    requests = {name: to_text(asked._replace(pair=str(pair_path(name)))) for name in names}
    done = subprocess.run(
        [str(python), "-W", "ignore", "-m", "tests.zoo.release_layers", framework],
        input=json.dumps(requests),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND ")), None)
    if line is None:
        raise UsageError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:300])
    found: dict[str, Any] = json.loads(line.removeprefix("FOUND "))
    return found


def of_release(counter: str, package: str, release: str) -> dict[str, Any]:
    """The ledgers of one release by family, ``{"": {"error"}}`` if there is none, and the name of the environment: out of the
    cache, or made now. What does not run over the packages that run here is tried on an older Python and PyTorch."""
    kept = cache_root().parent / "releases" / counter / f"{release}.json"
    if kept.is_file():
        held: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return held
    pin, framework = [f"{package}=={release}"], known_counters()[counter].framework
    found = _found(sides(pin, [], CURRENT, (counter,))[1], framework, counter, (*families(counter), *LEGACY))
    where = CURRENT
    if all("cannot import name" in one.get("error", "") for one in found.values()):
        found, where = _found(environments()[OLDER].with_(pin), framework, counter, LEGACY), OLDER
    kept.parent.mkdir(parents=True, exist_ok=True)
    whole = {"families": found, "where": where}
    write_file(kept, json.dumps(whole))
    return whole


def _found(env: Environment, framework: str, counter: str, names: Sequence[str]) -> dict[str, Any]:
    """What an environment gives, which is made for this and deleted after it."""
    try:
        return layers(made(env, lambda _step: None), framework, counter, names)
    except (UsageError, subprocess.TimeoutExpired) as error:
        return {"": {"error": str(error)}}
    finally:
        shutil.rmtree(folder_of(env), ignore_errors=True)


@cache
def traces(framework: str) -> Mapping[str, tuple[Trace, dict[str, Any]]]:
    """The traces of the families, on the framework that runs here, and what each pair says of itself."""
    found = layers(Path(sys.executable), framework, TRACE, (*families(), *LEGACY))
    return {name: (from_json(held["record"]), held["meta"]) for name, held in found.items() if "record" in held}


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
    known = known_counters()[counter]
    rows, changes = [], list[Moved]()
    before: dict[str, Ledger] = {}
    last = ""
    listed = on_index(known.distribution)
    for release in chosen(listed):
        taken = of_release(counter, known.distribution, release)
        found = taken["families"]
        ledgers = {name: from_json(held["record"]) for name, held in found.items() if "record" in held}
        ran = {name: ledger for name, ledger in ledgers.items() if name in traces(known.framework)}
        closed = sum(explained(ledger, *traces(known.framework)[name]) for name, ledger in ran.items())
        why = "" if ran else anywhere(next(iter(held["error"] for held in found.values())))
        rows.append(Release(counter, known.distribution, release, taken["where"], len(ran), closed, len(listed), why))
        print(f"{counter} {release}: {len(ran)} families, {closed} explained {why}", file=sys.stderr, flush=True)
        if not ran:
            continue
        for name, ledger in ran.items():
            if name in before:
                trace, meta = traces(known.framework)[name]
                drift = compare(*(Collected(meta, (trace,), (each,)) for each in (before[name], ledger)))
                changes += moved(counter, (last, release), name, drift.counters[0])
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
