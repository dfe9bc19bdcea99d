"""reports/trainers.md: what ran by closed forms of the configurations, and every number of four trainers explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.matrix.llm_forms import flops

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "reports/trainers.md").read_text().splitlines()
SEQ = 4096
QUOTED = {
    "llama-3-8b": (48_249_176_064, 51_401_195_520, 51_470_401_536, 48_249_176_064),
    "qwen3-0.6b": (4_985_192_448, 5_918_687_232, 6_394_478_592, 4_985_192_448),
    "qwen3-30b-a3b": (23_006_281_728, 24_948_768_768, 27_913_617_408, 23_006_281_728),
    "qwen3-next": (22_739_681_280, 24_739_381_248, 24_080_351_232, 22_739_681_280),
    "deepseek-v3": (249_811_304_448, 256_009_961_472, 293_433_114_624, 259_992_950_784),
    "gpt-oss-20b": (22_912_164_864, 26_363_363_328, 24_133_100_544, 22_911_869_952),
}
"""FLOPs per token by Automodel, verl, VeOmni and Megatron-Bridge, called by hand; verl counts Qwen3-Next as Qwen3.5."""
CARDS = {
    "qwen3-30b-a3b": ((199.120, 8654.602), (487.880, 21205.047)),
    "deepseek-v3": ((276.030, 1061.206), (1231.040, 4734.856), (1597.310, 6143.635)),
    "gpt-oss-20b": ((117.010, 5851.199),),
}
"""TFLOP/s and tokens/s of a device in pretraining with 4,096 tokens, of the last ten steps: NVIDIA-NeMo/Megatron-Bridge
067f987d, examples/model_verification_cards/*/card.yaml, last_10_steps_model_tflops_per_gpu_avg and the line after it."""
CARD_VOCABULARY = {"gpt-oss-20b": 32_000}
"""The sizes of vocabularies that are not the model's: the card's command names a tokenizer of SentencePiece with 32,000."""


def list_cells() -> list[list[str]]:
    """The cells of each row of each table."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.startswith("|")]


def test_what_ran_is_a_closed_form_and_the_functions_give_what_they_give() -> None:
    rows = {row[0]: row[1:7] for row in list_cells() if len(row) == 8 and row[0] in QUOTED}
    assert set(rows) == set(QUOTED)
    for name, (tokens, ran, *functions) in rows.items():
        stated = json.loads((ROOT / f"tests/matrix/llm/{name}.json").read_text())
        assert int(tokens.replace(",", "")) == SEQ
        assert int(ran.replace(",", "")) == round(flops(stated, "training", SEQ) / SEQ)
        given = tuple(int(text.replace(",", "")) for text in functions)
        assert given == QUOTED[name]


def test_nothing_is_left_unexplained() -> None:
    why = [row[3] for row in list_cells() if len(row) == 4 and row[0] in QUOTED]
    assert len(why) == 4 * len(QUOTED)
    assert [text for text in why if "residual" in text] == []
    assert [line for line in LINES if re.search(r"not traced", line)] == []


def test_the_cards_of_megatron_bridge_print_what_its_function_gives() -> None:
    for name, runs in CARDS.items():
        stated = json.loads((ROOT / f"tests/matrix/llm/{name}.json").read_text())
        fewer = stated["vocab_size"] - CARD_VOCABULARY.get(name, stated["vocab_size"])
        given = QUOTED[name][-1] - 6 * stated["hidden_size"] * fewer
        for tera, tokens in runs:
            # TFLOP/s are a mean of rates and tokens/s those of the mean time, which is never more.
            assert -1e-5 < tera * 1e12 / tokens / given - 1 < 1e-3, name
