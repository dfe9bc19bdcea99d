"""The trace of a training step: what runs, in which phase and layer, against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn

from reconcile.adapters.counters.flop_counter.capture import capture
from reconcile.adapters.pytorch import trace, training
from reconcile.adapters.pytorch.tracing.second_call import SAME
from reconcile.adapters.pytorch.tracing.trace_device import is_cheap
from reconcile.adapters.shared.refusal import FactoryError
from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, WEIGHT_GRADIENT
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import ZERO, Work, work_of
from tests.adapters.by_phase import macs, work
from tests.adapters.counters.small_nets import Does
from tests.adapters.pytorch.training_models import Model, Recurrent, explained, ran
from tests.work.torch_records import Recorder

F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741


class Net(nn.Module):
    """One of each: grouped, strided, dilated and transposed convolutions, a shared layer, a residual, a 3-D linear."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, stride=2, groups=2)
        self.norm = nn.BatchNorm2d(8)
        self.wide = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.up = nn.ConvTranspose2d(8, 6, 2, stride=2, groups=2)
        self.pool = nn.MaxPool2d(2)
        self.line = nn.LayerNorm(6)
        self.twice = nn.Linear(6, 6)

    def forward(self, x):
        x = self.norm(self.first(x)).relu()
        x = self.pool(self.up(x + self.wide(x)))
        x = self.line(x.flatten(2).transpose(1, 2))
        return self.twice(self.twice(x).relu())


SHAPE = (2, 4, 11, 11)  # first: 5 x 5, up: 10 x 10, pool: 5 x 5


def test_products_of_a_network():
    first, wide, up = 2 * 8 * 25 * (2 * 9), 2 * 8 * 25 * 9, 2 * 8 * 25 * (3 * 4)
    linear = 2 * (2 * 25) * 6 * 6
    assert macs(ran(Net, *SHAPE)) == {
        ("first", F): first,
        ("wide", F): wide,
        ("up", F): up,
        ("twice", F): linear,
        ("twice", I): linear,
        ("twice", W): linear,
        ("up", I): up,
        ("up", W): up,
        ("wide", I): wide,
        ("wide", W): wide,
        ("first", W): first,  # nothing asks for the gradient with respect to the model's input
    }


def test_sums_of_gradients():
    found = work(ran(Net, *SHAPE))
    rows, x = 50, 2 * 8 * 25
    # bias gradients: a sum per use; the two uses' weight and bias gradients are added
    assert found["twice", W].add == 2 * (rows * 6 - 6) + 36 + 6
    assert found["first", W].add == x - 8
    # the residual: relu's comparisons at the root, and both paths' gradients added where they meet
    assert found["", I] == Work(cmp=x + rows * 6, add=x)
    assert found["(loss)", LOSS] == Work(mul=rows * 6 * 3, add=rows * 6 - 1, div=rows * 6 + 1)


def test_nothing_is_lost_or_counted_twice():
    """The same step with nothing but a recorder: the same work, op by op, once parts of a call are one again."""
    model = Model(Net, *SHAPE)
    module, inputs = model.build("meta").train(), model.example("meta")
    with Recorder() as plain:
        module(*inputs).square().mean().backward()
        for weight in module.parameters():
            torch.optim.SGD([weight], foreach=False).step()
    ops = ran(Net, *SHAPE)
    plain.ops = [op for op in plain.ops if not op.op.startswith("profiler.")]
    assert sum((work_of(op) for op in plain.ops), ZERO) == sum((work_of(op) * op.calls for op in ops), ZERO)
    names = Counter(op.op for op in plain.ops)
    for op in ops:
        names[op.op] -= op.calls if op.attrs.get("part", 0) in (0, op.attrs.get("output_mask", [1]).index(1)) else 0
    assert not {name: count for name, count in names.items() if count}


def test_what_runs_on_the_cpu_runs_on_meta():
    on_cpu = training.record(Model(Net, *SHAPE), "cpu").ops.values()
    assert work(on_cpu) == work(ran(Net, *SHAPE))


def test_optimizer():
    """SGD: p -= lr * g, of 20 weights."""
    ops = ran(lambda: nn.Linear(3, 5), 2, 3)
    assert {op.phase for op in ops} == {FORWARD, LOSS, WEIGHT_GRADIENT, OPTIMIZER}
    assert work(ops)["", OPTIMIZER] == Work(mul=20, add=20)


def attention():
    """Products of activations: both gradients are with respect to inputs."""

    def run(m, ids):
        x = m.words(ids) + m.places
        return (m.q(x) @ x.transpose(1, 2)).softmax(-1) @ x

    return Does(run, words=nn.Embedding(11, 4), places=nn.Parameter(torch.zeros(5, 4)), q=nn.Linear(4, 4, bias=False))


def test_attention_by_hand():
    ops = ran(attention, 3, 5, dtype=torch.int64)
    square = 3 * 5 * 5 * 4
    assert macs(ops) == {
        ("q", F): 3 * 5 * 16, ("", F): 2 * square, ("", I): 4 * square, ("q", I): 3 * 5 * 16, ("q", W): 3 * 5 * 16,
    }  # fmt: skip
    found = work(ops)
    assert found["words", W] == Work(add=3 * 5 * 4)  # each row added to its word's
    assert found["", W] == Work(add=(3 - 1) * 5 * 4)  # the places' gradient: summed over the batch


