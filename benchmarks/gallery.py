"""`make bench-gallery`: rebuilds the whole gallery, and what that costs beside the counters' own time on the same models.

Writes GALLERY.md. Every counter by itself also has to report the total that the gallery has of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from measure import HERE, PYTHON, Others, machine, run, table

from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery.run import read_gallery

ZOO = str(HERE / "bare" / "zoo.py")
DATA = Path("model_zoo") / "gallery.json"
SCALE = {"thop": 2, "fvcore": 2}


def counted(model: str) -> tuple[float, float]:
    """(seconds of the processes, seconds of the counters in them), each model built afresh for every counter."""
    cells = read_gallery(DATA)[model].cells
    whole = inside = 0.0
    for framework in ("tf", "torch"):
        start = time.perf_counter()
        found = json.loads(run([PYTHON, ZOO, framework, model]).splitlines()[-1])
        whole += time.perf_counter() - start
        for counter, (seconds, total) in found.items():
            inside += seconds
            if total * SCALE.get(counter, 1) != cells[counter].total:
                sys.exit(f"{model}: {counter} reports {total:,} alone, {cells[counter].total} in the gallery")
    return whole, inside


def rebuild() -> tuple[float, float]:
    """(seconds, cores that other processes kept busy meanwhile) of the gallery's one command."""
    command = [PYTHON, "-m", "reconcile", "zoo", "gallery", "--out", "reports", "--data", str(DATA), "--quiet"]
    began, others = time.perf_counter(), Others()
    run(command)
    return time.perf_counter() - began, others.cores()


def alone() -> dict[str, tuple[float, float]]:
    """``counted`` of every pair with both frameworks."""
    names = [name for name in zoo_names() if set(read_gallery(DATA)[name].work) == {"tf", "torch"}]
    return {name: counted(name) for name in names}


def page(rebuilt: float, others: float, times: dict[str, tuple[float, float]]) -> str:
    whole, inside = (sum(t[i] for t in times.values()) for i in (0, 1))
    lines = [
        "# What the gallery costs",
        "",
        f"Written by `make bench-gallery`, one run of each. {machine()}",
        "",
        f"Rebuilding it ({len(times)} pairs, six counters each, both traces, three conventions, both models on one "
        f"input, the reports): **{rebuilt:.0f} s** on {os.cpu_count()} cores "
        f"(other processes kept {others:.1f} of them busy meanwhile).",
        "",
        f"The six counters alone on the same models, one after the other: {inside:.0f} s in the counters (building the "
        f"model included), {whole:.0f} s with their processes' start: the gallery takes **{rebuilt / whole:.2f}** times as "
        "long.",
        "",
        *table(
            ("model", "its counters, s", "with their processes, s"),
            ((name, f"{t[1]:.1f}", f"{t[0]:.1f}") for name, t in times.items()),
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    rebuilt, others = rebuild()
    text = page(rebuilt, others, alone())
    (HERE / "GALLERY.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
