"""A world of 1,024 ranks against one device: the step of a decoder of 71 billion parameters."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from measure import MODELS, RECONCILE, Section, measured, mib, table

WORLD, LIMIT, MEMORY = 1024, 4.0, 4 << 30
RUNS = {"1,024 ranks": ("shared", WORLD), "one device, the same step": ("one", 1), "one device, one pass": ("whole", 1)}


def ranks() -> Section:
    """All ranks of the world, and the same tokens on one device."""
    section = Section("A world of 1,024 ranks")
    seconds, memory, sums = {}, {}, {}
    for name, (function, world) in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            words = ["run", "--torch", f"world:{function}", "--ranks", str(world), "--out", folder, "--quiet"]
            seconds[name], memory[name], _ = measured([RECONCILE, *words], MODELS)
            (path,) = Path(folder).glob("*.ranks.json")
            sums[name] = json.loads(path.read_text())["sum"]["matmul"]
    every, one, _ = RUNS
    if sums[every] != 8 * sums[one]:
        section.broken.append(f"8 batches are {sums[every]:,} FLOPs on all ranks and {sums[one]:,} each on one device")
    if memory[every] >= MEMORY:
        section.broken.append(f"the world of 1,024 takes {mib(memory[every])} MiB")
    bound = section.bound("a world of 1,024 against one device", seconds[every] / seconds[one], LIMIT)
    section.lines = [
        "80 layers, width 8192, 16 sequences of 2048 tokens, on meta: a pipeline of 16 stages (1F1B, 16 micro-batches), each "
        "over 8 ranks by FSDP and 8 by tensors. One device takes the 16 micro-batches one after the other, or all in one pass. "
        "Whole processes with reports, one run of each.",
        "",
        *table(
            ("step", "s", "peak MiB", "FLOPs"),
            ((name, f"{seconds[name]:.1f}", mib(memory[name]), f"{sums[name]:,}") for name in RUNS),
        ),
        "",
        f"All ranks, eight times the FLOPs, against the same step on one device: {bound}. Peak memory, pages that processes "
        f"share counted for each: {mib(memory[every])} MiB, less than {mib(MEMORY)}.",
    ]
    return section
