"""What a program launches past PyTorch's dispatcher is an op of the trace, or a problem of it: it never counts as nothing."""

from __future__ import annotations

import sys
from collections import OrderedDict
from threading import Event, Thread
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from reconcile import count, run
from reconcile.adapters.pytorch import trace as inference
from reconcile.adapters.pytorch import training
from reconcile.adapters.pytorch.compiled import SCRIPT, TORCHSCRIPT_RUNS_KERNELS
from reconcile.adapters.pytorch.tracing import launches, numpy_crossings
from reconcile.core.errors import NotInResult
from tests.adapters.pytorch.tracing.test_numpy_crossings import net
from tests.adapters.pytorch.training_models import Model

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

IMAGE = 1, 3, 8, 8
FIRST, LAST = ("aten.addmm", "first"), ("aten.addmm", "last")
CONVOLUTION = "aten._convolution"


class Runner:
    """As PyTorch's own: it is given a list of inputs, and what it runs is no operator's call."""

    def run(self, inputs):
        with torch.utils._python_dispatch._disable_current_modes():
            return [2 * value for value in inputs]

    def boxed_run(self, inputs):
        found = self.run(inputs)
        inputs.clear()
        return found

    __call__ = boxed_run


def traced(compute, how=inference):
    found = how.trace(Model(net(compute), 3, 6, device="cpu"))
    work = [
        op
        for op in found.ops
        if op.op.startswith(("aoti", "inductor", "cuda_graph")) or op.op in ("aten.addmm", "aten.mul")
    ]
    return found, [(op.op, op.layer) for op in work if op.phase == "forward"]


@pytest.mark.parametrize("how", [inference, training])
@pytest.mark.parametrize(
    ("name", "program"), [("run", "aoti.program"), ("boxed_run", "aoti.program"), ("__call__", "inductor.program")]
)
def test_a_program_of_inductor_is_an_op(name, program, how, monkeypatch):
    monkeypatch.setattr(launches, "_runners", lambda: [Runner])
    monkeypatch.setitem(sys.modules, "torch._inductor.output_code", SimpleNamespace(CompiledFxGraph=Runner))
    own = vars(Runner)[name]
    found, ops = traced(lambda x: getattr(Runner(), name)([x])[0], how)
    assert ops == [FIRST, (program, "middle"), LAST]
    (op,) = [op for op in found.ops if op.op == program]
    assert [tensor.shape for tensor in (*op.inputs, *op.outputs)] == [(3, 4), (3, 4)]
    assert vars(Runner)[name] is own


@pytest.mark.slow  # it compiles
@pytest.mark.parametrize("convention", ["matmul", "all"])
def test_a_graph_that_was_compiled_ahead_withholds_the_number(convention):
    """Its product is PyTorch's own operator, and its tanh is in a kernel that nothing records."""
    made = torch.export.export(Layer(), (torch.ones(10, 4),)).module()
    with torch.no_grad():
        compiled = torch._inductor.compile(made, [torch.ones(10, 4)])
        with count(convention=convention) as step:
            compiled(torch.ones(10, 4))
    assert step.exit_code == 1
    with pytest.raises(NotInResult, match=r"inductor\.program"):
        step.cite()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        return torch.tanh(x @ self.weight)


def test_outside_a_recording_a_program_runs_as_ever():
    assert torch.equal(Runner().run([torch.ones(2)])[0], torch.full((2,), 2.0))
    assert [name for kind in launches._runners() for name in ("run",) if callable(vars(kind)[name])] != []


def test_a_graph_that_is_played_again_is_an_op(monkeypatch):
    played = []
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", played.append)

    def compute(x):
        torch.cuda.CUDAGraph.replay("the graph")
        return x

    _, ops = traced(compute)
    assert ops == [FIRST, ("cuda_graph.replay", "middle"), LAST]
    assert (played, torch.cuda.CUDAGraph.replay) == (["the graph"], played.append)


