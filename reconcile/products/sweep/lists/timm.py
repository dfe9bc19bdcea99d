"""The models of ``timm`` for a sweep: every one that it registers, with an image of the size that its configuration names."""

from __future__ import annotations

from ...torchvision.pytorch import operators

USUAL = (3, 224, 224)
"""An image for a model without a configuration (timm/data/constants.py)."""


def names() -> list[tuple[str, tuple[str, ...]]]:
    """Each function of ``timm.models`` with its inputs, as ``--input`` takes them."""
    operators.watch()  # timm imports torchvision
    import timm

    found: list[tuple[str, tuple[str, ...]]] = []
    for name in timm.list_models():
        configuration = timm.models.get_pretrained_cfg(name, allow_unregistered=True)
        size = USUAL if configuration is None else configuration.input_size
        found.append((name, (",".join(map(str, (1, *size))),)))
    return found
