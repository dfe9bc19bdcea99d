"""Ops on nested tensors whose parts have no shape in common: the work is that on each part, which PyTorch dispatches alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import reconcile
from reconcile.core.records import PARTS
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import ZERO, Work, known_part, work_of
from tests.work.torch_records import record, work_dispatched

F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def parts(*sizes: tuple[int, ...]) -> list[Any]:
    return [torch.randn(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64) for size in sizes]


ROWS, COLUMNS = parts((2, 4), (3, 4), (1, 4)), parts((4, 5), (4, 6), (4, 0))
RAGGED = parts((2, 5), (3, 6), (1, 1))
# three heads of queries and of keys
QUERIES, KEYS = parts((3, 2, 4), (3, 5, 4)), parts((3, 4, 6), (3, 4, 7))

CALLS: dict[str, tuple[Callable[..., Any], list[list[Any]], Work | None]] = {
    "bmm": (torch.bmm, [ROWS, COLUMNS], Work(mac=(2 * 5 + 3 * 6) * 4, accumulators=2 * 5 + 3 * 6)),
    "bmm, of ragged depth": (torch.bmm, [RAGGED, parts((5, 4), (6, 2), (1, 3))], Work(mac=79, accumulators=17)),
    "bmm, the first dense": (torch.bmm, [list(torch.ones(3, 2, 4).double()), COLUMNS], Work(mac=88, accumulators=22)),
    "matmul, heads": (
        torch.matmul,
        [QUERIES, KEYS],
        Work(mac=3 * (2 * 6 + 5 * 7) * 4, accumulators=3 * (2 * 6 + 5 * 7)),
    ),
    "softmax": (lambda x: torch.softmax(x, -1), [RAGGED], None),
    "gelu": (F.gelu, [RAGGED], None),
    "add": (torch.add, [RAGGED, RAGGED], Work(add=10 + 18 + 1)),
}
"""Name -> (function, the parts of each of its tensors, its work; None for that of the parts alone)."""


def nest(tensors: list[Any]) -> Any:
    """A nested tensor; a dense one of equal parts that are views of one."""
    whole = tensors[0]._base
    return torch.nested.nested_tensor(tensors) if whole is None else whole


@pytest.mark.parametrize("name", CALLS)
def test_the_work_is_that_on_each_part(name: str) -> None:
    function, tensors, closed_form = CALLS[name]
    nested = [nest(each) for each in tensors]
    together = [work_of(op) for op in record(function, *nested)]
    # one batch of each part, as bmm wants it
    apart = [[part[None] for part in parts_of_one] for parts_of_one in zip(*tensors, strict=True)]
    assert sum(together, ZERO) == sum((work_dispatched(function, *each) for each in apart), ZERO)
    assert closed_form in (None, sum(together, ZERO))
    for result, each in zip(function(*nested).unbind(), apart, strict=True):
        torch.testing.assert_close(result, function(*each)[0])


def test_a_part_of_unknown_work_leaves_the_whole_unknown() -> None:
    (op,) = record(torch.bmm, *map(nest, (ROWS, COLUMNS)))
    known = known_part(op._replace(op="aten._scaled_mm"))
    assert known.work == Work(mac=(2 * 5 + 3 * 6) * 4, accumulators=2 * 5 + 3 * 6)
    assert known.unknown == frozenset(SINGLE_COMPONENTS)
    shapes = known_part(op._replace(attrs={key: value for key, value in op.attrs.items() if key != PARTS}))
    assert "mac" in shapes.unknown


class Attention(torch.nn.Module):
    """Sequences of 2 and of 3 steps look at each other's own."""

    def forward(self, x: Any) -> Any:
        steps = torch.nested.nested_tensor([x[:2], x[:3]])
        weights = torch.softmax(torch.bmm(steps, steps.transpose(1, 2)), -1)
        return torch.bmm(weights, steps).to_padded_tensor(0.0)


def test_a_model_that_multiplies_ragged_tensors_has_a_number() -> None:
    run = reconcile.run(torch=Attention(), inputs=(torch.randn(3, 4),), counters=[])
    assert [figure.flops for figure in run.verdict.figures] == [2 * 2 * (2 * 2 + 3 * 3) * 4]
