"""Models whose weights are on meta by design: hooks bring each module's when it is called (accelerate's cpu_offload and
disk_offload, transformers' device maps).  Python 3.8, torch 1.x and later.

Such a model runs where its inputs are, like any other.  A model whose weights have no values anywhere can only run on meta.
"""

from typing import Any, Callable

import torch

from .call_adapter import tensors_out


def lacks_values(module: torch.nn.Module, run: Callable[[], Any]) -> bool:
    """Whether weights of this module are on meta, and nothing brings them: ``run()`` calls a module that was made as it was, with
    inputs that have values, and is asked only where something could bring them."""
    if not any(weight.is_meta for weight in module.parameters()):
        return False
    return not any(map(_is_changed, module.modules())) or not _has_values(run)


def _is_changed(part: torch.nn.Module) -> bool:
    """Whether something of this module's own runs before or instead of its forward."""
    return bool(part._forward_pre_hooks) or "forward" in vars(part)


def _has_values(run: Callable[[], Any]) -> bool:
    try:
        return not any(tensor.is_meta for tensor in tensors_out(run()))
    except Exception:  # whatever their code and PyTorch do with weights that have no values
        return False
