"""`make bench`: what the tool costs, as ratios to the bare counters in the same minutes on the same machine.

Writes RESULTS.md and exits with 1 where a bound does not hold. ``--only NAME`` runs one section and prints it. Times are
wall-clock medians of interleaved runs, after one run of each that is thrown away, where a section says nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys

import large
import scale
import whole
from measure import HERE, Others, Section, machine

SECTIONS = {
    "whole": whole.whole,
    "help": whole.start,
    "matrix": whole.matrix,
    "encoder": large.encoder,
    "recurrent": large.recurrent,
    "capture": large.capture,
    "growth": scale.growth,
}


def text(sections: list[tuple[Section, float]]) -> str:
    """The results as Markdown."""
    parts = [f"# What `reconcile` costs\n\nWritten by `make bench`. {machine()}\n"]
    for section, others in sections:
        crowd = f"Other processes kept {others:.1f} of the {os.cpu_count()} cores busy meanwhile."
        parts.append("\n".join([f"## {section.title}", "", *section.lines, "", crowd, ""]))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="run this section alone and write nothing")
    only = parser.parse_args().only
    done = []
    for name, section in SECTIONS.items():
        if only in (None, name):
            others = Others()
            done.append((section(), others.cores()))
            print(text(done[-1:]).partition("\n## ")[2], flush=True)
    if only is None:
        (HERE / "RESULTS.md").write_text(text(done))
    sys.exit("\n".join(line for section, _ in done for line in section.broken) or 0)


if __name__ == "__main__":
    main()
