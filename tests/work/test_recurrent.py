"""One-op formulas of recurrent layers against what torch dispatches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.adapters.pytorch.tracing.call_records import recurrent
from reconcile.work import UnknownWork, Work, work_of
from tests.work.records_by_hand import make
from tests.work.torch_records import record, work_dispatched

SIZES = st.integers(1, 4)
LAYERS = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM, "rnn_tanh": torch.nn.RNN, "rnn_relu": torch.nn.RNN}


def one_op(module, data):
    """The record a tracer makes of the fused call of this module on this data (padded or packed)."""
    kind = module.mode.lower()
    batch = (
        1
        if isinstance(data, torch.nn.utils.rnn.PackedSequence) or data.dim() == 2
        else data.shape[not module.batch_first]
    )
    sides = 2 if module.bidirectional else 1
    hidden = [torch.zeros(sides * module.num_layers, batch, module.proj_size or module.hidden_size)]
    if kind == "lstm":
        hidden.append(torch.zeros(sides * module.num_layers, batch, module.hidden_size))
    common = (module.bias, module.num_layers, 0.0, False, module.bidirectional)
    state = tuple(hidden) if kind == "lstm" else hidden[0]
    if isinstance(data, torch.nn.utils.rnn.PackedSequence):
        args = (data.data, data.batch_sizes, state, module._flat_weights, *common)
    else:
        args = (data, state, module._flat_weights, *common, module.batch_first)
    return recurrent(kind, args, hidden, "")


@settings(max_examples=10, deadline=None)
@given(
    kind=st.sampled_from(sorted(LAYERS)),
    sizes=st.tuples(SIZES, SIZES, SIZES, SIZES),
    num_layers=st.integers(1, 3),
    bidirectional=st.booleans(),
    bias=st.booleans(),
    proj=st.integers(0, 3),
    form=st.sampled_from(["batch_first", "time_first", "unbatched", "packed"]),
)
def test_one_op_equals_the_dispatched_ops(kind, sizes, num_layers, bidirectional, bias, proj, form):
    steps, batch, width, hidden = sizes
    options = {"proj_size": proj} if kind == "lstm" and proj < hidden else {}
    if kind.startswith("rnn"):
        options["nonlinearity"] = kind[4:]
    # float64 keeps oneDNN's fused kernel away, so that the composite's own ops are dispatched
    module = LAYERS[kind](
        width, hidden, num_layers, bias=bias, bidirectional=bidirectional, batch_first=form == "batch_first", **options
    ).double()
    shape = {"batch_first": (batch, steps, width), "unbatched": (steps, width)}.get(form, (steps, batch, width))
    data = torch.randn(shape, dtype=torch.float64)
    if form == "packed":
        lengths = torch.linspace(steps, 1, batch).long()
        data = torch.nn.utils.rnn.pack_padded_sequence(data, lengths)
    assert work_of(one_op(module.eval(), data)) == work_dispatched(module.eval(), data)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_mkldnn_rnn_layer_equals_the_composite(bias, bidirectional):
    """float32 LSTM on the CPU runs oneDNN's kernel; the same weights in float64 run op by op."""
    module = torch.nn.LSTM(3, 4, 2, bias=bias, bidirectional=bidirectional).eval()
    data = torch.randn(5, 2, 3)
    fused = record(module, data)
    assert sum(op.op == "aten.mkldnn_rnn_layer" for op in fused) == (4 if bidirectional else 2)
    assert work_dispatched(module, data) == work_dispatched(module.double(), data.double())


@pytest.mark.parametrize("kind", sorted(LAYERS))
@pytest.mark.parametrize("bias", [True, False])
def test_cell_equals_the_dispatched_ops(kind, bias):
    cell = {"gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}.get(kind, torch.nn.RNNCell)
    options = {"nonlinearity": kind[4:]} if kind.startswith("rnn") else {}
    module = cell(3, 4, bias=bias, dtype=torch.float64, **options).eval()
    x, h, c = (torch.randn(2, n, dtype=torch.float64) for n in (3, 4, 4))
    states = (h, c) if kind == "lstm" else (h,)
    weights = list(module.parameters())
    got = work_of(make(f"aten.{kind}_cell", [x, *states, *weights], [h], b_ih=None, b_hh=None))
    assert got == work_dispatched(module, x, states if kind == "lstm" else h)


@pytest.mark.parametrize(("kind", "gates", "cell"), [("gru", 3, (5, 2, 3)), ("lstm", 4, (5, 3, 5))])
@pytest.mark.parametrize("bias", [True, False])
def test_fused_cuda_cells_are_the_cell_without_its_products(kind, gates, cell, bias):
    b, h = 2, 5
    shapes = [(b, gates * h), (b, gates * h), (b, h)] + [(gates * h,)] * (2 if bias else 0)
    add, mul, special = (n * b * h for n in cell)
    expected = Work(add=add + (2 * b * gates * h if bias else 0), mul=mul, special=special)
    assert (
        work_of(make(f"aten._thnn_fused_{kind}_cell", shapes, [(b, h)], input_bias=None, hidden_bias=None)) == expected
    )


def test_cudnn_rnn_is_the_layer():
    """input, weights of 2 layers x 2 directions, weight_buf, hx: the same work as aten.gru with those weights."""
    module = torch.nn.GRU(3, 4, 2, bidirectional=True)
    data, hx = torch.zeros(5, 2, 3), torch.zeros(4, 2, 4)
    inputs = [data, *module._flat_weights, torch.zeros(99), hx]
    attrs = {"weight_stride0": 4, "mode": 3, "hidden_size": 4, "proj_size": 0, "num_layers": 2, "bidirectional": True}
    got = work_of(
        make("aten._cudnn_rnn", inputs, [data], batch_sizes=[], batch_first=False, train=False, dropout=0.0, **attrs)
    )
    assert got == work_of(one_op(module, data))
    assert got


@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_dropout_between_layers(kind):
    """In training; its random bits are no work."""
    options = {"nonlinearity": kind[4:]} if kind.startswith("rnn") else {}
    module = LAYERS[kind](3, 4, 3, bidirectional=True, dropout=0.5, **options).double().train()
    data = torch.randn(5, 2, 3, dtype=torch.float64)
    op = one_op(module, data)
    trained = op._replace(attrs={**op.attrs, "dropout": 0.5})
    assert work_of(trained) == work_dispatched(module, data)
    assert work_of(trained) - work_of(op) == Work(div=2 * 5 * 2 * 8, mul=2 * 5 * 2 * 8)
    assert work_of(trained._replace(attrs={**trained.attrs, "train": False})) == work_of(op)


def test_weights_that_do_not_fit_are_unknown():
    module = torch.nn.GRU(3, 4)
    op = one_op(module, torch.zeros(5, 2, 3))
    with pytest.raises(UnknownWork, match="layer-directions"):
        work_of(op._replace(attrs={**op.attrs, "num_layers": 3}))
    with pytest.raises(UnknownWork, match="recurrent mode"):
        work_of(make("aten.mkldnn_rnn_layer", [(5, 2, 3), (12, 3), (12, 4)], [(5, 2, 4)], mode=7, has_biases=False))
