"""What models that read or make images multiply, by closed forms of their configurations, and small ones of each kind.

A step is three times its forward pass but for what needs no gradient of its input: pixels, latents, a moment, a text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

L, H, N, F, SIDE, PATCH, LABELS = 3, 32, 4, 48, 32, 8, 10
P = (SIDE // PATCH) ** 2
"""Patches of an image."""
PIXELS = 3 * PATCH * PATCH
WAVES = 256
"""Sines and cosines that a moment is embedded in, in diffusers."""


class Case(NamedTuple):
    """The configuration, further words, multiply-adds with three passes, those without an input's gradient, and forward alone."""

    stated: dict[str, Any]
    words: tuple[str, ...]
    whole: int
    half: int = 0
    once: int = 0

    def flops(self, pass_: str) -> int:
        """FLOPs of a step."""
        passes = (3, 2, 1) if pass_ == "training" else (1, 1, 1)
        return 2 * sum(n * of for n, of in zip(passes, (self.whole, self.half, self.once), strict=True))


def layer(tokens: int, h: int = H, f: int = F) -> int:
    """Four projections, a feed-forward of two matrices, and both products of attention."""
    return tokens * (4 * h * h + 2 * h * f + 2 * h * tokens)


def encoder(kind: str, more: int = 0, **stated: Any) -> Case:
    """An encoder of one class token and P patches, with ``more`` products of its own."""
    sizes = {
        "hidden_size": H,
        "num_hidden_layers": L,
        "num_attention_heads": N,
        "image_size": SIDE,
        "patch_size": PATCH,
    }
    patches = P * PIXELS * H
    f = stated.get("mlp_ratio", 0) * H or F
    tokens = P + (kind != "siglip_vision_model")
    config = {"model_type": kind, "intermediate_size": F, **sizes, **stated}
    return Case(config, (), L * layer(tokens, f=f) + more, patches)


def pooled(h: int, f: int) -> int:
    """SigLIP's pooling: one learned query meets the keys and values of all patches; a projection and a feed-forward have one
    row."""
    return h * h + 2 * h * h * P + 2 * h * P + h * h + 2 * h * f


V, K, D, T = 200, 2, 8, 40
TEXT = {
    "vocab_size": V, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": N, "num_key_value_heads": K, "head_dim": D,
    "intermediate_size": F,
}  # fmt: skip
VH, VF, DEEP = 24, 40, 2
"""Width, feed-forward and layers of the encoder beside a language model."""
VISION = {
    "hidden_size": VH, "intermediate_size": VF, "num_hidden_layers": DEEP, "num_attention_heads": 2, "image_size": SIDE,
    "patch_size": PATCH,
}  # fmt: skip
LANGUAGE = T * (L * (2 * H * N * D + 2 * H * K * D + 3 * H * F + T * 2 * N * D) + H * V)
CUT = P * PIXELS * VH
SOFT = 4
"""Tokens that Gemma 3 makes of an image."""
BATCH, IMAGES = 2, 2


def beside(kind: str, vision: dict[str, Any], **stated: Any) -> dict[str, Any]:
    return {"model_type": kind, "text_config": TEXT, "vision_config": {**VISION, **vision}, **stated}


def llava(batch: int, images: int) -> Case:
    """The images' tokens are those after the last layer but one, so the last one runs and nothing needs its gradient."""
    stated = beside("llava", {"model_type": "clip_vision_model"})
    stated["text_config"] = {"model_type": "llama", **TEXT}
    of, projector = batch * images, P * (VH * H + H * H)
    words = ("--seq", str(T), "--images", str(images), "--batch", str(batch))
    before = (DEEP - 1) * layer(P + 1, VH, VF) + projector
    return Case(stated, words, batch * LANGUAGE + of * before, of * CUT, of * layer(P + 1, VH, VF))


HIGH, WIDE = 4, 6
"""Patches on the sides of an image that has its size beside its pixels, and those of a window of Qwen2.5-VL."""
WINDOWS = ((4, 4), (4, 2))
MERGED, MOMENTS = 4, 2
"""Patches that one token takes the place of, and frames that an image is repeated for."""


def qwen(kind: str, batch: int, images: int, vision: dict[str, Any], layers: int, mergers: int) -> Case:
    """An encoder in which an image is a sequence of its own, and ``mergers`` (two matrices, the first one square)."""
    of, patches = batch * images, HIGH * WIDE
    sizes = {"depth": DEEP, "num_heads": 2, "patch_size": PATCH, "temporal_patch_size": MOMENTS}
    stated = {
        "model_type": kind,
        "text_config": {**TEXT, "rope_parameters": ROPE},
        "vision_config": {**sizes, **vision},
    }
    words = (
        "--seq",
        str(T),
        "--images",
        str(images),
        "--image-size",
        f"{HIGH * PATCH}x{WIDE * PATCH}",
        "--batch",
        str(batch),
    )
    merger = patches // MERGED * (MERGED * VH) * (MERGED * VH + H)
    return Case(
        stated, words, batch * LANGUAGE + of * (layers + mergers * merger), of * patches * PIXELS * MOMENTS * VH
    )


ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}


