"""Whole numbers keep their values beside a model on meta: what it asks of them is what a real device would say."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reconcile.adapters.counters.formulas.configured.cpu_values import values_on_cpu
from reconcile.adapters.pytorch.tracing.numpy_crossings import keep_numbers

WIDTH, IMAGE, TOKENS = 4, 7, (7, 0, 7, 7, 0)


class Reader(torch.nn.Module):
    """Puts rows of an image where their tokens stand, and asks where and how many these are."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(8, WIDTH)

    def forward(self, ids: Any, rows: Any) -> Any:
        """The sequence, its positions, and the rows again as they are read from it."""
        found = self.table(ids)
        mask = (ids == IMAGE).to(found.device)
        if int(mask.sum()) != len(rows):
            raise ValueError("the tokens are not those of the image")
        found = found.masked_scatter(mask.unsqueeze(-1).expand_as(found), rows)
        positions = torch.arange(len(ids), device=found.device)
        lengths = torch.as_tensor([2, len(ids) - 2], device=found.device).tolist()
        found[mask, :] = found[mask, :] * 2
        return found.split(lengths), positions[mask].tolist(), found[mask]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_model_on_meta_is_told_what_a_real_one_is(device: str) -> None:
    with torch.device(device):
        model, rows = Reader(), torch.zeros(TOKENS.count(IMAGE), WIDTH)
    ids = torch.tensor(TOKENS)
    with values_on_cpu():
        parts, places, read = model(ids, rows)
    assert places == [i for i, token in enumerate(TOKENS) if token == IMAGE]
    assert [tuple(part.shape) for part in (*parts, read)] == [(2, WIDTH), (len(TOKENS) - 2, WIDTH), tuple(rows.shape)]
    assert {part.device.type for part in (*parts, read)} == {device}


def test_a_recorder_may_stand_in_the_place_of_functions() -> None:
    """As it does on meta: PyTorch's function is called by another one of its name."""
    with torch.device("meta"):
        model, rows = Reader(), torch.zeros(TOKENS.count(IMAGE), WIDTH)
    with keep_numbers(), values_on_cpu():
        _, places, _ = model(torch.tensor(TOKENS), rows)
    assert places == [i for i, token in enumerate(TOKENS) if token == IMAGE]


def test_a_gradient_goes_through_what_met_on_meta() -> None:
    with torch.device("meta"):
        model, rows = Reader(), torch.zeros(TOKENS.count(IMAGE), WIDTH, requires_grad=True)
    with values_on_cpu():
        parts, *_ = model(torch.tensor(TOKENS), rows)
    torch.cat(parts).sum().backward()
    assert (rows.grad.shape, model.table.weight.grad.shape) == (rows.shape, (8, WIDTH))
