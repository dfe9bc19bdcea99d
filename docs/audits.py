"""Writes reports/audit/README.md from the tables of the audits beside it: python docs/audits.py."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from reconcile.core.causes import Cause
from reconcile.core.number_format import number, percent

AUDITS = Path(__file__).resolve().parents[1] / "reports" / "audit"
SOURCES = {
    "timm": "GMACs that huggingface/pytorch-image-models prints in `results/benchmark-*.csv` (commit "
    "aa4b5850c1543fa488abf260f18390eda46cf85d, Apache-2.0), for three quarters of its models; each figure of a model at a size "
    "once, `source` says how many rows of which releases of PyTorch print it",
    "torchvision": "`_ops` of all weights of torchvision 0.28.0 (BSD-3-Clause), which its pages label GFLOPS",
    "zoo": "the figures that the pairs of this zoo list as published; each names its paper or page",
}
COLUMNS = (
    "figures",
    "explained",
    "cut off",
    "not explained",
    "not run",
    "count MACs",
    "MACs called FLOPs",
    "attention lost",
)
KEY = (
    "`MACs called FLOPs`: the unit printed beside the figure contradicts what it counts. `attention lost`: the figure is without "
    "the products of fused attention, or without all products of activations with each other. Shares are of all figures."
)
LOST = tuple(cause.value for cause in (Cause.ATTENTION_LEFT_OUT, Cause.OP_NOT_COUNTED))


def rows(name: str) -> list[dict[str, str]]:
    """The rows of an audit's table."""
    with (AUDITS / name / "audit.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def sums(found: list[dict[str, str]]) -> tuple[int, ...]:
    """The numbers of a row of the page, in the order of COLUMNS."""
    states = Counter(row["verdict"] for row in found)
    explained = [row for row in found if row["verdict"] == "explained"]
    macs = [row for row in explained if row["unit"] == "MAC"]
    named = ("explained", "explained if cut off", "not explained", "not run")
    flops = sum("flop" in row["claim"].lower() for row in macs)
    lost = sum(row["left out"].startswith(LOST) and "attention" in row["reading"] for row in explained)
    return (len(found), *(states[name] for name in named), len(macs), flops, lost)


def page() -> str:
    """The page."""
    lines = [
        "# Published figures, and what they count",
        "",
        "<!-- Written by docs/audits.py; edit that, not this. -->",
        "",
    ]
    lines += [f"| figures of | {' | '.join(COLUMNS)} |", f"|:--|{'--:|' * len(COLUMNS)}"]
    for name in SOURCES:
        found = sums(rows(name))
        shown = [number(found[0]), *(f"{number(n)} ({percent(n, found[0])})" if n else "0" for n in found[1:])]
        lines.append(f"| [{name}]({name}/README.md) | {' | '.join(shown)} |")
    lines += ["", KEY, ""]
    lines += [f"* **{name}**: {text}. Check it: `reconcile audit {_word(name)}`." for name, text in SOURCES.items()]
    return "\n".join([*lines, ""])


def _word(name: str) -> str:
    return f"reports/audit/{name}/audit.csv" if name == "timm" else name


if __name__ == "__main__":
    (AUDITS / "README.md").write_text(page(), encoding="utf-8")
