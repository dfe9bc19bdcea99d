"""Models that read or make images, from small configurations and at full size: what `reconcile llm` records is a closed form."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.matrix.image_forms import (
    CASES,
    DIT,
    FLUX,
    LABELS,
    LANGUAGE,
    PIXELS,
    VF,
    VH,
    WAVES,
    D,
    F,
    H,
    K,
    L,
    N,
    P,
    T,
    dit,
    flux,
    layer,
)
from tests.own.one_process import Done

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]


@pytest.mark.parametrize("pass_", ["forward", "training"])
@pytest.mark.parametrize("name", CASES)
def test_what_ran_is_a_closed_form(name: str, pass_: str, count_llm: Callable[..., Done]) -> None:
    case = CASES[name]
    done = count_llm(case.stated, *case.words, "--pass", pass_, "--format", "json")
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["ran"] == case.flops(pass_)
    numbers = [f for f in page["formulas"] if f["step"] is not None]
    assert [f["name"] for f in numbers if f["residual"] or f["step"] + sum(f["causes"].values()) != page["ran"]] == []
    assert [f["name"] for f in page["formulas"] if f["step"] is None and not f["reason"]] == []
    assert len(numbers) >= 3
    assert page["per"] == ("token" if "--images" in case.words else "image")


def test_each_cause_of_6n_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """Of a classifier: the head reads one token, the patches are one less than the tokens, and pixels need no gradient."""
    tokens, matrix = P + 1, PIXELS * H
    case = CASES["vit"]
    page = json.loads(count_llm(case.stated, "--format", "json").stdout)
    (causes,) = (f["causes"] for f in page["formulas"] if f["name"] == "formula:6n")
    vectors = tokens * H + H + H + 2 * H + LABELS + L * (4 * H + F + H + 4 * H)
    assert causes == {
        "attention-left-out": 6 * L * 2 * H * tokens**2,
        "backward-assumed": -2 * matrix * tokens,
        "parameters-as-products": -6 * vectors * tokens,
        "tokens-assumed": -6 * H * LABELS * (tokens - 1) - 4 * matrix,
    }


def test_each_cause_of_a_pooled_query_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """The weights of nn.MultiheadAttention are in one parameter and read apart: one query, P keys and values, one output. The
    query itself is trained: its gradient is one more product in the module of attention."""
    page = json.loads(count_llm(CASES["siglip"].stated, "--format", "json").stdout)
    (causes,) = (f["causes"] for f in page["formulas"] if f["name"] == "formula:6n-nonembedding")
    one_row = (2 * H * H + 2 * H * F) * (P - 1)
    assert causes["tokens-assumed"] == -6 * one_row - 2 * H * H
    assert causes["attention-left-out"] == 6 * (L * 2 * H * P * P + 2 * H * P) + 2 * H * H
    assert causes["backward-assumed"] == -2 * PIXELS * H * P


def test_a_formula_of_layers_has_no_term_for_vision(count_llm: Callable[..., Done]) -> None:
    case = CASES["llava"]
    page = json.loads(count_llm(case.stated, *case.words, "--format", "json").stdout)
    causes = {f["name"]: f["causes"] for f in page["formulas"]}
    vision = case.flops("training") - 6 * LANGUAGE
    assert causes["formula:trl"] == {"vision-left-out": vision}
    assert causes["formula:megatron"]["vision-left-out"] == vision
    assert causes["formula:6n"]["attention-left-out"] == 6 * L * T * T * 2 * N * D
    assert (page["seq"], page["image_tokens"], page["images"]) == (T, P, 1)
    alone = json.loads(count_llm(case.stated, "--seq", str(T), "--format", "json").stdout)
    assert (alone["ran"], alone["images"]) == (6 * LANGUAGE, 0)


def test_adapters_are_of_the_encoder_as_well(count_llm: Callable[..., Done]) -> None:
    """Pixels and patches need no gradient, so the first layer's queries, keys and values need none of their input. The last layer
    of LLaVA's encoder runs in vain, with its adapters."""
    rank, tokens, case = 4, P + 1, CASES["llava"]
    vision = tokens * rank * (4 * 2 * VH + 2 * (VH + VF))
    weights = tokens * (4 * VH * VH + 2 * VH * VF)
    first = tokens * 3 * VH * (VH + rank)
    before = 2 * weights + 3 * (layer(tokens, VH, VF) - weights) + 3 * vision - first
    between = 2 * P * (VH * H + H * H) + 3 * P * rank * (VH + H + 2 * H)
    pairs = L * T * T * 2 * N * D
    adapters = T * L * rank * (2 * (H + N * D) + 2 * (H + K * D) + 3 * (H + F))
    once = P * PIXELS * VH + layer(tokens, VH, VF) + vision
    page = json.loads(count_llm(case.stated, *case.words, "--lora", str(rank), "--format", "json").stdout)
    assert page["ran"] == 2 * (once + before + between + 2 * (LANGUAGE - pairs) + 3 * pairs + 3 * adapters)


