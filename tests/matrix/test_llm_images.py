"""Models that read or make images, from small configurations and at full size: what `reconcile llm` records is a closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.matrix.image_forms import (
    CASES,
    DIT,
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
    layer,
)
from tests.own.one_process import Done

Page = Callable[..., dict[str, Any]]

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]


@pytest.mark.parametrize("pass_", ["forward", "training"])
@pytest.mark.parametrize("name", CASES)
def test_what_ran_is_a_closed_form(name: str, pass_: str, llm_page: Page) -> None:
    case = CASES[name]
    page = llm_page(case.stated, *case.words, "--pass", pass_)
    assert page["ran"] == case.flops(pass_)
    numbers = [f for f in page["formulas"] if f["step"] is not None]
    assert [f["name"] for f in numbers if f["residual"] or f["step"] + sum(f["causes"].values()) != page["ran"]] == []
    assert [f["name"] for f in page["formulas"] if f["step"] is None and not f["reason"]] == []
    assert len(numbers) >= 3
    assert page["per"] == ("token" if "--images" in case.words else "image")


def test_each_cause_of_6n_is_a_closed_form(llm_page: Page) -> None:
    """Of a classifier: the head reads one token, the patches are one less than the tokens, and pixels need no gradient."""
    tokens, matrix = P + 1, PIXELS * H
    case = CASES["vit"]
    page = llm_page(case.stated)
    (causes,) = (f["causes"] for f in page["formulas"] if f["name"] == "formula:6n")
    vectors = tokens * H + H + H + 2 * H + LABELS + L * (4 * H + F + H + 4 * H)
    assert causes == {
        "attention-left-out": 6 * L * 2 * H * tokens**2,
        "backward-assumed": -2 * matrix * tokens,
        "parameters-as-products": -6 * vectors * tokens,
        "tokens-assumed": -6 * H * LABELS * (tokens - 1) - 4 * matrix,
    }


def test_each_cause_of_a_pooled_query_is_a_closed_form(llm_page: Page) -> None:
    """The weights of nn.MultiheadAttention are in one parameter and read apart: one query, P keys and values, one output. The
    query itself is trained: its gradient is one more product in the module of attention."""
    page = llm_page(CASES["siglip"].stated)
    (causes,) = (f["causes"] for f in page["formulas"] if f["name"] == "formula:6n-nonembedding")
    one_row = (2 * H * H + 2 * H * F) * (P - 1)
    assert causes["tokens-assumed"] == -6 * one_row - 2 * H * H
    assert causes["attention-left-out"] == 6 * (L * 2 * H * P * P + 2 * H * P) + 2 * H * H
    assert causes["backward-assumed"] == -2 * PIXELS * H * P


def test_a_formula_of_layers_has_no_term_for_vision(llm_page: Page) -> None:
    case = CASES["llava"]
    page = llm_page(case.stated, *case.words)
    causes = {f["name"]: f["causes"] for f in page["formulas"]}
    vision = case.flops("training") - 6 * LANGUAGE
    assert causes["formula:trl"] == {"vision-left-out": vision}
    assert causes["formula:megatron"]["vision-left-out"] == vision
    assert causes["formula:6n"]["attention-left-out"] == 6 * L * T * T * 2 * N * D
    assert (page["seq"], page["image_tokens"], page["images"]) == (T, P, 1)
    alone = llm_page(case.stated, "--seq", str(T))
    assert (alone["ran"], alone["images"]) == (6 * LANGUAGE, 0)


def test_adapters_are_of_the_encoder_as_well(llm_page: Page) -> None:
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
    page = llm_page(case.stated, *case.words, "--lora", str(rank))
    assert page["ran"] == 2 * (once + before + between + 2 * (LANGUAGE - pairs) + 3 * pairs + 3 * adapters)


def test_a_tower_beside_a_text_is_the_vision_config(llm_page: Page) -> None:
    both = {"model_type": "clip", "vision_config": CASES["clip"].stated}
    page = llm_page(both)
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
        (CASES["vit"].stated, ("--image-size", "0x8"), "its height and width in pixels, such as 448x672, not '0x8'"),
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


def test_vit_b_16_is_a_closed_form(llm_page: Page) -> None:
    """torchvision's table says 17.56 for ViT_B_16_Weights.IMAGENET1K_V1:
    multiply-adds of an image."""
    stated = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "num_labels": 1000}
    tokens, h, patches = 14 * 14 + 1, 768, 14 * 14 * 3 * 16 * 16 * 768
    forward = 12 * layer(tokens, h, 4 * h) + patches + h * 1000
    page = llm_page(stated, "--pass", "forward")
    assert (page["ran"], f"{page['ran'] / 2e9:.2f}") == (2 * forward, "17.56")


def test_dit_xl_2_is_a_closed_form(llm_page: Page) -> None:
    """facebook/DiT-XL-2-256. The paper (arXiv:2212.09748, table 4) says 118.64; the products of its own code, with one embedding
    of the moment for all blocks, are 118.62."""
    h, layers, side = 1152, 28, 32
    stated = {**DIT, "num_attention_heads": 16, "attention_head_dim": 72, "in_channels": 4, "sample_size": side}
    whole, half = dit(h, layers, side)
    page = llm_page({**stated, "num_layers": layers, "patch_size": 2})
    assert page["ran"] == 2 * (3 * whole + 2 * half)
    papers = whole + half - layers * (WAVES * h + h * h)
    assert (f"{papers / 1e9:.2f}", f"{(whole + half) / 1e9:.2f}") == ("118.62", "118.67")
