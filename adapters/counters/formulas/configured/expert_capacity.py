"""Makes mixture-of-experts layers with a capacity split tokens evenly, on meta, where the router has no values."""

from __future__ import annotations

from typing import Any


def share(model: Any, batch: int, seq: int) -> Any:
    """The model itself; if its configuration has an ``expert_capacity``, its modules of experts now take tokens without values.

    Each expert gets an equal part of a sequence's tokens, the first ones one more if these do not divide, and at most its
    capacity of them, in each of ``batch`` sequences. A token beyond it meets none, as in the model's own code: Top1Router and
    Experts of huggingface/transformers 5.23.0 src/transformers/models/switch_transformers/modeling_switch_transformers.py.
    """
    capacity = getattr(getattr(model, "config", None), "expert_capacity", None)
    if not isinstance(capacity, int):
        return model
    for path, module in list(model.named_modules()):
        if path.rpartition(".")[2] == "experts":
            rows = [batch * n for n in rows_of(len(module), seq, capacity)]
            kind = type(module)
            module.__class__ = type(kind.__name__, (kind,), {"forward": _forward, "rows": rows, "evenly": True})
    return model


def rows_of(experts: int, seq: int, capacity: int) -> list[int]:
    """Tokens of a sequence that each expert gets."""
    least, more = divmod(seq, experts)
    return [min(least + (i < more), capacity) for i in range(experts)]


def _forward(self: Any, hidden_states: Any, _selected_experts: Any, routing_weights: Any) -> Any:
    """What the experts make of their tokens, (tokens, width), and zeros for those that meet none."""
    import torch

    parts = hidden_states.split([*self.rows, len(hidden_states) - sum(self.rows)])
    weights = routing_weights.split([len(part) for part in parts])
    made = [expert(part) * weight for expert, part, weight in zip(self.values(), parts, weights, strict=False)]
    return torch.cat([*made, torch.zeros_like(parts[-1])])
