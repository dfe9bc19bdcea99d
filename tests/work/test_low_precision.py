"""Products in low precision: their multiply-adds are those of the product that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from reconcile.core.records import Tensor  # noqa: E402
from reconcile.core.work import SINGLE  # noqa: E402
from reconcile.work import ZERO, Work, known_part, work_of  # noqa: E402
from tests.work.beside_torch import RELAXED, SMALL  # noqa: E402
from tests.work.records_by_hand import make  # noqa: E402
from tests.work.torch_records import record  # noqa: E402


def product(m, k, n):
    return work_of(make("aten.mm", [(m, k), (k, n)], [(m, n)]))


@RELAXED
@given(m=SMALL, k=SMALL, n=SMALL)
def test_scaled_products(m, k, n):
    eight = [Tensor((m, k), "float8_e4m3fn"), Tensor((k, n), "float8_e4m3fn"), (), ()]
    four = [Tensor((m, k), "bfloat16"), Tensor((n, 4), "int32"), Tensor((1, n, 2), "bfloat16")]
    for name, inputs in (("_scaled_mm", eight), ("_weight_int4pack_mm", four)):
        part = known_part(make(f"aten.{name}", inputs, [Tensor((m, n), "bfloat16")], bias=None))
        assert (part.work, part.unknown) == (product(m, k, n), frozenset(SINGLE))
    inputs = [Tensor((m, k), "bfloat16"), Tensor((n, k), "int8"), Tensor((n,), "bfloat16")]
    op = make("aten._weight_int8pack_mm", inputs, [Tensor((m, n), "bfloat16")])
    assert work_of(op) == product(m, k, n) + Work(mul=m * n)
    whole = [Tensor((m, k), "int8"), Tensor((k, n), "int8")]
    assert work_of(make("aten._int_mm", whole, [Tensor((m, n), "int32")])) == ZERO


@RELAXED
@given(groups=SMALL, rows=st.integers(1, 9), k=SMALL, n=SMALL)
def test_scaled_products_of_groups(groups, rows, k, n):
    offs = Tensor((groups,), "int32")
    inputs = [Tensor((rows, k), "float8_e4m3fn"), Tensor((groups, k, n), "float8_e4m3fn"), (rows,), (groups, n), offs]
    part = known_part(make("aten._scaled_grouped_mm", inputs, [Tensor((rows, n), "bfloat16")], bias=None))
    assert (part.work, part.unknown) == (product(rows, k, n), frozenset(SINGLE))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_dynamically_quantised_layer():
    if set(torch.backends.quantized.supported_engines) <= {"none"}:
        pytest.skip("no engine of quantised products on this machine")
    layer = torch.ao.nn.quantized.dynamic.Linear(8, 4)
    op = record(layer, torch.zeros(3, 8))[-1]
    assert op.op == "quantized.linear_dynamic"
    part = known_part(op)
    assert (part.work, part.unknown) == (product(3, 8, 4), frozenset(SINGLE))
