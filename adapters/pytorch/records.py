"""Tensors and arguments of PyTorch calls as records. Python 3.6, torch 1.x and later."""

from typing import Any, List

import torch

from ...core.records import Tensor


def tensor_record(tensor):
    # type: (torch.Tensor) -> Tensor
    """Shape and dtype of a tensor."""
    return Tensor(tuple(int(s) for s in tensor.shape), str(tensor.dtype).replace("torch.", ""))


def tensors_in(value):
    # type: (Any) -> List[torch.Tensor]
    """Tensors in a value, a tuple or a list, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors_in(item)]
    return []


def plain(value):
    # type: (Any) -> Any
    """A non-tensor argument as a JSON value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value if not isinstance(value, float) or (value == value and abs(value) != float("inf")) else str(value)
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return str(value)
