"""Products in low precision: their multiply-adds are those of the product that they stand for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reconcile
from reconcile.core.records import Tensor
from reconcile.core.work import SINGLE_COMPONENTS, UnknownWork
from reconcile.work import Work, known_part, work_of
from tests.adapters.counters.small_nets import Does
from tests.work.beside_torch import RELAXED, SMALL
from tests.work.records_by_hand import make
from tests.work.torch_records import record


def product(m, k, n):
    return work_of(make("aten.mm", [(m, k), (k, n)], [(m, n)]))


@RELAXED
@given(m=SMALL, k=SMALL, n=SMALL)
def test_scaled_products(m, k, n):
    eight = [Tensor((m, k), "float8_e4m3fn"), Tensor((k, n), "float8_e4m3fn"), (), ()]
    four = [Tensor((m, k), "bfloat16"), Tensor((n, 4), "int32"), Tensor((1, n, 2), "bfloat16")]
    for name, inputs in (("_scaled_mm", eight), ("_weight_int4pack_mm", four)):
        part = known_part(make(f"aten.{name}", inputs, [Tensor((m, n), "bfloat16")], bias=None))
        assert (part.work, part.unknown) == (product(m, k, n), frozenset(SINGLE_COMPONENTS))
    inputs = [Tensor((m, k), "bfloat16"), Tensor((n, k), "int8"), Tensor((n,), "bfloat16")]
    op = make("aten._weight_int8pack_mm", inputs, [Tensor((m, n), "bfloat16")])
    assert work_of(op) == product(m, k, n) + Work(mul=m * n)
    whole = [Tensor((m, k), "int8"), Tensor((k, n), "int8")]
    assert work_of(make("aten._int_mm", whole, [Tensor((m, n), "int32")])) == product(m, k, n)
    assert work_of(make("onnx.MatMulInteger", whole, [Tensor((m, n), "int32")])) == product(m, k, n)
    turned = [Tensor((m, k), "int8"), Tensor((n, k), "int8")]
    assert work_of(make("bitsandbytes.int8_linear_matmul", turned, [Tensor((m, n), "int32")])) == product(m, k, n)
    assert work_of(make("bitsandbytes.int8_linear_matmul", [*turned, Tensor((m, n), "int32")], [])) == product(m, k, n)
    with pytest.raises(UnknownWork, match="may multiply"):
        work_of(make("lib.int8_product", whole, [Tensor((m, n), "int32")]))


def test_quantisers_of_bitsandbytes_have_no_products():
    codes, table, scales, weight = Tensor((8, 1), "uint8"), (16,), (1,), (4, 4)
    for name, inputs, outputs in (
        ("quantize_4bit", [weight], [scales, codes]),
        ("dequantize_blockwise", [codes, scales, table], [weight]),
        ("int8_mm_dequant", [Tensor((4, 4), "int32"), (4,), (4,)], [weight]),
    ):
        part = known_part(make(f"bitsandbytes.{name}", inputs, outputs))
        assert (part.work, part.unknown) == (Work(), frozenset(SINGLE_COMPONENTS))


@RELAXED
@given(groups=SMALL, rows=st.integers(1, 9), k=SMALL, n=SMALL)
def test_scaled_products_of_groups(groups, rows, k, n):
    offs = Tensor((groups,), "int32")
    inputs = [Tensor((rows, k), "float8_e4m3fn"), Tensor((groups, k, n), "float8_e4m3fn"), (rows,), (groups, n), offs]
    part = known_part(make("aten._scaled_grouped_mm", inputs, [Tensor((rows, n), "bfloat16")], bias=None))
    assert (part.work, part.unknown) == (product(rows, k, n), frozenset(SINGLE_COMPONENTS))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_dynamically_quantised_layer():
    if set(torch.backends.quantized.supported_engines) <= {"none"}:
        pytest.skip("no engine of quantised products on this machine")
    layer = torch.ao.nn.quantized.dynamic.Linear(8, 4)
    op = record(layer, torch.zeros(3, 8))[-1]
    assert op.op == "quantized.linear_dynamic"
    part = known_part(op)
    assert (part.work, part.unknown) == (product(3, 8, 4), frozenset(SINGLE_COMPONENTS))


needs_an_engine = pytest.mark.skipif(
    "qnnpack" not in torch.backends.quantized.supported_engines,
    reason="no engine of quantised products on this machine",
)


@pytest.fixture
def engine(monkeypatch):
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    yield
    torch.backends.quantized.engine = before


def macs(module, x):
    """Multiply-adds of one call, none of them unknown."""
    parts = [known_part(op) for op in record(module, x)]
    assert [part.reason for part in parts if not part.unknown.isdisjoint(("mac", "accumulators"))] == []
    return sum(part.work.mac for part in parts)


@needs_an_engine
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["LSTM", "GRUCell", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("GRU", "LSTMCell"))]
)
def test_dynamically_quantised_recurrence(engine, kind):
    gates = 4 if "LSTM" in kind else 3
    whole = {} if kind.endswith("Cell") else {"num_layers": 2, "bidirectional": True}
    layer = getattr(torch.nn, kind)(8, 5, **whole)
    first = lambda m, x: found[0] if isinstance(found := m.layer(x), tuple) else found  # noqa: E731
    model = torch.ao.quantization.quantize_dynamic(Does(first, layer=layer), {type(layer)})
    if kind.endswith("Cell"):
        assert macs(model, torch.ones(2, 8)) == 2 * gates * 5 * (8 + 5)
    else:
        assert macs(model, torch.ones(3, 2, 8)) == 3 * 2 * gates * 5 * 2 * ((8 + 5) + (2 * 5 + 5))


@needs_an_engine
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_statically_quantised_layers(engine):
    stubs = {"quant": torch.ao.quantization.QuantStub(), "dequant": torch.ao.quantization.DeQuantStub()}
    conv, linear = torch.nn.Conv2d(4, 8, 3, groups=2), torch.nn.Linear(8, 3)
    run = lambda m, x: m.dequant(m.linear(m.conv(m.quant(x)).mean((2, 3))))  # noqa: E731
    model = Does(run, **stubs, conv=conv, linear=linear).eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("qnnpack")
    torch.ao.quantization.prepare(model, inplace=True)
    model(torch.randn(2, 4, 6, 6))
    torch.ao.quantization.convert(model, inplace=True)
    assert macs(model, torch.randn(2, 4, 6, 6)) == 2 * 8 * 4 * 4 * (4 // 2 * 9) + 2 * 8 * 3


@needs_an_engine
@pytest.mark.filterwarnings("ignore")
def test_a_run_publishes_the_products_of_integers(engine):
    layer = torch.ao.nn.quantized.dynamic.Linear(16, 8)
    weight = torch.nn.Parameter(torch.ones(32, 16, dtype=torch.int8), requires_grad=False)
    product = lambda m, x: m.layer(torch._int_mm(x.to(torch.int8), m.weight).float())  # noqa: E731
    both = Does(product, layer=layer, weight=weight)
    run = reconcile.run(torch=both, inputs=(torch.ones(24, 32),), counters=["flop_counter"])
    assert [figure.flops for figure in run.verdict.figures] == [2 * 24 * 32 * 16 + 2 * 24 * 16 * 8]
    (statement,) = [s for s in run.result.statements if s.from_ == "flop_counter"]
    assert (statement.residual, {a.cause.value for a in statement.adjustments}) == (0, {"op-not-counted"})
