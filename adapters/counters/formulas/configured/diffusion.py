"""Builds a diffusers transformer and its inputs from its config.json alone, on meta, and calls it once, for ``reconcile llm``.

The inputs are latents, a timestep and, if the model reads one, the embedding of a text prompt.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .....core.errors import UsageError, describe_error
from .config_source import Sizes, refuse

PIXELS, PATCH = (1024, 1024), 16
"""Height and width of an image whose transformer states no sample_size, and the pixels along a side of one of its patches:
FluxPipeline's default_sample_size of 128 latents, 8 pixels a latent and 2 latents a patch. huggingface/diffusers 0.42.1
src/diffusers/pipelines/flux/pipeline_flux.py:211, 215."""
TEXT = ("caption_channels", "joint_attention_dim", "text_embed_dim", "cross_attention_dim")
"""Fields that state the width of a text's tokens, the first of them that is set."""
FLAT = ("img_ids", "img_shapes")
"""What a model asks for beside patches that stand in a row: where each is, or how many are on a side."""


def image_maker(file: str, settings: Mapping[str, Any], sizes: Sizes) -> tuple[Any, Any]:
    """Builds and calls the model; returns it and its inputs: ``sizes.batch`` images, ``sizes.seq`` tokens.

    Raises UsageError without diffusers, for a class that it lacks or whose inputs are not known here, for a text that is not
    given or not read, and for a size of images that the model does not take.
    """
    named = str(settings["_class_name"])
    try:
        import diffusers
        import torch
    except ImportError as error:
        raise UsageError(
            f"{file} describes a model of diffusers, which cannot be imported here ({error}): install diffusers."
        ) from error
    from .described_model import CalledModel, describe_model

    kind: Any = getattr(diffusers, named, None)
    if "hidden_states" not in inspect.signature(getattr(kind, "forward", len)).parameters:
        raise UsageError(f"{file} names {named}, which is no transformer of diffusers {diffusers.__version__}.")
    with refuse(f"diffusers makes no model of {file}"), torch.device("meta"):
        model = kind.from_config(dict(settings))
    taken = inspect.signature(model.forward).parameters
    reads = taken.get("encoder_hidden_states")
    text = reads and _width(model.config)
    if reads and not text and reads.default is reads.empty:
        raise UsageError(f"{file} states no width of a text: count it with reconcile run --torch module:function.")
    if text and not sizes.seq:
        raise UsageError(f"the model of {file} reads a text: give --seq, the number of its tokens, such as 512.")
    if sizes.seq and not text:
        raise UsageError(f"the model of {file} reads no text: leave --seq out.")
    if sizes.pixels and not any(name in taken for name in FLAT):
        raise UsageError(f"the sample_size of {file} is the size of its images: leave --image-size out.")
    if any(side % PATCH for side in sizes.pixels):
        raise UsageError(f"an image of {file} has a multiple of {PATCH} pixels on each side: change --image-size.")
    try:
        with torch.device("meta"):
            inputs = _inputs(model, sizes)
            tokens = _tokens(model.config, inputs["hidden_states"])
            model(**inputs)
    except Exception as error:
        raise UsageError(
            f"no inputs are known for the model of {file} ({describe_error(error)}): count it with "
            "reconcile run --torch module:function."
        ) from error
    held = describe_model(CalledModel(model), pictures=True, B=sizes.batch, T=tokens, text=sizes.seq)
    return held, inputs


def _width(config: Mapping[str, Any]) -> int:
    """How wide a token of the text is; 0 if the configuration states none."""
    return next((int(config[name]) for name in TEXT if config.get(name)), 0)


def _tokens(config: Mapping[str, Any], latents: Any) -> int:
    """The patches of an image: those of its latents, or one for each row of a sequence that has been cut already."""
    if latents.dim() == 3:
        return int(latents.shape[1])
    return (int(latents.shape[-1]) // int(config["patch_size"])) ** 2


def _inputs(model: Any, sizes: Sizes) -> dict[str, Any]:
    """What the model's forward takes, by name."""
    import torch

    config, taken = model.config, inspect.signature(model.forward).parameters
    batch, seq = sizes.batch, sizes.seq

    def of(*shape: int) -> Any:
        return torch.zeros(batch, *shape)

    flat, moment = any(name in taken for name in FLAT), torch.zeros(batch, dtype=torch.int64)
    height, width = sizes.pixels or PIXELS
    patches, side = height * width // PATCH**2, int(config.get("sample_size") or 0)
    if not flat and not side:
        raise ValueError("it states no sample_size")
    channels, axes = int(config["in_channels"]), len(config.get("axes_dims_rope") or ())
    pooled, extra = config.get("pooled_projection_dim"), getattr(model, "use_additional_conditions", False)
    known = {
        "hidden_states": of(patches, channels) if flat else of(channels, side, side),
        "timestep": of() if flat else moment,
        "encoder_hidden_states": of(seq, _width(config)) if seq else None,
        "img_shapes": [[(1, height // PATCH, width // PATCH)]] * batch,
        "img_ids": torch.zeros(patches, axes),
        "txt_ids": torch.zeros(seq, axes),
        "original_size": of(2),
        "target_size": of(2),
        "crop_coords": of(2),
        "pooled_projections": of(int(pooled)) if pooled else None,
        "guidance": of() if config.get("guidance_embeds") else None,
        "class_labels": moment if not seq and config.get("num_embeds_ada_norm") else None,
        "added_cond_kwargs": {"resolution": of(2) if extra else None, "aspect_ratio": of(1) if extra else None},
    }
    return {name: value for name, value in known.items() if name in taken and value is not None}
