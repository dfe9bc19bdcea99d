"""The counts of every pair of the zoo as polynomials of its sizes: ``python -m tests.zoo.every_formula [PAIR ...]``.

The rows of a pair are kept in ``reports/formulas.csv`` as soon as it is done, and a pair that has rows is not run again unless
you name it. ``reports/formulas.md`` is made from them. `make formulas` compares them with the tool.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconcile.core.atomic import write_file
from reconcile.core.errors import UsageError
from reconcile.core.escaping import markdown
from reconcile.launch.request import run_request
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.formula.formula import Formula, formula
from reconcile.products.formula.report import plain
from reconcile.products.formula.run_points import run_at
from reconcile.products.formula.variables import Template, read_variables
from tests.zoo import csv_rows

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "reports/formulas.csv"

BATCH = {"batch": "B=1..5"}
SIZES: Mapping[str, Mapping[str, str]] = {
    "bert_base": {"batch": "B=1..3", "steps": "T=8,16,32,64"},
    "conv1x1": {"batch": "B=1..3", "size": "S=1..4"},
    "conv_only": {"batch": "B=1..3", "frames": "T=8,16,32,64"},
    "crnn": {"batch": "B=1..3", "columns": "T=32,48,64,80"},
    "gpt2": {"batch": "B=1..3", "steps": "T=8,16,32,64"},
    "gru_demo": {"batch": "B=2..5", "frames": "T=8,16,32,64"},
    "llama": {"batch": "B=1..3", "steps": "T=8,16,32,64"},
    "lstm_lm": {"batch": "B=1..3", "steps": "T=8,16,32,64"},
    "matmul_init": {"rows": "M=1..4", "inner": "K=1..4", "columns": "N=1..4"},
    "moe": {"batch": "B=1..3", "steps": "T=16,32,64,128"},
    "pointnet": {"batch": "B=1..3", "points": "T=64,128,192,256"},
    "t5_small": {"batch": "B=1..3", "steps": "T=8,16,32,64"},
    "whisper": {"batch": "B=1..3", "steps": "T=8,16,32,64"},
}
"""The parameters that vary, and the sizes of each; those of a pair that is not here are ``BATCH``.

A batch of 1 is a case of its own in gru_demo's frozen loop: TensorFlow infers no shape for the sum of an unknown batch and 1.
"""


@dataclass(frozen=True)
class Row:
    """One count of a pair: its ``polynomial``, or the ``reason`` why it has none, at that ``layer`` and ``op`` ('' for all).

    ``sizes`` are the options of the command; ``fitted`` and ``checked`` are numbers of points.
    """

    pair: str
    sizes: str
    count: str
    polynomial: str
    layer: str
    op: str
    reason: str
    fitted: str
    checked: str


def sizes_of(pair: str) -> Mapping[str, str]:
    """The parameters that vary with their sizes: ``{"batch": "B=1..5"}``."""
    return SIZES.get(pair, BATCH)


def words(pair: str) -> str:
    """The options of ``reconcile formula`` for a pair."""
    sizes = sizes_of(pair)
    named = [f"--set {parameter}={text.partition('=')[0]}" for parameter, text in sizes.items()]
    return " ".join([f"--model {pair}", *named, *(f"--at {text}" for text in sizes.values())])


def formula_of(pair: str) -> Formula:
    """The polynomials of a pair. Raises UsageError where it does not run."""
    sizes = sizes_of(pair)
    request = run_request(model=pair, timeout=1800)
    overrides = {parameter: text.partition("=")[0] for parameter, text in sizes.items()}
    template = Template(read_variables(tuple(sizes.values())), (), overrides)
    return formula(template, lambda points, counting: run_at(request, points, counting=counting))


def rows_of(pair: str) -> Iterator[Row]:
    """The totals of a pair, and every reason."""
    counts = formula_of(pair)
    fitted, checked = str(len(counts.fitted)), str(counts.checked)
    for name, counted in counts.polynomials.items():
        if counted.total is not None:
            yield Row(pair, words(pair), name, plain(counted.total), "", "", "", fitted, checked)
    for none in counts.not_polynomial:
        yield Row(pair, words(pair), none.of, "", none.layer, none.op, none.reason, fitted, checked)


def read() -> list[Row]:
    """The committed rows."""
    return csv_rows.read(DATA, Row)


def write(rows: Sequence[Row]) -> None:
    """The file and the page."""
    ordered = sorted(rows, key=lambda row: row.pair)  # stable: the counts of a pair keep their order
    csv_rows.write(DATA, Row, ordered)
    write_file(DATA.with_suffix(".md"), page(ordered))


def page(rows: Sequence[Row]) -> str:
    """A table per pair."""
    pairs = list(dict.fromkeys(row.pair for row in rows))
    refused = [row for row in rows if row.reason]
    lines = [
        "# The counts of every pair as polynomials of its sizes",
        "",
        "Written by `python -m tests.zoo.every_formula`; `make formulas` runs every pair again and compares. The numbers are",
        "FLOPs of one call under the convention `matmul`, for the work that ran, for every counter that runs by default, and for",
        "every cause: the amount to add to its counter to get the work that ran. Every polynomial gives the count to the last",
        "unit at all points that it was not fitted to, at least three. Sizes that do not vary are the pair's own. A polynomial",
        "says nothing of sizes below the smallest that is given: a batch of 1 can be a case of its own, as in gru_demo.",
        "",
        f"{len(pairs)} of {len(zoo_names())} pairs, {len(rows) - len(refused)} polynomials"
        f"{f', {len(refused)} counts without one' if refused else ''}.",
        "[Symbolic counts](../docs/formula.md) says how they are found; [formulas.csv](formulas.csv) has the same as data.",
    ]
    for pair in pairs:
        mine = [row for row in rows if row.pair == pair]
        lines += ["", f"## {pair}", "", "```console", f"$ reconcile formula {mine[0].sizes}", "```", ""]
        lines += ["| count | FLOPs |", "|:--|:--|"]
        lines += [f"| {row.count} | {markdown(row.polynomial)} |" for row in mine if row.polynomial]
        lines += _reasons([row for row in mine if row.reason])
        lines += ["", f"Fitted to {mine[0].fitted} points, checked at {mine[0].checked} others."]
    return "\n".join(lines) + "\n"


def _reasons(rows: Sequence[Row]) -> Iterator[str]:
    """A line per reason, with all counts that have it."""
    counts: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        counts.setdefault((row.layer, row.op, row.reason), []).append(row.count)
    if counts:
        yield from ("", "| no polynomial | of | reason |", "|:--|:--|:--|")
    for (layer, op, reason), names in counts.items():
        where = f"{layer} ({op})" if op else layer or "the total"
        yield f"| {markdown(where)} | {', '.join(dict.fromkeys(names))} | {markdown(reason)} |"


def main(names: Sequence[str]) -> int:
    """Run the pairs of these names, or those that the file lacks; returns the number that do not run."""
    there = {row.pair for row in read()}
    failed = 0
    for pair in names or [name for name in zoo_names() if name not in there]:
        try:
            rows = list(rows_of(pair))
        except UsageError as error:
            failed += 1
            print(f"{pair}: {error}", flush=True)
            continue
        write([*(row for row in read() if row.pair != pair), *rows])
        print(f"{pair}: {len(rows)} counts", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