def test_a_tower_beside_a_text_is_the_vision_config(count_llm: Callable[..., Done]) -> None:
    both = {"model_type": "clip", "vision_config": CASES["clip"].stated}
    page = json.loads(count_llm(both, "--format", "json").stdout)
    assert (page["model"], page["ran"]) == ("clip (its vision_config)", CASES["clip"].flops("training"))


@pytest.mark.parametrize(
    ("stated", "words", "why"),
    [
        (CASES["vit"].stated, ("--seq", "8"), "reads images alone, whose sizes it states: leave --seq out"),
        (CASES["vit"].stated, ("--lora", "8"), "leave --lora out; --batch is its images"),
        (CASES["vit"].stated, ("--images", "1"), "so its model reads no images: leave --images out"),
        (CASES["llava"].stated, ("--images", "1", "--seq", "16"), "the images of a sequence have 16 tokens"),
        (CASES["llava"].stated, ("--images", "1", "--lengths", "8,8"), "leave --lengths or --images out"),
        (CASES["qwen2-vl"].stated, ("--images", "1"), "has any size: give --image-size, such as 448x672"),
        (CASES["qwen2-vl"].stated, ("--images", "1", "--image-size", "40"), "a multiple of 16 pixels on each side"),
        (CASES["qwen2-vl"].stated, ("--image-size", "32x48"), "is that of --images: give both"),
        (CASES["llava"].stated, ("--images", "1", "--image-size", "32"), "states the size of an image: leave --image-size out"),
        (CASES["vit"].stated, ("--image-size", "32"), "leave --image-size out; --batch is its images"),
        (CASES["dit"].stated, ("--image-size", "32"), "is the size of its images: leave --image-size out"),
        (CASES["flux"].stated, ("--seq", "8", "--image-size", "40"), "has a multiple of 16 pixels on each side"),
        (CASES["vit"].stated, ("--image-size", "0x8"), "0x8 is no size: give height x width in pixels, such as 448x672"),
        ({"model_type": "swin"}, (), "do not share one sequence of tokens: count it with reconcile run --torch"),
        (CASES["dit"].stated, ("--seq", "8"), "reads no text: leave --seq out"),
        (CASES["sd3"].stated, (), "reads a text: give --seq, the number of its tokens"),
        ({"_class_name": "UNet2DConditionModel"}, (), "names UNet2DConditionModel, which is no transformer of diffusers"),
        ({"_class_name": "WanTransformer3DModel", "num_layers": 1}, ("--seq", "8"), "states no width of a text: count it with"),
        ({"_class_name": "CogVideoXTransformer3DModel", "num_layers": 1}, ("--seq", "8"), "no inputs are known for the model"),
    ],
)  # fmt: skip
def test_what_has_no_such_step_is_one_sentence(
    stated: dict[str, Any], words: tuple[str, ...], why: str, count_llm: Callable[..., Done]
) -> None:
    done = count_llm(stated, *words)
    assert (done.returncode, why in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr


def test_vit_b_16_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """torchvision's table says 17.56 for ViT_B_16_Weights.IMAGENET1K_V1:
    multiply-adds of an image."""
    stated = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "num_labels": 1000}
    tokens, h, patches = 14 * 14 + 1, 768, 14 * 14 * 3 * 16 * 16 * 768
    forward = 12 * layer(tokens, h, 4 * h) + patches + h * 1000
    page = json.loads(count_llm(stated, "--pass", "forward", "--format", "json").stdout)
    assert (page["ran"], f"{page['ran'] / 2e9:.2f}") == (2 * forward, "17.56")


