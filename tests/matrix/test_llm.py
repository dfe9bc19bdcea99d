"""reports/llm.md: nine full-size models, and what ran by closed forms of their configurations."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.llm_forms import flops
from tests.matrix.llm_page import CASES, CONFIGURATIONS, HEAD, PAGE, PASSES, Case, overview, ratios, words
from tests.own.one_process import Commands

STALE = "reports/llm.md is stale: run `make llm` and commit what changed"


def sections() -> dict[Case, str]:
    parts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:]
    named = [(re.match(r"## (\S+), a (\S+ \S+) of 1 x ([\d,]+) tokens", part), part) for part in parts]
    passes = {step: pass_ for pass_, step in PASSES.items()}
    return {(passes[m[2]], m[1], int(m[3].replace(",", ""))): part for m, part in named if m is not None}


SECTIONS = sections()


def row(case: Case, formula: str) -> tuple[Fraction, dict[str, int]]:
    """FLOPs per token, and the amounts of the causes per step."""
    match = re.search(rf"^\| {re.escape(formula)} \| ([\d,.]+) \| [^|]+ \| (.+) \|$", SECTIONS[case], re.MULTILINE)
    assert match is not None, (case, formula)
    causes = re.findall(r"([a-z-]+) ([+-][\d,]+)", match[2])
    return Fraction(match[1].replace(",", "")), {cause: int(amount.replace(",", "")) for cause, amount in causes}


def config(name: str) -> dict[str, Any]:
    stated: dict[str, Any] = json.loads((CONFIGURATIONS / f"{name}.json").read_text())
    return stated


def test_the_overview_follows_from_the_sections() -> None:
    assert PAGE.read_text() == HEAD + overview(SECTIONS) + "".join(SECTIONS.values()), STALE
    exact = [key for key in CASES if "exact" in ratios(SECTIONS[key]).values()]
    assert ("training", "llama-3-8b", 8192) in exact
    assert [key for key in CASES if ("Right for this model" in SECTIONS[key]) != (key in exact)] == []


@pytest.mark.parametrize("case", CASES)
def test_what_ran_is_a_closed_form_of_the_configuration(case: Case) -> None:
    pass_, name, seq = case
    assert row(case, "*what ran*")[0] * seq == flops(config(name), pass_, seq)


@pytest.mark.frameworks
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(("training", "mixtral-8x7b", 2048), marks=pytest.mark.heavy),
        pytest.param(("forward", "gpt2", 1024), marks=pytest.mark.matrix),
    ],
)
def test_a_section_made_again_is_the_same(case: Case, llm: Commands) -> None:
    pass_, name, seq = case
    done = llm(*words(pass_, CONFIGURATIONS / f"{name}.json", seq))
    assert (done.returncode, f"#{done.stdout.strip()}") == (0, SECTIONS[case].strip()), STALE + done.stderr


POSITIONS = 16
TINY = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2, "max_position_embeddings": POSITIONS}
TABLES = {
    "bert": {"num_hidden_layers": 1, "intermediate_size": 12, "type_vocab_size": 2, "is_decoder": True},
    "opt": {"num_hidden_layers": 1, "ffn_dim": 12, "word_embed_proj_dim": 8},
    "llama": {"num_hidden_layers": 1, "intermediate_size": 12},
}
"""A table of positions beside one of token types; one with two rows more than positions; and none."""


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_positions_ends_a_sequence(kind: str, llm: Commands, tmp_path: Path) -> None:
    file = tmp_path / f"{kind}.json"
    file.write_text(json.dumps({"model_type": kind, **TINY, **TABLES[kind]}))
    whole, more = (llm(*words("training", file, seq)) for seq in (POSITIONS, POSITIONS + 1))
    assert whole.returncode == 0, whole.stderr
    if kind == "llama":
        assert more.returncode == 0, more.stderr
    else:
        assert (more.returncode, more.stderr.count("\n")) == (2, 1), more.stderr
        assert f"has a table of {POSITIONS} positions: give --seq {POSITIONS}, or fewer" in more.stderr
