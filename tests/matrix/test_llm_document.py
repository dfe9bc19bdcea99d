"""docs/llm.md: every command prints what the page shows, in an environment with transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.matrix import image_forms as images
from tests.matrix import test_llm_experts as experts
from tests.matrix.llm_forms import flops, latent
from tests.own.documents import consoles, not_printed
from tests.own.one_process import Commands

ROOT = Path(__file__).parents[2]
CONSOLES = consoles((ROOT / "docs" / "llm.md").read_text())


def configuration() -> dict[str, str]:
    """The file that the page shows, by its name."""
    return {command.removeprefix("cat "): parts[0] for command, parts in CONSOLES if command.startswith("cat ")}


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("command", "parts"), [c for c in CONSOLES if c[0].startswith("reconcile ")], ids=lambda c: str(c)[:40]
)
def test_the_page_shows_what_is_printed(command: str, parts: list[str], llm: Commands, tmp_path: Path) -> None:
    for name, text in configuration().items():
        (tmp_path / name).write_text(text)
    done = llm(*command.split()[1:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not_printed(parts, done.stdout) == []


H, KEYS, F, V, L, T, R = 64, 32, 192, 1000, 2, 512, 8
PROJECTIONS = 2 * H * H + 2 * H * KEYS
WEIGHTS = L * (PROJECTIONS + 3 * H * F) + H * V
PAIRS = L * 2 * H
"""Of both products of attention, for one token and one key, in all layers."""
ADAPTERS = L * R * (2 * 2 * H + 2 * (H + KEYS) + 3 * (H + F))
FIRST = H * (H + 2 * KEYS)
NORMS = (2 * L + 1) * H


def test_its_numbers_are_closed_forms() -> None:
    text = " ".join((ROOT / "docs" / "llm.md").read_text().split())
    whole, packed = 6 * (WEIGHTS + PAIRS * T), 6 * (WEIGHTS + PAIRS * T // 4)
    adapted = 2 * (2 * WEIGHTS - FIRST + 3 * ADAPTERS - 3 * R * H + 3 * PAIRS * T)
    assert [f"what ran {flops:,} 1 " in text for flops in (whole, packed, adapted)] == [True] * 3
    assert f"MFU: {whole:,} FLOPs per token ({T * whole:,} per step)" in text
    assert f"nanochat {whole:,} {whole / packed:.4f} attention-across-documents" in text
    assert f"trains {ADAPTERS:,} of {WEIGHTS + H * V + NORMS + ADAPTERS:,} parameters" in text
    assert f"-{2 * T * (WEIGHTS + FIRST):,} frozen-not-discounted" in text
    assert f"+{2 * T * (3 * ADAPTERS - 3 * R * H):,} op-not-counted" in text
    assert f"+{6 * PAIRS * T * T:,} attention-left-out" in text


def test_sparse_attention_and_both_sides_are_closed_forms() -> None:
    page = (ROOT / "docs" / "llm.md").read_text()
    text = " ".join(page.split())
    found = configuration()
    glm = json.loads(found["glm.json"])
    ran = flops(glm, "training", T)
    weights, pairs = latent(glm)
    attention = 6 * glm["num_hidden_layers"] * pairs * T
    h, experts = glm["hidden_size"], glm["num_experts_per_tok"] + 1
    norms = glm["q_lora_rank"] + glm["kv_lora_rank"]
    layer = weights + norms + 3 * h * glm["moe_intermediate_size"] * experts + pairs * T // 2
    further = 6 * T * (layer + 3 * h + 2 * h * h + h * glm["vocab_size"])
    assert f"-{further:,} prediction-layers-counted, per step" in text
    assert f"+{attention * T // 2:,} attention-halved, per step" in text
    assert f"+{(attention - attention * glm['index_topk'] // T) * T:,} attention-sparse, per step" in text
    chosen = attention * glm["index_topk"] // T
    assert f"Attention on all keys ran, {attention:,}, with" in text
    assert f"makes that {chosen:,}, and {ran // T - attention + chosen:,} of the whole step" in text
    t5 = json.loads(found["t5.json"])
    h, layers, feed = t5["d_model"], t5["num_layers"], 2 * t5["d_model"] * t5["d_ff"]
    both = layers * (3 * 4 * h * h + 2 * feed) + h * t5["vocab_size"]
    for told in (ran // T, 6 * (both + layers * 3 * 2 * h * T)):
        assert f"what ran {told:,} 1 " in text


@pytest.mark.parametrize("seq", [4096, 32768, 131072])
def test_the_rows_of_glm52_are_closed_forms(seq: int) -> None:
    """The pull request's figures are held to its formula by tests/adapters/counters/formulas/test_indexed.py."""
    glm = json.loads((ROOT / "tests/matrix/llm/glm-5.2.json").read_text())
    ran, (_, pairs) = flops(glm, "training", seq), latent(glm)
    attention = 6 * glm["num_hidden_layers"] * pairs * seq**2
    sparse = ran - attention + attention * glm["index_topk"] // seq
    (row,) = (line for line in (ROOT / "docs" / "llm.md").read_text().splitlines() if line.startswith(f"| {seq:,} |"))
    assert row.endswith(f"| {ran / seq / 1e9:,.1f} | {sparse / seq / 1e9:,.1f} |")


def test_images_are_closed_forms() -> None:
    page = (ROOT / "docs" / "llm.md").read_text()
    text = " ".join(page.split())
    found = {name: json.loads(stated) for name, stated in configuration().items()}
    ran = {name: images.CASES[name].flops("training") for name in ("vit", "llava", "dit")}
    assert (found["vit.json"], found["dit.json"]) == (images.CASES["vit"].stated, images.CASES["dit"].stated)
    assert [f"what ran {ran[name]:,} 1 " in text for name in ("vit", "dit")] == [True] * 2
    language = 6 * images.LANGUAGE
    ratio = f"{language / ran['llava']:.4f}"
    assert f"trl {language // images.T:,} {ratio} vision-left-out +{ran['llava'] - language:,} vision-left-out," in text
    for name, multiplied in (
        ("DiT-XL/2", images.dit(1152, 28, 32)),
        ("FLUX.1-dev", images.flux(3072, 19, 38, 512, (64, 4096, 768))),
    ):
        (row,) = (line for line in page.splitlines() if line.startswith(f"| {name}, "))
        assert row.split("|")[2].strip() == f"{sum(multiplied) / 1e9:,.2f} G"


def test_experts_with_a_capacity_are_closed_forms() -> None:
    text = " ".join((ROOT / "docs" / "llm.md").read_text().split())
    tokens, stated = 40, json.loads(configuration()["switch.json"])
    assert stated == experts.SMALL
    dropped = tokens - experts.E * experts.CAPACITY
    lost = 6 * 2 * experts.SPARSE * 2 * experts.H * experts.F * dropped
    attention = 6 * 3 * experts.L * 2 * experts.N * experts.D * tokens**2
    assert f"what ran {6 * experts.forward(stated, tokens) / tokens:,.2f} 1 " in text
    assert f"+{attention:,} attention-left-out, per step -{lost:,} expert-capacity, per step" in text
    assert f"so that {dropped} of {tokens} meet none" in text
