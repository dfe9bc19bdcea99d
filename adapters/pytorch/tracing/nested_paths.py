"""The ways that PyTorch takes with nested tensors in inference, and takes beneath a recorder, too.

nn.TransformerEncoder drops the positions that a padding mask leaves out: it packs the others into a nested tensor.  It asks first
whether anything overrides functions, and a recorder's own mode does; its answer would be another model than the one that
runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

PLAIN = (torch.Tensor, torch.nn.Parameter, type(None))


@contextmanager
def keep_fast_path() -> Iterator[None]:
    """Meanwhile a mode alone does not keep an encoder from nested tensors, nor attention from those that it is given."""
    encoder = getattr(torch.nn, "TransformerEncoder", None)
    attention = torch.nn.MultiheadAttention.forward.__code__
    packing = None if encoder is None else encoder.forward.__code__
    real = torch.overrides.has_torch_function

    def answer_query(tensors: Any) -> bool:
        caller = sys._getframe(1).f_code
        if caller in (packing, attention) and all(type(tensor) in PLAIN for tensor in tensors):
            first = tensors[0]  # what the encoder packs, which no other device than a real one can, or the query
            if not first.is_meta if caller is packing else first.is_nested:
                return False
        return real(tensors)

    torch.overrides.has_torch_function = answer_query
    try:
        yield
    finally:
        torch.overrides.has_torch_function = real
