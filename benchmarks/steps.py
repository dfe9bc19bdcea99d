"""What ``reconcile.count`` around a step costs, beside FlopCounterMode around the same step."""

from __future__ import annotations

import json

from measure import BARE, PYTHON, Section, median, run, table

LIMIT = 2.5
TITLES = {"bare": "the step alone", "flop_counter": "in FlopCounterMode", "count": "in reconcile.count"}


def steps() -> Section:
    """The overhead of the context, which contains flop_counter, against that of the counter alone."""
    section = Section("A training step in `reconcile.count`, beside FlopCounterMode")
    found = json.loads(run([PYTHON, str(BARE / "torch_step.py")]).splitlines()[-1])
    alone, counter, ours = (median(found[name]) for name in TITLES)
    said = section.bound("reconcile.count around a step", (ours - alone) / (counter - alone), LIMIT)
    section.lines = [
        "An encoder of 12 layers (width 64, 4 heads, 2 sequences of 64 tokens) with cross-entropy, clipping and AdamW, on one "
        "thread: processor milliseconds of interleaved rounds, with entering and leaving the context, without its statements.",
        "",
        *table(
            ("step", "median ms", "fastest", "slowest"),
            [(title, *_shown(found[name])) for name, title in TITLES.items()],
        ),
        "",
        f"What the context adds to the step, against what the counter adds: {said}. The context records every op, digests what "
        "it leaves in memory, and runs the counter on it.",
    ]
    return section


def _shown(seconds: list[float]) -> list[str]:
    return [f"{1000 * value:.1f}" for value in (median(seconds), min(seconds), max(seconds))]
