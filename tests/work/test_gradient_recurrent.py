"""Gradients of recurrent layers: one op per part against what autograd dispatches step by step."""

from __future__ import annotations

import os
import time

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import rnn

from reconcile.adapters.pytorch import trace as trace_torch
from reconcile.adapters.pytorch import training
from reconcile.core.causes import Cause
from reconcile.core.records import INPUT_GRADIENT, WEIGHT_GRADIENT
from reconcile.work import ZERO, UnknownWork, Work, work_of
from tests.adapters.pytorch.training_models import Model, explained
from tests.work.records_by_hand import make as made
from tests.work.torch_records import Recorder

SIZES = st.integers(1, 3)
KINDS = [nn.LSTM, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (nn.GRU, nn.RNN))]
LAYERS = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn_tanh": nn.RNN, "rnn_relu": nn.RNN}


class Net(nn.Module):
    """A recurrent layer, behind a parameter where its input is to need a gradient; of its outputs, those chosen.

    ``learned``: the sizes between (layers * directions,) and the states' own, where the first states are parameters.
    """

    def __init__(self, make, behind, chosen, lengths=None, learned=None):
        super().__init__()
        self.layer = make()
        self.scale = nn.Parameter(torch.ones(1)) if behind else 1
        self.chosen, self.lengths, self.start = chosen, lengths, None
        if learned is not None:
            layer = self.layer
            count, cells = layer.num_layers * (1 + layer.bidirectional), isinstance(layer, nn.LSTM)
            wide = [layer.proj_size or layer.hidden_size] + [layer.hidden_size] * cells
            self.start = nn.ParameterList(torch.zeros(count, *learned, size) for size in wide)

    def forward(self, x):
        return self.called(x * self.scale)

    def called(self, x):
        if self.lengths:
            x = rnn.pack_padded_sequence(x, self.lengths, batch_first=self.layer.batch_first)
        states = None if self.start is None else self.start[0] if len(self.start) == 1 else tuple(self.start)
        out, last = self.layer(x, states)
        found = [out.data if self.lengths else out, *(last if isinstance(last, tuple) else (last,))]
        return tuple(found[i] for i in self.chosen if i < len(found)) or (found[0],)


def traced(make, shape):
    """The backward ops of the layer, as the tracer records them on meta."""
    ops = training.record(Model(make, *shape), "meta").ops.values()
    return [op for op in ops if op.layer == "layer" and op.op.endswith("_backward")]


def dispatched(net, shape):
    """The work that autograd dispatches; the weights that recur are summed step by step: see ``partial_sums``."""
    net = net.double()
    x = torch.randn(shape, dtype=torch.float64, requires_grad=isinstance(net.scale, nn.Parameter))
    outputs = net.called(x)
    with Recorder() as recorder:
        torch.autograd.backward(outputs, [torch.ones_like(o) for o in outputs])
    return sum((work_of(op) for op in recorder.ops), ZERO)


def partial_sums(net, steps):
    """A product per step whose results are added: one accumulator and one add more per step after the first."""
    again = 0
    for name, weight in net.layer.named_parameters():
        last = f"_l{net.layer.num_layers - 1}" in name
        if name.startswith("weight_hh"):
            again += weight.numel() * (steps - 1)
        if name.startswith("weight_hr"):  # the last step's is not used where nothing but its cell is
            again += weight.numel() * max(steps - 1 - (last and net.chosen == [2]), 0)
    return Work(add=again, accumulators=again)


