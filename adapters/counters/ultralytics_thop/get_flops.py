"""Reproduces get_flops of the package ultralytics: it profiles one tile of the image, and multiplies by the number of tiles.

A tile is a square with the model's stride as its side.

ultralytics/utils/torch_utils.py, get_flops, before pull request 25468 of ultralytics/ultralytics.  If the model cannot run that
image, get_flops runs one of the full size.  It doubles the count and divides it by 1e9: the ledger has the MACs before that.
Python 3.9, torch 2.x.
"""

from __future__ import annotations

import torch

from ....core.records import Ledger
from ...pytorch.model import TorchModel
from ...shared.refusal import BeyondCounter

SMALLEST = 32
"""The smallest stride that get_flops takes, and the one of a model that has none."""
PROFILED_AND_MULTIPLIED = "profiled with an image of %d x %d, and multiplied by %d"


def proxy_of(model: TorchModel) -> tuple[int, int]:
    """The side of the image that get_flops runs, and by how much it multiplies the count; (0, 1) if it runs one of full size.

    Raises BeyondCounter for a model that get_flops has no number for, or not a number for its inputs.
    """
    import thop

    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    image = inputs[0] if len(inputs) == 1 else None
    if not isinstance(image, torch.Tensor) or image.dim() != 4 or image.shape[0] != 1:
        raise BeyondCounter(
            "get_flops makes one image (1, channels, height, width) itself: give an input of that shape"
        )
    first = next((p for p in module.parameters()), None)
    if first is None or first.dim() < 2 or first.shape[1] != image.shape[1]:
        raise BeyondCounter(
            "get_flops takes the number of channels from the second dimension of the first parameter, which differs here, and "
            "returns 0: count the model with ultralytics-thop"
        )
    try:
        stride = max(int(module.stride.max()), SMALLEST) if hasattr(module, "stride") else SMALLEST
        thop.profile(module, (image.new_zeros((1, image.shape[1], stride, stride)),), verbose=False)
    except Exception:  # for any error, get_flops then takes the full size
        return 0, 1
    height, width = image.shape[2:]
    if height % stride or width % stride:
        raise BeyondCounter(
            f"get_flops multiplies by {height} x {width} / {stride}^2, which is not a whole number: give a height and a width "
            f"that are multiples of {stride}"
        )
    return stride, (height // stride) * (width // stride)


def multiply_ledger(small: Ledger, full: Ledger, side: int, cells: int) -> Ledger:
    """The ledger of an image of that side, with every count multiplied by the number of cells.

    The sightings of the full image are added with 0 copies: they show that the model does the same there as in its trace.
    """
    return small._replace(
        total=small.total * cells,
        entries=tuple(entry._replace(value=entry.value * cells) for entry in small.entries),
        sightings=tuple(sighting._replace(copies=cells) for sighting in small.sightings)
        + tuple(sighting._replace(copies=0) for sighting in full.sightings),
        notes=small.notes + (PROFILED_AND_MULTIPLIED % (side, side, cells),),
    )