def test_dit_xl_2_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """facebook/DiT-XL-2-256. The paper (arXiv:2212.09748, table 4) says 118.64; the products of its own code, with one embedding
    of the moment for all blocks, are 118.62."""
    h, layers, side = 1152, 28, 32
    stated = {**DIT, "num_attention_heads": 16, "attention_head_dim": 72, "in_channels": 4, "sample_size": side}
    whole, half = dit(h, layers, side)
    page = json.loads(count_llm({**stated, "num_layers": layers, "patch_size": 2}, "--format", "json").stdout)
    assert page["ran"] == 2 * (3 * whole + 2 * half)
    papers = whole + half - layers * (WAVES * h + h * h)
    assert (f"{papers / 1e9:.2f}", f"{(whole + half) / 1e9:.2f}") == ("118.62", "118.67")


@pytest.mark.heavy
def test_flux_dev_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """The configuration's defaults are those of black-forest-labs/FLUX.1-dev, with a text of 512 tokens."""
    whole, half = flux(3072, 19, 38, 512, (64, 4096, 768))
    page = json.loads(count_llm(FLUX, "--seq", "512", "--pass", "forward", "--format", "json").stdout)
    assert page["ran"] == 2 * (whole + half)


@pytest.mark.heavy
def test_llava_7b_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """llava-hf/llava-1.5-7b-hf: Llama 2 7B behind CLIP ViT-L/14 at 336 pixels, the last layer of which runs in vain."""
    h, f, layers, seq, patches, width = 4096, 11008, 32, 2048, 24 * 24, 1024
    vision = {"model_type": "clip_vision_model", "hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": 24,
              "num_attention_heads": 16, "image_size": 336, "patch_size": 14}  # fmt: skip
    stated = {
        "model_type": "llava",
        "vision_config": vision,
        "text_config": {"model_type": "llama", "vocab_size": 32064},
    }
    page = json.loads(count_llm(stated, "--images", "1", "--pass", "forward", "--format", "json").stdout)
    language = seq * (layers * (4 * h * h + 3 * h * f + 2 * h * seq) + h * 32064)
    tower = 24 * layer(patches + 1, width, 4 * width) + patches * 3 * 14 * 14 * width
    assert page["ran"] == 2 * (language + tower + patches * (width * h + h * h))
    assert page["image_tokens"] == patches


@pytest.mark.heavy
def test_qwen_2_5_vl_7b_is_a_closed_form(count_llm: Callable[..., Done]) -> None:
    """Qwen/Qwen2.5-VL-7B-Instruct: windows of 8 x 8 patches but in each eighth layer; a feed-forward of 3 matrices."""
    h, f, layers, keys, words, seq = 3584, 18944, 28, 4 * 128, 152064, 2048
    text = {"hidden_size": h, "intermediate_size": f, "num_hidden_layers": layers, "num_attention_heads": 28,
            "num_key_value_heads": 4, "vocab_size": words}  # fmt: skip
    width, wide, deep, patches = 1280, 3420, 32, (448 // 14) * (672 // 14)
    vision = {"hidden_size": width, "intermediate_size": wide, "out_hidden_size": h}
    stated = {"model_type": "qwen2_5_vl", "text_config": text, "vision_config": vision}
    size = ("--images", "1", "--image-size", "448x672")
    page = json.loads(count_llm(stated, *size, "--pass", "forward", "--format", "json").stdout)
    language = seq * (layers * (2 * h * h + 2 * h * keys + 3 * h * f + 2 * h * seq) + h * words)
    pairs = (deep - 4) * patches * 64 + 4 * patches**2
    tower = deep * patches * (4 * width**2 + 3 * width * wide) + 2 * width * pairs
    ends = patches * (3 * 2 * 14 * 14 * width) + patches // 4 * (4 * width) * (4 * width + h)
    assert (page["ran"], page["image_tokens"], page["image_size"]) == (
        2 * (language + tower + ends),
        patches // 4,
        [448, 672],
    )
