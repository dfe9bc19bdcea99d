"""`reconcile zoo scorecard` from nothing beside the bare counters on the same layers."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from measure import BARE, PYTHON, Section, measured, run, table

ZOO = str(BARE / "zoo.py")
PASSES = ("forward", "training")
FRAMEWORKS = ("tf", "torch")
LIMIT = 1.2
SCALE = {"thop": 2, "fvcore": 2}
"""Counters of MACs."""


def scorecard() -> Section:
    """One command for every cell against every bare counter, one after the other; then the same command again."""
    from reconcile.products.authors.conform import families

    section = Section("`reconcile zoo scorecard` beside the bare counters")
    names = [name for family in families() for name in ("--case", family)]
    counters = [name for counter in _counters() for name in ("--counter", counter)]
    with tempfile.TemporaryDirectory() as folder:
        command = [PYTHON, "-m", "reconcile", "zoo", "scorecard", *names, *counters, "--out", folder, "--quiet"]
        before = _processor()
        whole = measured(command)[0]
        work = _processor() - before
        again = measured(command)[0]
        reported = _reported(Path(folder) / "scorecard.json")
    rows, processes, inside, before = [], 0.0, 0.0, _processor()
    for family in families():
        for pass_ in PASSES:
            seconds = [_bare(framework, family, pass_, reported) for framework in FRAMEWORKS]
            processes += sum(s[0] for s in seconds)
            inside += sum(s[1] for s in seconds)
            rows.append((family, pass_, f"{sum(s[0] for s in seconds):.1f}", f"{sum(s[1] for s in seconds):.1f}"))
    bare = _processor() - before
    section.lines = [
        f"All layers of the {len(families())} families, forward and in a training step, with the six counters that run unasked: "
        "the command from nothing, one run, against the bare counters, one after the other, a process for each family, pass and "
        "framework. The scripts are in `bare/`; the totals are those of the scorecard's runs.",
        "",
        *table(("family", "pass", "processes, s", "in the counters, s"), rows),
        "",
        f"The scorecard takes {whole:.0f} s and the bare counters {processes:.0f} s: "
        f"{section.bound('the scorecard against the bare counters', whole / processes, LIMIT)}. Without the start of the "
        f"processes, imports included, the bare counters take {inside:.0f} s: "
        f"{section.bound('the scorecard against the time inside the bare counters', whole / inside, LIMIT)}. The scorecard's "
        "workers are forked from two processes that have imported the frameworks, and both frameworks run side by side; the bare "
        f"counters do not. In processor time the ratio is {work / bare:.2f} ({work:.0f} s and {bare:.0f} s). "
        f"The same command again, nothing changed: {again:.0f} s.",
    ]
    return section


def _processor() -> float:
    """Processor seconds of the processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _counters() -> list[str]:
    from reconcile.core.registry import known_counters

    return [name for name, counter in known_counters().items() if counter.default]


def _reported(cards: Path) -> dict[tuple[str, str, str], int | None]:
    """FLOPs of each counter in the layers of a family, None where it has no number."""
    totals: dict[tuple[str, str, str], int | None] = {}
    for card in json.loads(cards.read_text())["rows"].values():
        cells = card["cells"].values()
        known = all("counted" in cell for cell in cells)
        total = sum(cell["counted"] + cell.get("beside", 0) for cell in cells) if known else None
        totals[card["family"], card["pass_"], card["counter"]] = total
    return totals


def _bare(
    framework: str, family: str, pass_: str, reported: dict[tuple[str, str, str], int | None]
) -> tuple[float, float]:
    """(seconds of the process, seconds in its counters); in a call, each reports what the scorecard has of it."""
    start = time.perf_counter()
    words = [PYTHON, ZOO, framework, family, *([pass_] if pass_ == "training" else [])]
    found = json.loads(run(words).splitlines()[-1])
    seconds = time.perf_counter() - start
    for counter, (_, total) in found.items():
        expected = reported[family, pass_, counter]
        if pass_ == "forward" and total * SCALE.get(counter, 1) != expected:
            sys.exit(f"{family}: {counter} reports {total:,} alone, {expected} on the scorecard")
    return seconds, sum(own for own, _ in found.values())
