"""Engine and reports from 1,000 to 1,000,000 ops."""

from __future__ import annotations

import json

from measure import BARE, PYTHON, Section, run, table

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LARGEST_PAGE = 100_000
LIMIT = 1.5
"""By how much an op may cost more among a hundred times as many."""
MOST = 90
"""Seconds that the engine, Markdown, CSV and JSON may take for a million ops."""


def growth() -> Section:
    """Microseconds and bytes per op at each size; those of the largest against those of a hundredth of it."""
    section = Section("Engine and reports from 1,000 to 1,000,000 ops")
    cost: dict[str, dict[int, tuple[float, float]]] = {}
    for size in SIZES:
        formats = "csv,md,html,json" if size <= LARGEST_PAGE else "csv,md,json"
        found = json.loads(run([PYTHON, str(BARE / "growth.py"), str(size), formats]).splitlines()[-1])
        before = found.pop("records")[1]
        for what, (seconds, peak) in found.items():
            cost.setdefault(what, {})[size] = (seconds / size, (peak - before) / size)
            before = max(before, peak)
    said = []
    for what, by_size in cost.items():
        largest = max(by_size)
        ratio = by_size[largest][0] / by_size[largest // 100][0] if largest // 100 in by_size else 0.0
        said.append(f"{what} {section.bound(f'an op of {largest:,} in {what}', ratio, LIMIT)}")
    total = sum(by_size[max(SIZES)][0] for by_size in cost.values() if max(SIZES) in by_size) * 1_000_000
    if total > MOST:
        section.broken.append(f"a million ops take {total:.0f} s, more than {MOST}")
    section.lines = [
        "A made-up trace of layers of four ops each and flop_counter's ledger of it, in a process for each size. Microseconds "
        "per op, and in brackets the bytes per op by which it raises the peak of resident memory.",
        "",
        *table(
            ("ops", *cost),
            ((f"{size:,}", *(_cell(by_size.get(size)) for by_size in cost.values())) for size in SIZES),
        ),
        "",
        f"A million ops: {total:.0f} s for the engine, Markdown, CSV and JSON, at most {MOST}. There is no HTML page of more "
        "than 200,000 ops. An op among a hundred times as many costs: " + "; ".join(said) + ".",
    ]
    return section


def _cell(cost: tuple[float, float] | None) -> str:
    return "" if cost is None else f"{cost[0] * 1e6:.0f} ({max(cost[1], 0):,.0f})"
