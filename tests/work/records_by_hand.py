"""Op records made by hand."""

from __future__ import annotations

from typing import Any

from reconcile.core.records import Op, Tensor


def make(name: str, inputs: Any, outputs: Any, **attrs: Any) -> Op:
    """A record from shapes (or tensors), all float32 unless tensors say otherwise."""
    return Op("x", name, "", tuple(map(_tensor, inputs)), tuple(map(_tensor, outputs)), attrs)


def _tensor(item: Any) -> Tensor:
    if isinstance(item, Tensor):
        return item
    if hasattr(item, "dtype"):
        return Tensor(tuple(item.shape), str(item.dtype).replace("torch.", ""))
    return Tensor(tuple(item), "float32")
