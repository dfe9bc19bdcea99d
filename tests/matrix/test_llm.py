"""reports/llm.md: nine full-size models, what ran by closed forms of their configurations, and the disputed numbers by cause."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.llm_forms import flops, products
from tests.matrix.llm_page import (
    CASES,
    CONFIGURATIONS,
    HEAD,
    PAGE,
    PASSES,
    Case,
    by_source,
    overview,
    ratios,
    words,
)
from tests.matrix.llm_quoted import MODELS as QUOTED_MODELS
from tests.matrix.llm_quoted import QUOTED, SEQ
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


def test_every_model_is_there_at_every_length() -> None:
    assert list(SECTIONS) == CASES
    assert [key for key, text in SECTIONS.items() if "residual" in text] == []


@pytest.mark.parametrize("case", CASES)
def test_what_ran_is_a_closed_form_of_the_configuration(case: Case) -> None:
    pass_, name, seq = case
    assert row(case, "*what ran*")[0] * seq == flops(config(name), pass_, seq)


@pytest.mark.parametrize("case", CASES)
def test_each_formula_and_its_causes_give_what_ran(case: Case) -> None:
    pass_, name, seq = case
    names = re.findall(r"^\| ([a-z0-9.-]+) \|", SECTIONS[case], re.MULTILINE)
    names.remove("formula")
    assert len(names) >= (14 if pass_ == "training" else 4)
    told = {n: row(case, n) for n in names}
    ran = flops(config(name), pass_, seq)
    stated = {n: Fraction(ran - sum(causes.values()), seq) for n, (_, causes) in told.items()}
    assert [n for n, (token, _) in told.items() if token != round(stated[n], 2)] == []  # two digits are printed


def test_the_disputed_numbers() -> None:
    c = config("llama-3-8b")
    h, layers, vocabulary = c["hidden_size"], c["num_hidden_layers"], c["vocab_size"]
    table, norms = h * vocabulary, (2 * layers + 1) * h
    llama = ("training", "llama-3-8b", 8192)
    ran, _ = row(llama, "*what ran*")
    nanogpt, causes = row(llama, "nanogpt")
    assert (table, norms, nanogpt - ran) == (525_336_576, 266_240, 3_153_616_896)
    assert causes == {"lookup-as-product": -6 * table * 8192, "parameters-as-products": -6 * norms * 8192}
    assert row(llama, "trl") == (ran, {})
    assert row(llama, "torchtitan")[1] == {"parameters-as-products": -6 * norms * 8192}
    qwen = config("qwen3-0.6b")
    wide = qwen["num_attention_heads"] * qwen["head_dim"] - qwen["hidden_size"]
    lost = (
        12 * qwen["num_hidden_layers"] * wide * 2048
    )  # per token: attention is as wide as its heads, not as the model
    assert row(("training", "qwen3-0.6b", 2048), "nanogpt")[1]["width-assumed"] == lost * 2048
    heads, keys = qwen["num_attention_heads"], qwen["num_key_value_heads"]
    matrices = (
        12 * qwen["num_hidden_layers"] * qwen["hidden_size"] * wide * (heads + keys) // heads
    )  # h (q + 2 k d) + q h
    _, nemo = row(("training", "qwen3-0.6b", 2048), "nemo-llama3")
    assert nemo["width-assumed"] == (lost + matrices) * 2048
    assert nemo["attention-halved"] == 6 * qwen["num_hidden_layers"] * qwen["hidden_size"] * 2048 * 2048
    assert nemo["formula-differs"] == 6 * qwen["hidden_size"] * (qwen["vocab_size"] - 128256) * 2048


def other_readings(c: dict[str, Any]) -> dict[str, int]:
    """FLOPs per token that the quoted numbers stand for, where they are not the source's."""
    h, layers, heads, seq = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"], SEQ
    logits = h * c["vocab_size"]
    weights, pairs = products(c)
    ran = 6 * (weights + pairs * seq)
    everything = weights + (2 * layers + 1) * h + (0 if c["tie_word_embeddings"] else logits)
    return {
        "cookbook": ran - 4 * logits + 4 * h,
        "olmo-core": ran + 6 * (2 * layers + 1) * h,
        "litgpt": 6 * everything + 12 * layers * h * seq,
        "chinchilla": ran + 6 * logits + 9 * heads * layers * seq,
        "gpt-neox": 6 * everything + 60 * layers * h * seq,
    }


@pytest.mark.parametrize("model", list(enumerate(QUOTED_MODELS)), ids=QUOTED_MODELS)
def test_who_is_right_is_said_of_each_ratio_unlike_the_sources(model: tuple[int, str]) -> None:
    at, name = model
    sources, read = by_source(SECTIONS["training", name, SEQ]), other_readings(config(name))
    ran, _ = row(("training", name, SEQ), "*what ran*")
    assert {q.formula for q in QUOTED if q.why} == set(read)
    assert [q.name for q in QUOTED if q.ratios[at] != sources[q.formula] and not q.why] == []
    told = {q.formula: q.ratios[at] for q in QUOTED if q.why}
    assert {formula: f"{float(count / ran):.4f}" for formula, count in read.items()} == told


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
    assert (done.returncode, done.stdout.strip()) == (0, SECTIONS[case].strip()), STALE + done.stderr


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
