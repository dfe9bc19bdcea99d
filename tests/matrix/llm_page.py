"""The page of six language models: `make llm` writes reports/llm.md with `reconcile llm`, in an environment with transformers.

A section is what the command prints for one configuration of this folder's ``llm/`` at one length.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from reconcile.core.atomic import write_file
from reconcile.launch import environments
from reconcile.launch.provision import ensure

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = Path(__file__).with_name("llm.toml")
CONFIGURATIONS = Path(__file__).with_name("llm")
PAGE = ROOT / "reports/llm.md"
MODELS = {
    "llama-3-8b": (2048, 8192),
    "smollm-135m": (2048, 8192),
    "qwen3-0.6b": (2048, 8192),
    "mixtral-8x7b": (2048, 8192),
    "gpt2": (1024,),
    "deepseek-v3": (2048, 8192),
}
"""Lengths of the sequence; gpt2 has a table of 1,024 positions."""
HEAD = """\
# FLOPs of a language model's training

<!-- Written by `make llm`; edit that, not this. -->

Which formula is right for your model? Each section is what `reconcile llm config.json --seq T --format md` prints: one training
step of the full-size model on meta, recorded op by op, and every formula that people quote beside it. What each formula counts,
and where its source is: [formulas](../docs/counters/formula.md). What the causes mean: [causes](../docs/causes/README.md).

The ratio is to all products that ran, with whole attention. A trainer that counts half of it is not wrong: it divides by another
number. Say which one you divide by. Of a formula with an empty cell, the source has no term for the model.

"""


def section(name: str, seq: int) -> str:
    """What `reconcile llm` prints. Raises CalledProcessError if anything is unexplained."""
    python = ensure(environments.load(ENVIRONMENTS)["llm"])
    words = [
        str(python),
        "-m",
        "reconcile",
        "llm",
        str(CONFIGURATIONS / f"{name}.json"),
        "--seq",
        str(seq),
        "--format",
        "md",
    ]
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def ratios(text: str) -> dict[str, str]:
    """Each formula's ratio to what ran, in a section; ``exact`` if nothing has to be added."""
    rows = re.findall(r"^\| ([a-z0-9.-]+) \| [\d,.]+ \| ([\d.]+) \| (.+) \|$", text, re.MULTILINE)
    return {name: "exact" if causes == "exact" else ratio for name, ratio, causes in rows}


def overview(sections: Mapping[tuple[str, int], str]) -> str:
    """The ratios of all formulas in one table, a column for each model at its shortest length."""
    columns = [(name, lengths[0]) for name, lengths in MODELS.items()]
    told = [ratios(sections[column]) for column in columns]
    lines = [
        "| formula | " + " | ".join(f"{name}, {seq:,}" for name, seq in columns) + " |",
        "|:--|" + "--:|" * len(columns),
    ]
    for formula in sorted({name for column in told for name in column}):
        lines.append(f"| {formula} | " + " | ".join(column.get(formula, "") for column in told) + " |")
    return "\n".join(lines) + "\n\n"


def main() -> None:
    """Write the page."""
    sections = {}
    for name, lengths in MODELS.items():
        for seq in lengths:
            print(f"{name} at {seq:,}", file=sys.stderr, flush=True)
            sections[name, seq] = section(name, seq)
    write_file(PAGE, HEAD + overview(sections) + "\n".join(sections.values()))


if __name__ == "__main__":
    main()
