"""Products in low precision and torchvision's operators: their multiply-adds are those of the product that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from reconcile.core.records import Tensor  # noqa: E402
from reconcile.core.work import SINGLE  # noqa: E402
from reconcile.work import ZERO, UnknownWork, Work, known_part, work_of  # noqa: E402
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


@RELAXED
@given(batch=SMALL, channels=SMALL, features=SMALL, size=st.integers(3, 6), groups=st.integers(1, 2))
def test_a_deformable_convolution_has_the_products_of_a_plain_one(batch, channels, features, size, groups):
    x = torch.zeros(batch, channels * groups, size, size)
    weight = torch.zeros(features * groups, channels, 3, 3)
    plain = record(torch.nn.functional.conv2d, x, weight, groups=groups)[-1]
    out = size - 2
    offset, bias = (batch, 18, out, out), (features * groups,)
    inputs = [x, weight, offset, (batch, 9, out, out), bias]
    part = known_part(make("torchvision.deform_conv2d", inputs, [plain.outputs[0]], n_weight_grps=groups))
    assert (part.work, part.unknown) == (work_of(plain), frozenset(SINGLE))
    back = known_part(make("torchvision._deform_conv2d_backward", [plain.outputs[0], *inputs], [x, weight]))
    columns = batch * channels * groups * 9 * out * out  # each a dot product over the features of its group
    assert back.work == Work(mac=2 * part.work.mac, accumulators=columns + weight.numel())
    assert columns * features == part.work.mac


def test_boxes_have_no_products():
    for name in ("nms", "roi_align", "_roi_align_backward", "ps_roi_pool"):
        op = make(f"torchvision.{name}", [(5, 4), (5,)], [Tensor((3,), "int64")])
        assert (known_part(op).work, known_part(op).unknown) == (ZERO, frozenset(SINGLE))
        with pytest.raises(UnknownWork, match="the boxes say"):
            work_of(op)