@settings(max_examples=int(os.environ.get("RECONCILE_EXAMPLES", "6")), deadline=None)
@given(
    kind=st.sampled_from(sorted(LAYERS)),
    sizes=st.tuples(st.integers(1, 4), SIZES, SIZES, st.integers(2, 4)),
    num_layers=SIZES,
    flags=st.tuples(*[st.booleans()] * 5),
    proj=st.integers(0, 2),
    chosen=st.sets(st.integers(0, 2), min_size=1),
    form=st.sampled_from(["batch_first", "time_first", "unbatched"]),
)
@example("lstm", (2, 1, 1, 3), 1, (False,) * 5, 2, {2}, "time_first")  # of a projection, the last step's cell alone
@example("gru", (2, 1, 1, 2), 1, (False,) * 5, 0, {0}, "time_first")  # no bias, and the first state needs no gradient
def test_one_op_is_what_autograd_dispatches(kind, sizes, num_layers, flags, proj, chosen, form):
    steps, batch, width, hidden = sizes
    bidirectional, bias, behind, dropout, learned = flags
    options = {"proj_size": proj} if kind == "lstm" and proj < hidden else {}
    if kind.startswith("rnn"):
        options["nonlinearity"] = kind[4:]
    options.update(bias=bias, bidirectional=bidirectional, dropout=0.5 * (dropout and num_layers > 1))

    def make():
        layer = LAYERS[kind](width, hidden, num_layers, batch_first=form == "batch_first", **options)
        states = ([] if form == "unbatched" else [batch]) if learned else None
        return Net(lambda: layer, behind, sorted(chosen), learned=states)

    shape = {"batch_first": (batch, steps, width), "unbatched": (steps, width)}.get(form, (steps, batch, width))
    torch.manual_seed(0)
    net = make()
    expected = dispatched(net, shape) - partial_sums(net, steps)
    parts = traced(make, shape)
    assert sum((work_of(op) for op in parts), ZERO) == expected
    assert [op.attrs["part"] for op in parts] == ["activations", "weights"]
    assert [op.phase for op in parts] == [INPUT_GRADIENT, WEIGHT_GRADIENT]
    whole = {name: value for name, value in parts[0].attrs.items() if name != "part"}
    assert work_of(parts[0]._replace(attrs=whole)) == expected


@pytest.mark.parametrize("kind", sorted(LAYERS))
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(kind, bidirectional):
    """Rows, not padded steps; reversed, only the longest sequences begin the first step."""
    options = {"nonlinearity": kind[4:]} if kind.startswith("rnn") else {}

    def make():
        layer = LAYERS[kind](3, 2, 2, bidirectional=bidirectional, **options)
        return Net(lambda: layer, True, [0], [4, 4, 2, 1])

    expected = dispatched(make(), (4, 4, 3))
    into, weights = traced(make, (4, 4, 3))
    assert work_of(into).mac + work_of(weights).mac == expected.mac
    assert work_of(into).cmp == expected.cmp


@pytest.mark.parametrize(("num_layers", "bias"), [(1, False), (2, True)])
def test_the_kernel_of_onednn_is_what_autograd_dispatches(num_layers, bias):
    """Data, states and weights; float64 runs step by step.  The kernel sums a bias's gradient once, for both and for none."""
    shape, wide = (5, 2, 3), 4 * 4
    make = lambda: Net(lambda: nn.LSTM(3, 4, num_layers, bias=bias), True, [0, 1, 2], learned=[2])  # noqa: E731
    with Recorder() as recorder:
        sum(out.sum() for out in make()(torch.randn(shape))).backward()
    ops = [op for op in recorder.ops if op.op == "aten.mkldnn_rnn_layer_backward"]
    found = sum((work_of(op) for op in ops), ZERO)
    assert len(ops) == num_layers
    expected = dispatched(net := make(), shape) - partial_sums(net, 5)
    once = Work(add=num_layers * (5 * 2 - 1) * wide)
    assert found == (expected - once if bias else expected + once)
    for op in ops:
        parts = [work_of(op._replace(attrs={**op.attrs, "part": part})) for part in ("activations", "weights")]
        assert sum(parts, ZERO) == work_of(op)


@pytest.mark.parametrize("kind", ["gru", "lstm", "rnn_tanh"])
@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, True)])
@pytest.mark.parametrize("lengths", [None, [4, 3, 3]])
def test_the_kernel_of_cudnn_is_what_autograd_dispatches(kind, layers, bidirectional, lengths):
    """The record of an H100: weights by layer-direction, then their buffer, the first states, the output."""
    batch, width, hidden, steps, mode = 3, 3, 4, 4, {"rnn_tanh": 1, "lstm": 2, "gru": 3}[kind]
    make = lambda: Net(  # noqa: E731
        lambda: LAYERS[kind](width, hidden, layers, bidirectional=bidirectional), True, [0, 1, 2], lengths, [batch]
    )
    net = make()
    weights = [tuple(p.shape) for name, p in net.layer.named_parameters()]
    rows = sum(lengths) if lengths else steps * batch
    first = (layers * (1 + bidirectional), batch, hidden)
    data = (rows, width) if lengths else (steps, batch, width)
    inputs = [data, *weights, (99,), first, *([first] if kind == "lstm" else []), (*data[:-1], hidden)]
    attrs = {
        "mode": mode,
        "num_layers": layers,
        "bidirectional": bidirectional,
        "weight_stride0": 4,
        "batch_sizes": [3, 3, 3, 1] if lengths else [],
        "dropout": 0.0,
        "output_mask": [True] * 4,
    }
    found = [
        work_of(made("aten._cudnn_rnn_backward", inputs, [data], **attrs, part=p)) for p in ("activations", "weights")
    ]
    expected = dispatched(net, (steps, batch, width))
    assert (
        sum(found, ZERO).mac == work_of(made("aten._cudnn_rnn_backward", inputs, [data], **attrs)).mac == expected.mac
    )
    without = work_of(
        made("aten._cudnn_rnn_backward", inputs, [data], **{**attrs, "output_mask": [True] * 3 + [False]})
    )
    assert without == found[0]
    assert found[1].mac == rows * sum(n * m for n, m in (w for w in weights if len(w) == 2))


