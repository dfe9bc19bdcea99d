"""The page of nine language models: `make llm` writes reports/llm.md with `reconcile llm`, in an environment with transformers.

A section is what the command prints for one configuration of this folder's ``llm/`` in one pass at one length.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from reconcile.core.atomic import write_file
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.provision import ensure
from tests.matrix import llm_quoted

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
    "glm-4.5": (4096,),
    "qwen3-next": (4096,),
    "glm-5.2": (4096, 32768, 131072),
}
"""Lengths of the sequence; gpt2 has a table of 1,024 positions, and GLM-5.2 the lengths of NVIDIA/Megatron-LM#6148."""
PASSES = {"training": "training step", "forward": "forward pass"}
"""What a step of each pass is called in a title."""
Case = tuple[str, str, int]
TRAINED = {"glm-4.5", "qwen3-next", "glm-5.2"}
"""Models whose sections take a minute or more each: the page has their training steps alone."""
CASES = [
    (pass_, name, seq)
    for pass_ in PASSES
    for name, lengths in MODELS.items()
    for seq in lengths
    if pass_ == "training" or name not in TRAINED
]
HEAD = """\
# FLOPs of a language model

<!-- Written by `make llm`; edit that, not this. -->

Which formula is right for your model? Each section is what `reconcile llm config.json --seq T --format md` prints: one training
step of the full-size model on meta, recorded op by op, and every formula that people quote beside it. The sections with
`--pass forward` follow: a formula whose source states a training step only has no number there. GLM-4.5, Qwen3-Next
and GLM-5.2 have their training steps alone. What each formula counts, and where its source is:
[formulas](../docs/counters/formula.md). What the causes mean: [causes](../docs/causes/README.md).

The ratio is to all products that ran, with whole attention. A trainer that counts half of it is not wrong: it divides by another
number. Say which one you divide by. Of a formula with an empty cell, the source has no term for the model.

"""


def python() -> str:
    """The interpreter of the environment with transformers, which is made if it is not there."""
    return str(ensure(environments.load(ENVIRONMENTS)["llm"]))


def words(pass_: str, file: Path, seq: int) -> list[str]:
    """The words that print a section, after ``reconcile``."""
    return ["llm", str(file), "--seq", str(seq), "--pass", pass_, "--format", "md"]


def section(pass_: str, name: str, seq: int) -> str:
    """What `reconcile llm` prints, its title as that of a section. Raises CalledProcessError if anything is unexplained."""
    command = [python(), "-m", "reconcile", *words(pass_, CONFIGURATIONS / f"{name}.json", seq)]
    return "#" + subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def ratios(text: str) -> dict[str, str]:
    """Each formula's ratio to what ran, in a section; ``exact`` if nothing has to be added."""
    rows = re.findall(r"^\| ([a-z0-9.-]+) \| [\d,.]+ \| (\S+)(?: \(\S+\))? \| (.+) \|$", text, re.MULTILINE)
    return {name: "exact" if causes == "exact" else ratio for name, ratio, causes in rows}


def overview(sections: Mapping[Case, str]) -> str:
    """The ratios of all formulas, a table for each pass and a column for each model at its shortest length; and those quoted."""
    quoted = {name: by_source(sections["training", name, llm_quoted.SEQ]) for name in llm_quoted.MODELS}
    return "".join(_table(sections, pass_) for pass_ in PASSES) + llm_quoted.table(quoted)


def by_source(text: str) -> dict[str, str]:
    """Each formula's ratio to what ran in a section, and that of ``causal``, what ran without masked products."""
    ran, kept = (
        re.search(pattern, text) for pattern in (r"\*what ran\* \| ([\d,]+)", r"leaves masked products out.*: ([\d,]+)")
    )
    assert ran is not None
    assert kept is not None
    whole, causal = (int(found[1].replace(",", "")) for found in (ran, kept))
    told = {name: "1.0000" if ratio == "exact" else ratio for name, ratio in ratios(text).items()}
    return {**told, "causal": f"{causal / whole:.4f}"}


def _table(sections: Mapping[Case, str], pass_: str) -> str:
    columns = [(name, lengths[0]) for name, lengths in MODELS.items() if (pass_, name, lengths[0]) in CASES]
    told = [ratios(sections[pass_, name, seq]) for name, seq in columns]
    lines = [
        f"| {PASSES[pass_]} | " + " | ".join(f"{name}, {seq:,}" for name, seq in columns) + " |",
        "|:--|" + "--:|" * len(columns),
    ]
    for formula in sorted({name for column in told for name in column}):
        lines.append(f"| {formula} | " + " | ".join(column.get(formula, "") for column in told) + " |")
    return "\n".join(lines) + "\n\n"


def main() -> None:
    """Write the page."""
    sections = {}
    for case in CASES:
        print(*case, file=sys.stderr, flush=True)
        sections[case] = section(*case)
    write_file(PAGE, HEAD + overview(sections) + "\n".join(sections.values()))


if __name__ == "__main__":
    main()
