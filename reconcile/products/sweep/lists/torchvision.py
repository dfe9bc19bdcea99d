"""The models of ``torchvision`` for a sweep: every one that it registers, with inputs as in its published operation counts.

torchvision measures ``_ops`` on an image of 512 × 512 that the transforms of the weights have prepared, and on 16 frames of it
for a model of videos (torchvision's test/common_extended_utils.py, ``get_ops``). ``figures`` lists these counts for an audit.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from ...torchvision.pytorch import operators

SIDE = 512
FRAMES = 16
USUAL = 224
FLOW = "optical_flow"
"""Its models take two pictures."""


def names() -> list[tuple[str, tuple[str, ...]]]:
    """Each function of ``torchvision.models`` with its inputs, as ``--input`` takes them."""
    models = _models()
    found = {}
    for name in models.list_models():
        builder = models.get_model_builder(name)
        weights = next(iter(models.get_model_weights(name)), None)
        found[_function(builder)] = (_picture(USUAL),) if _size(builder, weights) else _inputs(builder, weights)
    return sorted(found.items())


def figures() -> tuple[str, list[tuple[str, tuple[str, ...], str, str]]]:
    """The release, and for all weights that state operations: the function with its arguments, the inputs, the figure as it is
    written, and the weights."""
    models = _models()
    found = []
    for name in models.list_models():
        builder = models.get_model_builder(name)
        for weights in models.get_model_weights(name):
            if "_ops" in weights.meta:
                made = _function(builder) + _arguments(builder, weights)
                found.append((made, _inputs(builder, weights), repr(weights.meta["_ops"]), str(weights)))
    import torchvision

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


def _inputs(builder: Any, weights: Any) -> tuple[str, ...]:
    """The pictures that the transforms of these weights make of those that are measured."""
    kind = _kind(builder)
    keywords: Mapping[str, Any] = {} if weights is None else getattr(weights.transforms, "keywords", {})
    size = keywords.get("crop_size") or keywords.get("resize_size") or SIDE
    height, width = (size * 2)[:2] if isinstance(size, (tuple, list)) else (size, size)
    frames = (FRAMES,) if kind == "video" else ()
    return (_picture(height, width, frames),) * (2 if kind == FLOW else 1)


def _picture(height: int, width: int = 0, frames: tuple[int, ...] = ()) -> str:
    return ",".join(map(str, (1, 3, *frames, height, width or height)))


def _arguments(builder: Any, weights: Any) -> str:
    """The arguments that a model has when these weights are loaded into it: the size of its pictures where it takes one size
    alone, and the second classifier that such a model keeps (torchvision's ``_ovewrite_value_param``)."""
    given = {}
    if size := _size(builder, weights):
        given["image_size"] = size
    if "aux_loss" in inspect.signature(builder).parameters:
        given["aux_loss"] = True
    return f"({', '.join(f'{key}={value!r}' for key, value in given.items())})" if given else ""


def _size(builder: Any, weights: Any) -> int:
    """The side of the only pictures that a model takes with these weights, where it takes others without; else 0."""
    size = 0 if weights is None else getattr(weights.transforms, "keywords", {}).get("crop_size", 0)
    if not size or size == USUAL or weights.meta.get("min_size") != (size, size):
        return 0
    try:
        with torch.device("meta"):
            builder(image_size=size)
    except (TypeError, ValueError):
        return 0
    return int(size)
