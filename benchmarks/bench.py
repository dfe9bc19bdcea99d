"""`make bench`: what the tool costs, as ratios to the bare counters in the same minutes on the same machine.

Writes RESULTS.md and exits with 1 where a bound does not hold. ``--only NAME`` runs one section and writes it in its place;
each stands for itself. Times are wall-clock medians of interleaved runs, after one run of each that is thrown away, where a
section says nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys

import execution
import language_model
import large
import ranks
import running
import scale
import scorecard
import second_call
import steps
import three
import whole
from measure import HERE, Others, Section, machine

SECTIONS = {
    "whole": whole.whole,
    "help": whole.start,
    "matrix": whole.matrix,
    "encoder": large.encoder,
    "decoder": large.decoder,
    "ranks": ranks.ranks,
    "recurrent": large.recurrent,
    "capture": large.capture,
    "execution": execution.execution,
    "running": running.running,
    "llm": language_model.language_model,
    "second_call": second_call.second_call,
    "steps": steps.steps,
    "growth": scale.growth,
    "scorecard": scorecard.scorecard,
    "three": three.three,
}


HEAD = "# What `reconcile` costs\n\nWritten by `make bench`. "
MARK = "\n## "


def text(section: Section, others: Others) -> str:
    """A section as Markdown, without the mark of its title."""
    crowd = f"Other processes kept {others.cores():.1f} of the {os.cpu_count()} cores busy meanwhile."
    return "\n".join([section.title, "", *section.lines, "", crowd, ""])


def placed(results: str, done: list[str]) -> str:
    """The results with these sections in the place of those that have their titles, or behind them."""
    kept = {part.partition("\n")[0]: part for part in results.split(MARK)[1:]}
    kept.update((part.partition("\n")[0], part) for part in done)
    return MARK.join([f"{HEAD}{machine()}\n", *kept.values()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="run this section alone; the others stay as they are")
    only = parser.parse_args().only
    path = HERE / "RESULTS.md"
    done, broken = [], []
    for name, section in SECTIONS.items():
        if only in (None, name):
            others = Others()
            found = section()
            done.append(text(found, others))
            broken += found.broken
            print(done[-1], flush=True)
    path.write_text(placed(path.read_text() if only else "", done))
    sys.exit("\n".join(broken) or 0)


if __name__ == "__main__":
    main()