def qwen_2_5(batch: int, images: int) -> Case:
    """A layer of windows, one of all patches; a feed-forward of three matrices."""
    patches = HIGH * WIDE
    pairs = sum((a * b) ** 2 for a, b in WINDOWS) + patches**2
    layers = 2 * patches * (4 * VH * VH + 3 * VH * VF) + 2 * VH * pairs
    vision = {
        "hidden_size": VH, "intermediate_size": VF, "out_hidden_size": H, "fullatt_block_indexes": [1],
        "window_size": WINDOWS[0][0] * PATCH,
    }  # fmt: skip
    return qwen("qwen2_5_vl", batch, images, vision, layers, 1)


def qwen_2() -> Case:
    vision = {"embed_dim": VH, "hidden_size": H, "mlp_ratio": 2}
    return qwen("qwen2_vl", 1, 1, vision, DEEP * layer(HIGH * WIDE, VH, 2 * VH), 1)


def qwen_3() -> Case:
    """Its first layer's patches are merged as well, for a layer of the language model."""
    vision = {
        "hidden_size": VH, "intermediate_size": VF, "out_hidden_size": H, "deepstack_visual_indexes": [0],
        "num_position_embeddings": 16,
    }  # fmt: skip
    return qwen("qwen3_vl", 1, 1, vision, DEEP * layer(HIGH * WIDE, VH, VF), 2)


def mistral_3() -> Case:
    """Pixtral masks the patches of other images, which are multiplied as well; then a merger, and two matrices."""
    images, patches = 2, HIGH * WIDE
    vision = {"model_type": "pixtral", **VISION}
    stated = beside("mistral3", vision, spatial_merge_size=2)
    stated["text_config"] = {"model_type": "mistral", **TEXT}
    words = ("--seq", str(T), "--images", str(images), "--image-size", f"{HIGH * PATCH}x{WIDE * PATCH}")
    every, tokens = images * patches, images * patches // MERGED
    layers = DEEP * (layer(every, VH, VF) + every * VH * VF)
    projector = tokens * (MERGED * VH * VH + VH * H + H * H)
    return Case(stated, words, LANGUAGE + layers + projector, every * PIXELS * VH)


