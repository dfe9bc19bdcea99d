"""Lists of constants in TorchScript become tensors where no operator is: they are no reason to withhold a number."""

from __future__ import annotations

from typing import Any, List  # noqa: UP035

import pytest
import torch
from torch import nn

import reconcile

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.* is deprecated:DeprecationWarning"),
]
LAYER = 10 * 4 * 4
"""Multiply-adds of a layer of 4 features, or of a product with a (4, 4) matrix, of the input (10, 4)."""


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.numbers: List[float] = [1.0, 2.0, 3.0, 4.0]  # noqa: UP006
        self.rows: List[List[float]] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]  # noqa: UP006
        self.matrices: List[torch.Tensor] = [torch.ones(4, 4), torch.eye(4)]  # noqa: UP006


class OfNumbers(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * torch.tensor(self.numbers)


class Literal(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[:, torch.tensor([3, 2, 1, 0])] @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])


class OfRows(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) @ torch.tensor(self.rows)


class OfTensors(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        for matrix in self.matrices:
            y = y @ matrix
        return y


class OfWhatLeft(Layer):
    """It multiplies the rows by the numbers one by one, in TorchScript's own arithmetic."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows: List[List[float]] = self.layer(x).tolist()  # noqa: UP006
        sums: List[float] = []  # noqa: UP006
        for row in rows:
            total = 0.0
            for i in range(4):
                total += row[i] * self.numbers[i]
            sums.append(total)
        return torch.tensor(sums)


CONSTANT = {OfNumbers: LAYER, Literal: LAYER + LAYER // 4, OfRows: LAYER + LAYER // 2, OfTensors: 3 * LAYER}
"""Model -> its multiply-adds."""


def run(kind: type[nn.Module], frozen: bool) -> Any:
    script = torch.jit.script(kind().eval())
    model = torch.jit.freeze(script) if frozen else script
    return reconcile.run(torch=model, inputs=(torch.randn(10, 4),), counters=[])


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kind", CONSTANT)
def test_a_list_of_constants_is_published(kind: type[nn.Module], frozen: bool) -> None:
    assert [figure.flops for figure in run(kind, frozen).verdict.figures] == [2 * CONSTANT[kind]]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_list_that_was_computed_is_not(frozen: bool) -> None:
    verdict = run(OfWhatLeft, frozen).verdict
    assert (verdict.figures, len(verdict.withheld)) == ((), 1)