def masked():
    """A weight that is computed from a parameter alone."""
    held = {"weight": nn.Parameter(torch.ones(5, 3)), "mask": torch.ones(5, 3), "last": nn.Linear(5, 2, bias=False)}
    return Does(lambda m, x: m.last(nn.functional.linear(x, m.weight * m.mask)), **held)


def test_what_only_a_weight_goes_through_is_its_gradient():
    found = work(ran(masked, 4, 3))
    assert found["", W] == Work(mac=4 * 15, accumulators=15, mul=15)
    assert ("", I) not in found


def frozen():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 2))
    for parameter in net[:2].parameters():
        parameter.requires_grad_(False)
    return net


@pytest.mark.parametrize(("kind", "name"), [(nn.GRU, "gru"), (nn.LSTM, "lstm"), (nn.RNN, "rnn_tanh")])
def test_a_recurrent_layer_is_one_op_forward_two_back_on_meta(kind, name):
    ops = training.record(Model(lambda: Recurrent(kind), 3, 2, 4), "meta").ops.values()
    inside = [op.op for op in ops if op.layer == "steps" and op.phase != OPTIMIZER]
    inside = [name for name in inside if name not in ("aten.zeros", "aten.detach")]  # the first state; gradients arrive
    assert inside == [f"aten.{name}", f"aten.{name}_backward", f"aten.{name}_backward"]
    rest = macs([op for op in ops if op.layer != "steps"])
    assert rest["before", W] == 3 * 2 * 16  # what is before it gets its gradients
    assert rest["after", I] == rest["after", W] == 3 * 2 * 10


@pytest.mark.parametrize(("record", "most"), [(trace._record, 1000), (training.record, 100)])
def test_a_recurrent_layer_of_many_steps_is_not_run_again_on_the_cpu(record, most):
    """In a training step there each step is recorded op by op, in about ten milliseconds."""
    for steps in (most, most + 1):
        assert is_cheap(Recurrent(), record(Model(Recurrent, steps, 2, 4), "meta").ops.values()) == (steps == most)


@pytest.mark.parametrize("kind", [nn.GRU, *(pytest.param(k, marks=pytest.mark.slow) for k in (nn.LSTM, nn.RNN))])
def test_a_step_on_the_cpu_has_the_values_of_a_step(kind, monkeypatch):
    """A hook that computes more of a gradient that is not zero, and the weights after a step that is made once."""
    monkeypatch.setattr(training, "record_twice", lambda call, make, *_: call(make(), None, SAME))

    def hooked():
        net = Recurrent(kind)
        net.before.weight.register_hook(lambda g: g @ torch.eye(4) if g.abs().sum() else g)
        return net

    model = Model(hooked, 3, 2, 4)
    nets = [model.build("cpu") for _ in range(2)]
    nets[0](torch.ones(3, 2, 4)).square().mean().backward()
    for weight in nets[0].parameters():
        torch.optim.SGD([weight], foreach=False).step()
    model.build = lambda device: nets[1]
    ops = training.record(model, "cpu").ops.values()
    for mine, theirs in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
    assert sum(work_of(op).mac * op.calls for op in ops if op.layer == "before") == 2 * (3 * 2 * 16) + 4 * 16


def test_nothing_to_train_is_forward_and_loss():
    found = training.trace(Model(nn.ReLU, 2, 3))
    assert work(found.ops) == {("", F): Work(cmp=6), ("(loss)", LOSS): Work(mul=6, add=5, div=1)}
    assert [note for note in found.notes if note.startswith("nothing to train")], found.notes
    trained = training.trace(Model(Net, *SHAPE)).notes
    assert [note for note in trained if note.startswith("nothing to train")] == []
    assert explained(Model(nn.ReLU, 2, 3)) == set()


def test_a_batch_norm_of_one_value_names_layer_and_way_out():
    make = lambda: nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))  # noqa: E731
    said = r"1 normalises by its batch's statistics and gets one value per channel, \[1, 5\]: give a larger batch"
    with pytest.raises(FactoryError, match=said):
        training.record(Model(make, 1, 3), "meta")
    assert macs(ran(make, 2, 3))["0", W] == 2 * 15


@pytest.mark.parametrize("device", ["meta", pytest.param("cpu", marks=pytest.mark.slow)])
def test_flop_counter_is_explained(device):
    """Its one error: a grouped convolution's weight gradient is counted as many times as there are groups."""
    model = Model(Net, *SHAPE, device=device)
    assert explained(model) == {Cause.FORMULA_DIFFERS}
    done = reconcile_ledger(capture("flop_counter", model), training.trace(model), Alignment([]), BUILT_IN["matmul"])
    first, wide, up = 2 * 8 * 25 * (2 * 9), 2 * 8 * 25 * 9, 2 * 8 * 25 * (3 * 4)
    assert {line.layer: line.amount for line in done.adjustments} == {
        "first": -2 * first * (2 - 1),
        "wide": -2 * wide * (8 - 1),
        "up": -2 * up * (2 - 1),
    }
