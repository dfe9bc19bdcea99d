"""The models of ``torchvision``: every one that it registers, with inputs of the size that it states operations for.

torchvision measures ``_ops`` on a picture of 512 × 512 that the transforms of the weights have prepared, and on 16 frames of it
for a model of videos (torchvision's test/common_extended_utils.py, ``get_ops``).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from .. import torchvision as operators

SIDE = 512
FRAMES = 16
FLOW = "optical_flow"
"""Its models take two pictures."""


def names() -> list[tuple[str, tuple[str, ...]]]:
    """Each function of ``torchvision.models`` with its inputs, as ``--input`` takes them."""
    models = _models()
    found = {}
    for name in models.list_models():
        weights = next(iter(models.get_model_weights(name)), None)
        found[_function(models.get_model_builder(name))] = _inputs(name, weights)
    return sorted(found.items())


def figures() -> tuple[str, list[tuple[str, tuple[str, ...], str, str]]]:
    """The release, and for all weights that state operations: the function with its arguments, the inputs, the figure as it is
    written, and the weights."""
    import torchvision

    models = _models()
    found = []
    for name in models.list_models():
        for weights in models.get_model_weights(name):
            if "_ops" in weights.meta:
                made = _function(models.get_model_builder(name)) + _arguments(name, weights)
                found.append((made, _inputs(name, weights), repr(weights.meta["_ops"]), str(weights)))
    return torchvision.__version__, sorted(found)


def _models() -> Any:
    operators.watch()
    from torchvision import models

    return models


def _function(builder: Any) -> str:
    """Its name below ``torchvision.models``: the folder of its kind, if it is in one, and its own."""
    kind = _kind(builder)
    return f"{kind}.{builder.__name__}" if kind else str(builder.__name__)


def _kind(builder: Any) -> str:
    parts = builder.__module__.split(".")[2:]
    return str(parts[0]) if len(parts) > 1 else ""


def _inputs(name: str, weights: Any) -> tuple[str, ...]:
    """The pictures that the transforms of these weights make of those that are measured."""
    kind = _kind(_models().get_model_builder(name))
    keywords: Mapping[str, Any] = {} if weights is None else getattr(weights.transforms, "keywords", {})
    size = keywords.get("crop_size") or keywords.get("resize_size") or SIDE
    height, width = (size * 2)[:2] if isinstance(size, (tuple, list)) else (size, size)
    frames = (FRAMES,) if kind == "video" else ()
    text = ",".join(map(str, (1, 3, *frames, height, width)))
    return (text,) * (2 if kind == FLOW else 1)


def _arguments(name: str, weights: Any) -> str:
    """The arguments that a model has when these weights are loaded into it: the size of its pictures where it takes one size
    alone, and the second classifier that such a model keeps (torchvision's ``_ovewrite_value_param``)."""
    builder = _models().get_model_builder(name)
    given = {}
    size = getattr(weights.transforms, "keywords", {}).get("crop_size")
    if weights.meta.get("min_size") == (size, size) != (224, 224) and _takes(builder, image_size=size):
        given["image_size"] = size
    if "aux_loss" in inspect.signature(builder).parameters:
        given["aux_loss"] = True
    return f"({', '.join(f'{key}={value!r}' for key, value in given.items())})" if given else ""


def _takes(builder: Any, **arguments: Any) -> bool:
    try:
        with torch.device("meta"):
            builder(**arguments)
    except (TypeError, ValueError):
        return False
    return True
