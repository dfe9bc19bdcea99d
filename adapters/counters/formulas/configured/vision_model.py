"""Builds a transformers vision model (encoder or image classifier; of CLIP and SigLIP the vision part) and a batch of images from
config.json alone, on meta, for ``reconcile llm``."""

from __future__ import annotations

from typing import Any

from .....core.errors import UsageError
from .config_source import Sizes, refuse

CLASSIFIES = "ForImageClassification"
"""How the name of a class with a head for labels ends: the configuration's ``architectures`` names it."""


def vision_config_of(config: Any) -> Any:
    """The configuration of a model whose one input is images: this one, or the vision_config beside a text that no language model
    reads (CLIP, SigLIP); None for a language model's."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, MODEL_MAPPING

    languages = (MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING)
    both = zip((config.get_text_config(), config), languages, strict=True)
    if hasattr(config, "vision_config") and not any(type(each) in known for each, known in both):
        config = config.vision_config
    known = type(config) in MODEL_MAPPING
    return config if known and getattr(MODEL_MAPPING[type(config)], "main_input_name", "") == "pixel_values" else None


def vision_model(file: str, config: Any, sizes: Sizes) -> tuple[Any, Any]:
    """Builds and calls the model; returns it and its pixels, bfloat16 (batch, channels, height, width). ``file`` is for messages.

    With ``architectures`` of a classifier it has that head, else it is the encoder. A token is what the model has one of in its
    layers: a patch, a class token, a register. Raises UsageError for a model that fails, and for one whose layers have no one
    sequence of tokens.
    """
    import torch
    from transformers import AutoModel, AutoModelForImageClassification

    from .described_model import CalledModel, describe_model

    named = any(str(name).endswith(CLASSIFIES) for name in getattr(config, "architectures", None) or ())
    auto = AutoModelForImageClassification if named else AutoModel
    with refuse(f"transformers makes no encoder of images of {file}"), torch.device("meta"):
        shape = shape_of(config)
        model = auto.from_config(config, dtype=torch.bfloat16)
        pixels = torch.zeros(sizes.batch, *shape, dtype=torch.bfloat16)
        states = model(pixel_values=pixels, output_hidden_states=True).hidden_states or ()
    shapes = {tuple(state.shape) for state in states}
    if len(shapes) != 1 or len(next(iter(shapes))) != 3:
        raise UsageError(
            f"the layers of {file} do not share one sequence of tokens: count it with reconcile run --torch module:function."
        )
    tokens = next(iter(shapes))[1]
    held = describe_model(CalledModel(model, config), pictures=True, B=sizes.batch, T=tokens)
    return held, {"pixel_values": pixels}


def shape_of(config: Any) -> tuple[int, int, int]:
    """Channels, height and width of the images that a configuration states. Raises ValueError if it states none."""
    side = getattr(config, "image_size", None)
    height, width = side if isinstance(side, (list, tuple)) else (side, side)
    if not isinstance(height, int) or not isinstance(width, int):
        raise ValueError("it states no image_size")
    return int(getattr(config, "num_channels", 3)), height, width