PALI = {
    "model_type": "paligemma", "projection_dim": H, "text_config": {**TEXT, "model_type": "gemma"},
    "vision_config": {**VISION, "model_type": "siglip_vision_model"},
}  # fmt: skip
"""What it masks in a training step depends on which tokens are the image's. Its encoder pools in vain."""
LATENTS, OUT, SIZE, CUT_BY, WORDS, CAPTION, POOL = 4, 8, 8, 2, 12, 24, 20
TOKENS = (SIZE // CUT_BY) ** 2
HEADS = {"num_attention_heads": N, "attention_head_dim": H // N}
LATENT = {**HEADS, "in_channels": LATENTS, "sample_size": SIZE, "patch_size": CUT_BY, "num_layers": L}
ENDS = TOKENS * H * CUT_BY**2
"""Of a projection to or from a patch, for each channel."""


def block(tokens: int, all_tokens: int, h: int = H) -> int:
    """Four projections and a feed-forward of 4 h, and attention of all tokens, whose queries stand here."""
    return tokens * 12 * h * h + 2 * h * tokens * all_tokens


def dit(h: int, layers: int, side: int) -> tuple[int, int]:
    """Each block embeds the moment itself, and the end does so once more with the first one's."""
    tokens = (side // CUT_BY) ** 2
    blocks = layers * (block(tokens, tokens, h) + (1 + 6) * h * h)
    ends = tokens * h * CUT_BY**2
    return blocks + (1 + 2) * h * h + ends * OUT, (layers + 1) * WAVES * h + ends * LATENTS


def pixart() -> Case:
    cross = 2 * H * H * TOKENS + 2 * H * H * WORDS + 2 * H * TOKENS * WORDS
    whole = L * (block(TOKENS, TOKENS) + cross) + (1 + 6) * H * H + WORDS * H * H + ENDS * OUT
    stated = {"cross_attention_dim": H, "caption_channels": CAPTION, "out_channels": OUT, "num_embeds_ada_norm": 1000}
    config = {"_class_name": "PixArtTransformer2DModel", **LATENT, **stated}
    return Case(config, ("--seq", str(WORDS)), whole, WAVES * H + WORDS * CAPTION * H + ENDS * LATENTS)


def sd3() -> Case:
    """Text and image have weights of their own and attend to both; the last block makes no text."""
    every = TOKENS + WORDS
    blocks = L * (6 * H * H + block(TOKENS, every) + 3 * H * H * WORDS + 2 * H * WORDS * every)
    text = (L - 1) * (6 * H * H + 9 * H * H * WORDS) + 2 * H * H
    stated = {
        "_class_name": "SD3Transformer2DModel", "out_channels": LATENTS, "joint_attention_dim": CAPTION,
        "caption_projection_dim": H, "pooled_projection_dim": POOL, "pos_embed_max_size": SIZE,
    }  # fmt: skip
    first = WAVES * H + POOL * H + WORDS * CAPTION * H + ENDS * LATENTS
    return Case({**LATENT, **stated}, ("--seq", str(WORDS)), blocks + text + (2 + 2) * H * H + ENDS * LATENTS, first)


PATCHES = 64 * 64
"""Of an image of 1,024 x 1,024 pixels, 8 of which are a latent, in patches of 2."""


def flux(
    h: int, double: int, single: int, words: int, sizes: tuple[int, int, int], patches: int = PATCHES
) -> tuple[int, int]:
    """Blocks with weights for each of both, then blocks of one set of weights in which attention and feed-forward are side by
    side: 12 h^2 as well. A moment, a guidance and a pooled text are each one row."""
    every, (channels, caption, pool) = patches + words, sizes
    blocks = double * (2 * 6 * h * h + block(every, every, h)) + single * (3 * h * h + block(every, every, h))
    first = 2 * WAVES * h + pool * h + words * caption * h + patches * channels * h
    return blocks + 3 * h * h + 2 * h * h + patches * h * channels, first


FLUX = {"_class_name": "FluxTransformer2DModel", "guidance_embeds": True}
SMALL_FLUX = {
    **FLUX, **HEADS, "in_channels": 16, "num_layers": 2, "num_single_layers": 3, "joint_attention_dim": CAPTION,
    "pooled_projection_dim": POOL, "axes_dims_rope": [2, 2, 4],
}  # fmt: skip


def qwen_image() -> Case:
    """Text and image have weights of their own; what the last block makes of the text is not read. The text has a norm
    with a weight before it is projected, so that projection needs its input's gradient."""
    patches, layers, channels, out = 4 * 6, 2, 16, 4
    every = patches + WORDS
    last = WORDS * (H * H + 8 * H * H)
    blocks = layers * (2 * 6 * H * H + block(every, every)) - last
    stated = {
        "_class_name": "QwenImageTransformer2DModel", **HEADS, "in_channels": channels, "out_channels": out, "num_layers": layers,
        "joint_attention_dim": CAPTION, "axes_dims_rope": [2, 2, 4],
    }  # fmt: skip
    whole = blocks + WORDS * CAPTION * H + H * H + 2 * H * H + patches * H * CUT_BY**2 * out
    words = ("--seq", str(WORDS), "--image-size", "64x96")
    return Case(stated, words, whole, WAVES * H + patches * channels * H, last)


DIT = {"_class_name": "DiTTransformer2DModel", "out_channels": OUT, "num_embeds_ada_norm": 1000}
CASES = {
    "vit": encoder("vit", H * LABELS, architectures=["ViTForImageClassification"], num_labels=LABELS),
    "vit without a head": encoder("vit", H * H),
    "clip": encoder("clip_vision_model"),
    "siglip": encoder("siglip_vision_model", pooled(H, F)),
    "dinov2": encoder("dinov2", mlp_ratio=2),
    "llava": llava(1, 1),
    "llava, images": llava(BATCH, IMAGES),
    "gemma3": Case(
        beside("gemma3", {"vision_use_head": False}, mm_tokens_per_image=SOFT),
        ("--seq", str(T), "--images", "1"),
        LANGUAGE + DEEP * layer(P, VH, VF) + SOFT * VH * H,
        CUT,
    ),
    "qwen2.5-vl": qwen_2_5(1, 1),
    "qwen2.5-vl, images": qwen_2_5(BATCH, IMAGES),
    "qwen2-vl": qwen_2(),
    "qwen3-vl": qwen_3(),
    "mistral3": mistral_3(),
    "paligemma": Case(
        PALI, ("--seq", str(T), "--images", "1"), LANGUAGE + DEEP * layer(P, VH, VF) + P * VH * H, CUT, pooled(VH, VF)
    ),
    "dit": Case({**DIT, **LATENT}, (), *dit(H, L, SIZE)),
    "pixart": pixart(),
    "sd3": sd3(),
    "flux": Case(SMALL_FLUX, ("--seq", str(WORDS)), *flux(H, 2, 3, WORDS, (16, CAPTION, POOL))),
    "qwen-image": qwen_image(),
    "flux of a size": Case(
        SMALL_FLUX, ("--seq", str(WORDS), "--image-size", "64x96"), *flux(H, 2, 3, WORDS, (16, CAPTION, POOL), 4 * 6)
    ),
}
