"""Formulas of trainers: their causes on a small decoder, and their totals beside figures that their sources print."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.adapters.counters.formulas.table import FORMULAS
from reconcile.adapters.counters.formulas.terms import PARAMETER, WHOLE, count_whole
from reconcile.core.causes import Cause
from tests.adapters.counters.formula_decoders import TOKENS, B, D, Decoder, F, H, K, L, N, T, V
from tests.adapters.counters.test_formulas import causes_of, causes_of_each

NARROW = H // N
"""The width of a head that formulas assume; the heads are D wide."""


def layer(d: int = D, k: int = K, m: int = 3, f: int = F) -> int:
    """Multiply-adds of all layers' weights."""
    return L * TOKENS * (H * (N * d + 2 * k * d) + N * d * H + m * H * f)


def pairs(d: int = D) -> int:
    """Multiply-adds of all layers' attention on T^2 pairs."""
    return L * B * N * 2 * d * T**2


HEAD = TOKENS * H * V
PADDED = TOKENS * H * 128
NORMS = TOKENS * 2 * H
"""One norm: there is one in each layer, and one before the head."""
SOFTMAX = L * 3 * B * N * T**2
ALL = layer() + 2 * HEAD + (L + 1) * NORMS
WIDE = 6 * (pairs() - pairs(NARROW))
WIDE_WEIGHTS = 6 * (layer() - layer(NARROW))
PLAIN = layer(NARROW, N, 2, 4 * H)
"""12 h^2 per layer and token."""
DIFFERS, WIDTH, HALF, LOOKUP = (
    Cause.FORMULA_DIFFERS, Cause.WIDTH_ASSUMED, Cause.ATTENTION_HALVED, Cause.LOOKUP_AS_PRODUCT,
)  # fmt: skip
AGAIN = Cause.RECOMPUTATION_ASSUMED
NORM, HEADLESS = Cause.PARAMETERS_AS_PRODUCTS, Cause.HEAD_LEFT_OUT

TRUTH = 6 * (layer() + HEAD + pairs())
"""A training step of the decoder: three passes of every product."""