def test_the_kernel_of_onednn_is_one_of_an_lstm():
    shapes = [(5, 2, 3), (12, 3), (12, 4)]
    with pytest.raises(UnknownWork, match="gru, and PyTorch runs this kernel for lstm alone"):
        work_of(made("aten.mkldnn_rnn_layer_backward", shapes, [(5, 2, 4)], mode=3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "trained",
    [*(pytest.param(name, marks=pytest.mark.slow) for name in ("", "weight_ih", "bias_ih", "bias_hh")), "weight_hh"],
)
def test_flop_counter_is_explained_where_weights_are_frozen(kind, trained):
    def make():
        net = Net(lambda: kind(4, 3, 2), True, [0])
        for name, weight in net.layer.named_parameters():
            weight.requires_grad_(bool(trained) and name.startswith(trained))
        return net

    for device in ("meta", "cpu"):
        unseen = kind is nn.LSTM and device == "cpu"
        assert explained(Model(make, 3, 2, 4, device=device)) == ({Cause.OP_NOT_COUNTED} if unseen else set())


def test_what_is_frozen_gets_nothing():
    def make():
        net = Net(lambda: nn.LSTM(3, 2, 2), False, [0])
        for name, weight in net.layer.named_parameters():
            weight.requires_grad_(name.endswith("hh_l1") and name.startswith("weight"))
        return net

    into, weights = traced(make, (5, 4, 3))
    assert work_of(weights) == Work(mac=20 * 8 * 2, accumulators=16)
    assert work_of(into).mac == 16 * 8 * 2  # the second layer's dh; the first one has no gradients at all
    net = make()
    assert work_of(into) + work_of(weights) + partial_sums(net, 5) - first_layer(net) == dispatched(net, (5, 4, 3))


def first_layer(net):
    """Its weights are not summed step by step."""
    again = net.layer.weight_hh_l0.numel() * 4
    return Work(add=again, accumulators=again)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_time_to_trace_does_not_depend_on_the_steps(kind):
    """Both passes, on meta; a trace that ran the steps would take minutes.  A run on the CPU is made beside up to 1000 steps."""
    for run in (trace_torch.trace, training.trace):
        spent, work = [], []
        for steps in (1_001, 1_000_000):
            began = time.process_time()
            ops = run(Model(lambda: Net(lambda: kind(4, 3, 2, bidirectional=True), True, [0]), steps, 2, 4)).ops
            spent.append(time.process_time() - began)
            work.append(sum(work_of(op).mac * op.calls for op in ops))
        assert spent[1] < spent[0] + 0.5
        assert work[1] > 990 * work[0]


def test_a_record_that_does_not_fit_is_unknown():
    into, _ = traced(lambda: Net(lambda: nn.GRU(3, 2), True, [0]), (5, 4, 3))
    with pytest.raises(UnknownWork, match="weights do not make 3 layers"):
        work_of(into._replace(attrs={**into.attrs, "num_layers": 3}))
    with pytest.raises(UnknownWork, match="needs is"):
        work_of(into._replace(attrs={**into.attrs, "needs": [True]}))


@pytest.mark.parametrize("device", [pytest.param("meta", marks=pytest.mark.slow), "cpu"])
@pytest.mark.parametrize("kind", KINDS)
def test_flop_counter_is_explained(kind, device):
    """It sees every step; of a float32 LSTM on the CPU it sees one op that it does not know, either way."""
    make = lambda: Net(lambda: kind(4, 3, 2, bidirectional=True, dropout=0.5), True, [0, 1])  # noqa: E731
    causes = explained(Model(make, 3, 2, 4, device=device))
    unseen = kind is nn.LSTM and device == "cpu"
    assert causes == ({Cause.OP_NOT_COUNTED} if unseen else set())
