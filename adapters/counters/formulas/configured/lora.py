"""Low-rank adapters (LoRA) on a frozen model, with the products of peft's layers (``reconcile llm --lora``).

Hu et al. 2021, arXiv:2106.09685, section 4.1: y = W x + B A x, A of rank x in, B of out x rank; A and B are trained, W is not.
huggingface/peft src/peft/tuners/lora/layer.py has the same products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .....core.errors import UsageError


class AdaptedLinear(torch.nn.Module):
    """A frozen Linear and its adapter."""

    def __init__(self, base: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        kind = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.base_layer = base
        self.lora_A = torch.nn.Linear(base.in_features, rank, bias=False, **kind)
        self.lora_B = torch.nn.Linear(rank, base.out_features, bias=False, **kind)

    @property
    def weight(self) -> Any:
        """The Linear's, as peft's layers have it: T5 reads its dtype."""
        return self.base_layer.weight

    def forward(self, x: Any) -> Any:
        """What the Linear gives, and the product of both adapters."""
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


def add_adapters(model: Any, rank: int, targets: Sequence[str] = ()) -> Any:
    """The model itself, its weights frozen, with an adapter on each target.

    Without named targets these are all nn.Linear but the head, as in peft's "all-linear". Raises UsageError for a target
    that is not there, and for a model without any.
    """
    model.requires_grad_(False)
    head = model.get_output_embeddings()
    paths = [
        path for path, module in model.named_modules() if isinstance(module, torch.nn.Linear) and module is not head
    ]
    names = {path.rpartition(".")[2] for path in paths}
    for target in targets:
        if target not in names:
            raise UsageError(
                f"--lora names {target}, and no nn.Linear has this name: choose from {', '.join(sorted(names))}."
            )
    chosen = [path for path in paths if not targets or path.rpartition(".")[2] in targets]
    if not chosen:
        raise UsageError("this model has no nn.Linear but its head, so --lora has nothing to adapt.")
    for path in chosen:
        parent, _, name = path.rpartition(".")
        owner = model.get_submodule(parent)
        setattr(owner, name, AdaptedLinear(getattr(owner, name), rank))
    return model
