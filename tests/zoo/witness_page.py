"""The page of the witness: of each pair, how many of the multiply-adds stand in the log of the CPU's math libraries.

``python -m tests.zoo.witness_page [PAIR ...]`` runs these pairs, or all, and writes ``reports/witness.md``; named pairs are only
printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from reconcile.model_zoo.loading import zoo_names

COUNTERS = {"PyTorch": "cpu_libraries", "TensorFlow": "tf_libraries"}
PAGE = Path(__file__).parents[2] / "reports" / "witness.md"

HEAD = (
    "# What MKL and oneDNN say that they multiplied",
    "",
    "Written by `make witness`: one call of each pair on the CPU, at its own size, beside the libraries' log: MKL's and oneDNN's",
    "in PyTorch, oneDNN's in TensorFlow. [What that proves](../docs/witness.md). *Witnessed* are multiply-adds of ops whose",
    "lines are just their products, each of the right sizes. *Not witnessed* are those of ops that wrote no line with sizes or",
    "that TensorFlow optimised away, and blocks that a causal kernel leaves out. Of a pair that is *unexplained* nothing is",
    "taken for witnessed.",
)
TABLE = (
    "| pair | multiply-adds of the trace | witnessed | share | not witnessed | unexplained |",
    "|:--|--:|--:|--:|:--|--:|",
)


class Row(NamedTuple):
    """A pair's multiply-adds; ``silent`` are those of each op that is not witnessed."""

    pair: str
    macs: int
    witnessed: int
    silent: dict[str, int]
    unexplained: bool


def row_of(pair: str, result: Any, counter: str) -> Row:
    """A counter's row of a run's JSON. What is unexplained is not taken for witnessed. Raises ValueError without a ledger."""
    (statement,) = (s for s in result["statements"] if s["from"] == counter and s["to"].startswith("trace"))
    if statement["from_total"] is None or statement["to_total"] is None:
        raise ValueError(f"{pair}: {statement['reason']}")
    silent = Counter[str]()
    for line in statement["adjustments"]:
        silent[line["op"]] += line["amount"] // 2
    unexplained = statement["state"] == "unexplained"
    witnessed = 0 if unexplained else statement["from_total"] // 2
    return Row(pair, statement["to_total"] // 2, witnessed, dict(silent), unexplained)


def share(rows: Iterable[Row]) -> str:
    """``99.87 %`` of their multiply-adds, rounded down."""
    taken = list(rows)
    whole, part = sum(r.macs for r in taken), sum(r.witnessed for r in taken)
    return f"{10_000 * part // whole / 100:.2f} %" if whole else "-"


def table(rows: Sequence[Row]) -> list[str]:
    """The table of these rows, and a last row of all."""
    lines = list(TABLE)
    for row in rows:
        silent = ", ".join(f"`{op}` {macs:,}" for op, macs in row.silent.items())
        lines.append(
            f"| {row.pair} | {row.macs:,} | {row.witnessed:,} | {share([row])} | {silent} | {'yes' if row.unexplained else ''} |"
        )
    whole = sum(r.macs for r in rows)
    lines.append(f"| all | {whole:,} | {sum(r.witnessed for r in rows):,} | {share(rows)} | | |")
    return lines


def page(rows: dict[str, list[Row]]) -> str:
    """The page of these rows, by title of the framework."""
    lines = list(HEAD)
    for title, own in rows.items():
        lines += ["", f"## {title}", "", *table(own)]
    return "\n".join(lines) + "\n"


def run(pair: str, folder: Path) -> dict[str, Row]:
    """The rows of a pair, which runs now and leaves its files in that folder. Raises ValueError if it leaves none."""
    named = [word for counter in COUNTERS.values() for word in ("--counter", counter)]
    command = [sys.executable, "-m", "reconcile", "run", "--model", pair, *named, "--out", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    written = folder / f"{pair}.json"
    if not written.exists():
        raise ValueError(f"{pair} left no report (exit code {done.returncode}): {done.stderr.strip()}")
    result = json.loads(written.read_text(encoding="utf-8"))
    return {title: row_of(pair, result, counter) for title, counter in COUNTERS.items()}


def main(names: Sequence[str]) -> None:
    """Print named pairs, or write the page of all; each is told when it is done."""
    rows: dict[str, list[Row]] = {title: [] for title in COUNTERS}
    with TemporaryDirectory() as folder:
        for name in names or zoo_names():
            for title, row in run(name, Path(folder)).items():
                rows[title].append(row)
            print(f"{name}: {', '.join(share(own[-1:]) for own in rows.values())}", file=sys.stderr, flush=True)
    if names:
        print(page(rows))
    else:
        PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
