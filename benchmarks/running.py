"""What a callback costs a training run: most steps run bare, and the first of a kind are recorded."""

from __future__ import annotations

import json

from measure import BARE, PYTHON, Section, run

STEPS, RECORDED = 200, 2
"""Steps of one shape; the optimizer's first step and the next one are recorded."""
LIMIT = 1.01


def running() -> Section:
    """A run of 200 steps with one shape, put together from what each kind of step costs."""
    section = Section("A training run with a callback beside the run alone")
    found = json.loads(run([PYTHON, str(BARE / "torch_running.py")]).splitlines()[-1])
    bare, recorded, ours = found["bare"], found["recorded"], found["ours"]
    ratio = 1 + (RECORDED * max(recorded - bare, 0.0) + (STEPS - RECORDED) * ours) / (STEPS * bare)
    said = section.bound("a run with a callback", ratio, LIMIT)
    section.lines = [
        "A transformer of 12 layers of width 512 on 4 sequences of 128 tokens, with AdamW; processor seconds of one thread, "
        "medians. "
        f"A step alone takes {bare:.2f} s. A step that is recorded takes {recorded:.2f} s, its statements included, and "
        f"{RECORDED} are. In each other step the hooks take {1e3 * ours:.2f} ms.",
        "",
        f"A run of {STEPS} steps of one shape against the run alone: {said} ({ratio:.4f}).",
    ]
    return section