STATED = {"model_type": "qwen3", "kind": "LlamaConfig"}
"""What verl and nemo go by, and no other."""
DENSE: dict[str, dict[str, int]] = {
    # formula: what it leaves out (above 0) or adds, by cause
    "aws": {LOOKUP: -6 * HEAD, NORM: -6 * (L + 1) * NORMS, Cause.ATTENTION_LEFT_OUT: 6 * pairs()},
    "megatron-bridge": {HALF: 3 * pairs(), DIFFERS: 6 * (HEAD - PADDED)},
    "maxtext": {HALF: 3 * pairs()},
    "nanochat": {WIDTH: WIDE},
    "levanter": {WIDTH: WIDE_WEIGHTS + WIDE, DIFFERS: -3 * SOFTMAX},
    "litgpt": {LOOKUP: -6 * HEAD, NORM: -6 * (L + 1) * NORMS, WIDTH: WIDE, DIFFERS: -4 * pairs(NARROW)},
    "torchtitan-main": {NORM: -6 * (L + 1) * NORMS},
    "torchtitan-hf": {LOOKUP: -6 * HEAD, NORM: -6 * (L + 1) * NORMS, DIFFERS: 3 * pairs()},
    "olmo-core": {NORM: -6 * NORMS},
    "llm-foundry": {NORM: -6 * (L + 1) * NORMS, WIDTH: WIDE},
    "verl": {LOOKUP: -6 * HEAD, HALF: 3 * pairs()},
    "trl": {},
    "trl-1.9": {LOOKUP: -6 * HEAD},
    "nemo": {WIDTH: WIDE_WEIGHTS + WIDE, HALF: 3 * pairs(NARROW)},
    "nemo-llama3": {WIDTH: WIDE_WEIGHTS + WIDE, HALF: 3 * pairs(NARROW), DIFFERS: 6 * (HEAD - TOKENS * H * 128256)},
    "chinchilla": {
        WIDTH: WIDE_WEIGHTS + WIDE,
        LOOKUP: -6 * HEAD,
        DIFFERS: 6 * (layer(NARROW) - layer(NARROW, N, 2)) - 3 * SOFTMAX,
    },
    "chinchilla-ipynb": {
        WIDTH: WIDE_WEIGHTS + WIDE,
        HEADLESS: 6 * HEAD,
        DIFFERS: 6 * (layer(NARROW) - layer(NARROW, N, 2)) - 3 * SOFTMAX,
    },
    "cookbook": {
        WIDTH: WIDE_WEIGHTS + WIDE,
        Cause.OP_NOT_COUNTED: 4 * HEAD,
        DIFFERS: 6 * (layer(NARROW) - layer(NARROW, f=4 * H)) - 4 * H * TOKENS,
        AGAIN: -2 * (layer(NARROW, f=4 * H) + pairs(NARROW)),
    },
    "cookbook-plain": {
        WIDTH: WIDE_WEIGHTS + WIDE,
        Cause.OP_NOT_COUNTED: 4 * HEAD,
        DIFFERS: 6 * (layer(NARROW) - layer(NARROW, f=4 * H)) - 4 * H * TOKENS,
    },
    "gpt-neox": {WIDTH: WIDE_WEIGHTS + WIDE, DIFFERS: 6 * (layer(NARROW) - PLAIN + HEAD) - 9 * PADDED // 2},
    "gpt-neox-hfu": {
        WIDTH: WIDE_WEIGHTS + WIDE,
        DIFFERS: 6 * (layer(NARROW) + HEAD - PADDED - PLAIN),
        AGAIN: -2 * (PLAIN + pairs(NARROW)),
    },
}


def test_what_it_leaves_out_or_adds_has_causes() -> None:
    expected = {formula: (TRUTH - sum(causes.values()), causes) for formula, causes in DENSE.items()}
    assert causes_of_each(Decoder(**STATED), DENSE) == expected


def test_a_mask_leaves_the_diagonal_whole_and_the_part_says_so() -> None:
    half = L * B * N * NARROW * T * (T + 1)
    causes = {WIDTH: WIDE // 3, HALF: 2 * (pairs(NARROW) - half)}
    assert causes_of(Decoder(), "nanochat-prefill", pass_="forward") == (2 * (layer() + HEAD + half), causes)


def test_a_frozen_weight_is_two_passes_where_the_source_says_so() -> None:
    frozen = 2 * TOKENS * H * F
    expected = {name: (TRUTH - frozen - sum(DENSE[name].values()), DENSE[name]) for name in ("aws", "litgpt")}
    assert causes_of_each(Decoder(frozen=True), expected) == expected


def counted(formula: str, facts: dict[str, Any], layers: list[dict[str, Any]] | None = None) -> int:
    """A training step by the formula's terms alone, from facts as a configuration states them."""
    total = 0
    for term in FORMULAS[formula].terms:
        assert term.kind != PARAMETER
        whole = term.kind in ("head", WHOLE)
        for own in [{}] if whole else layers or [{}] * facts["L"]:
            total += count_whole(term, {**facts, **own}) * term.passes[1] * (1 if term.plain else 2)
    return total


def decoder(L: int, h: int, n: int, k: int, f: int, V: int, steps: int, **more: Any) -> dict[str, Any]:
    """The facts of a decoder at one sequence of ``steps`` tokens, as its configuration states them."""
    d = more.pop("d", h // n)
    facts = {"L": L, "h": h, "n": n, "k": k, "d": d, "dqk": d, "dv": d, "f": f, "V": V, "m": 3}
    stated = {"B": 1, "T": steps, "tokens": steps, "moe": False, "tied": False, "index": 0, "sliding": 0}
    return {**facts, **stated, "model_type": "llama", "whole": "llama", "config_class": "LlamaConfig", **more}


LLAMA3 = (32, 4096, 32, 8, 14336, 128256, 8192)
SOURCES_SAY = {
    # per token of a training step of Llama-3-8B, by the sources' own functions run on a stub of its configuration
    "megatron": 51_470_401_536,
    "megatron-bridge": 51_470_401_536,
    "maxtext": 51_470_401_536,
    "nemo": 51_470_401_536,
    "nemo-llama3": 51_470_401_536,
    "verl": 54_622_420_992,
    "trl": 57_912_852_480,
    "trl-1.9": 61_064_871_936,
    "levanter": 57_988_349_952,
    "chinchilla": 54_697_918_464,
    "chinchilla-ipynb": 48_393_879_552,
    "cookbook": 80_507_584_512,
    "cookbook-plain": 60_643_360_768,
    "gpt-neox": 53_903_622_144,
    "gpt-neox-hfu": 71_871_496_192,
}


def test_on_llama_it_is_the_number_of_its_source() -> None:
    steps = LLAMA3[-1]
    assert {name: counted(name, decoder(*LLAMA3)) for name in SOURCES_SAY} == {
        name: number * steps for name, number in SOURCES_SAY.items()
    }


def experts(fe: int, a: int, E: int, ns: int = 0) -> dict[str, Any]:
    return {"moe": True, "fe": fe, "a": a, "E": E, "ns": ns}


LATENT = {"d": 0, "dqk": 192, "dv": 128, "rkv": 512, "drope": 64}
DEEPSEEK = decoder(
    61, 7168, 128, 128, 18432, 129280, 0, model_type="deepseek_v3", whole="deepseek_v3", **LATENT, rq=1536
)
VERL = {
    # the configuration in tests/utils/test_flops_counter.py of verl, its layers if they differ, and the figures there: of
    # sequences of 512, 1,024 and 2,048 tokens, and of three of 4,096
    "llama": (decoder(32, 4096, 32, 32, 11008, 32000, 0), None, 149_226_491_215_872, 536_372_695_793_664),
    "qwen2": (decoder(28, 3584, 28, 4, 18944, 152064, 0), None, 167_073_690_943_488, 591_764_889_010_176),
    "qwen3": (decoder(36, 4096, 32, 8, 12288, 151936, 0), None, 180_997_438_046_208, 648_394_032_807_936),
    "mistral": (decoder(40, 5120, 32, 8, 32768, 131072, 0, d=128), None, 512_303_699_066_880, 1_787_393_589_903_360),
    "qwen3_moe": (
        decoder(48, 2048, 32, 4, 0, 151936, 0, d=128),
        [experts(768, 8, 128)] * 48,
        78_593_069_678_592,
        306_570_470_621_184,
    ),
    "deepseek_v3": (DEEPSEEK, [{}] * 3 + [experts(2048, 8, 256, 1)] * 58, 848_766_538_088_448, 3_145_850_406_567_936),
}


@pytest.mark.parametrize("model", VERL)
def test_it_is_the_figure_in_the_tests_of_verl(model: str) -> None:
    facts, layers, *figures = VERL[model]
    for lengths, figure in zip(((512, 1024, 2048), (4096,) * 3), figures, strict=True):
        found = [counted("verl", {**facts, "whole": model, "T": t, "tokens": t}, layers) for t in lengths]
        assert sum(found) == figure


NEMO = {
    # the configuration in tests/unit_tests/utils/test_flops_utils.py of NeMo Automodel, its layers, and the figure there
    "GPT2Config": (decoder(16, 2048, 16, 16, 8192, 50257, 1024, B=2, tokens=2048, m=2), None, 11_572_680_327_168),
    "LlamaConfig": (decoder(32, 4096, 32, 32, 11008, 32000, 2048), None, 84_486_301_679_616),
    "LlamaConfig, grouped": (decoder(32, 4096, 32, 8, 14336, 32000, 2048), None, 90_671_054_585_856),
    "Qwen3Config": (decoder(32, 4096, 32, 8, 14336, 32000, 2048, d=256), None, 110_462_263_885_824),
    "MixtralConfig": (decoder(32, 4096, 32, 32, 14336, 32000, 2048), [experts(14336, 2, 8)] * 32, 169_835_891_785_728),
    "DeepseekV3Config, Moonlight": (
        decoder(27, 2048, 16, 16, 11264, 163840, 2048, **LATENT),
        [{}] + [experts(1408, 6, 64, 1)] * 26,
        30_625_801_175_040,
    ),
    "DeepseekV3Config": (
        {**DEEPSEEK, "V": 151936, "T": 1024, "tokens": 1024},
        [{}] * 3 + [experts(2048, 8, 256, 1)] * 58,
        233_225_179_889_664,
    ),
}


@pytest.mark.parametrize("model", NEMO)
def test_it_is_the_figure_in_the_tests_of_automodel(model: str) -> None:
    facts, layers, figure = NEMO[model]
    assert counted("nemo", {**facts, "config_class": model.partition(",")[0]}, layers) == figure


BRIDGE = {
    # the recipes in tests/unit_tests/training/utils/test_flop_utils.py of Megatron-Bridge, with three digits there
    "4.22e14": (decoder(*LLAMA3), None),
    "3.68e15": (decoder(80, 8192, 64, 8, 28672, 128256, 8192), None),
    "9.42e13": (decoder(48, 2048, 32, 4, 6144, 151643, 4096, d=128), [experts(768, 8, 128)] * 48),
    "6.06e14": (decoder(94, 4096, 64, 4, 12288, 151643, 4096, d=128), [experts(1536, 8, 128)] * 94),
}


@pytest.mark.parametrize("figure", BRIDGE)
def test_it_is_the_figure_in_the_tests_of_megatron_bridge(figure: str) -> None:
    facts, layers = BRIDGE[figure]
    assert f"{counted('megatron-bridge', facts, layers):.2e}".replace("+", "") == figure