def test_functions_of_dlpack_are_put_back():
    places = (*numpy_crossings.list_capsules(), (torch._C, "_from_dlpack"), (torch, "frombuffer"))
    own = [vars(owner)[name] for owner, name in places]
    traced(lambda x: torch.from_dlpack(x))
    assert [vars(owner)[name] for owner, name in places] == own


def test_a_class_that_comes_later_is_seen_too(monkeypatch):
    """Triton may be imported by the model: a recorder within a recorder sees it."""
    found = []
    monkeypatch.setattr(launches, "_runners", lambda: found)
    own = vars(Runner)["run"]
    launches.see()
    found.append(Runner)
    launches.see()
    inside = vars(Runner)["run"]
    launches.unsee()
    assert inside is not own
    assert vars(Runner)["run"] is inside
    launches.unsee()
    assert vars(Runner)["run"] is own


def test_a_thread_that_outlives_the_call_leaves_nothing(monkeypatch):
    monkeypatch.setattr(launches, "_runners", lambda: [Runner])
    own, go_on, ready = vars(Runner)["run"], Event(), Event()

    def wait():
        ready.set()
        go_on.wait()

    def compute(x):
        Thread(target=wait, daemon=True).start()
        ready.wait()
        return x

    traced(compute)
    kept = vars(Runner)["run"]
    go_on.set()
    assert kept is own


def script(*parts, fused):
    """A frozen module of these parts: ``optimize`` gives it kernels, ``warm`` calls it until a fuser does."""
    module = torch.jit.trace(nn.Sequential(*parts).eval(), torch.ones(IMAGE))
    if fused == "optimize":
        return torch.jit.optimize_for_inference(module)
    if fused == "warm":
        module = torch.jit.freeze(module)
        with torch.no_grad():
            for _ in range(3):
                module(torch.ones(IMAGE))
    return module


def held(part):
    return nn.Sequential(OrderedDict(part=part))


@pytest.fixture
def _onednn():
    torch.jit.enable_onednn_fusion(True)
    yield
    torch.jit.enable_onednn_fusion(False)


def problems(make):
    found = inference.trace(Model(make, *IMAGE, device="cpu"))
    return [(p.op, p.layer, p.reason) for p in found.problems], [op.op for op in found.ops]


@pytest.mark.parametrize("inside", [True, False])
def test_kernels_of_torchscript_withhold_the_number(inside):
    def make():
        part = script(nn.Conv2d(3, 8, 3), nn.ReLU(), fused="optimize")
        return held(part) if inside else part

    layer = "part" if inside else ""
    assert problems(make)[0] == [(SCRIPT, layer, TORCHSCRIPT_RUNS_KERNELS % "prim::mkldnn_convolution")]


@pytest.mark.parametrize("inside", [True, False])
def test_convolutions_of_onednn_have_sizes_in_a_run(inside):
    """The second one has two groups and a stride of 2."""
    part = script(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, 2, 1, groups=2), fused="optimize")
    batch, _, height, width = IMAGE
    first, second = height * width * 8 * 3 * 9, -(-height // 2) * -(-width // 2) * 4 * 4 * 9
    for model in (held(part) if inside else part, part):  # the module of the program is as it was
        done = run(torch=model, inputs=torch.ones(IMAGE), counters=["flop_counter"])
        assert done.result.traces[0].totals["matmul"] == 2 * batch * (first + second)
        assert done.exit_code == 0
    with count() as step:
        part(torch.ones(IMAGE))
    assert [item.op for item in step.result.traces[0].unknown] == [SCRIPT]


@pytest.mark.usefixtures("_onednn")
def test_what_a_fuser_made_of_torchscript_is_told():
    found, ops = problems(lambda: held(script(nn.Conv2d(3, 8, 3), nn.ReLU(), fused="warm")))
    assert found == [(SCRIPT, "part", TORCHSCRIPT_RUNS_KERNELS % "prim::oneDNNFusionGroup")]
    assert CONVOLUTION not in ops


def test_torchscript_of_operators_alone_has_its_number():
    found, ops = problems(lambda: held(script(nn.Conv2d(3, 8, 3), nn.ReLU(), fused="")))
    assert found == []
    assert CONVOLUTION in ops
