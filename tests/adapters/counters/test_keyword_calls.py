"""A layer that is called with its input by name, as some models of diffusers do: a hook of before PyTorch 2.0 sees no input."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import reconcile
from reconcile.adapters.counters.module_work import own_work
from reconcile.core.records import Op, Tensor

pytestmark = pytest.mark.frameworks
ROWS, WIDTH, OUT = 5, 8, 4


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(WIDTH, OUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(input=x)


@pytest.mark.parametrize("counter", ["thop", "torchinfo"])
def test_a_counter_that_reads_outputs_alone_is_explained(counter: str) -> None:
    """2 x rows x in x out ran; thop counts just that, torchinfo the bias of each output, too."""
    result = reconcile.run(
        torch=lambda: (Named(), torch.zeros(ROWS, WIDTH)), counters=(counter,), isolated=False
    ).result
    assert result.exit_code == 0
    (statement,) = [s for s in result.statements if s.from_ == counter and s.to == "trace@torch"]
    assert (statement.residual, statement.to_total) == (0, 2 * ROWS * WIDTH * OUT)


def test_a_call_of_which_no_input_was_seen_has_no_known_work() -> None:
    out = Tensor((ROWS, OUT), "float32")
    op = Op("a#1", "torch.nn.modules.linear.Linear", "a", (), (out,), {"weight": [OUT, WIDTH], "bias": [OUT]}, 1)
    assert own_work(op) is None
    assert own_work(op._replace(inputs=(Tensor((ROWS, WIDTH), "float32"),))) is not None
