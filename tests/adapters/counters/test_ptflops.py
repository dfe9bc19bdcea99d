"""ptflops beside what ran: its functions on the cases by hand, its totals by closed forms, and its known errors by cause."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.counters.patched_functions.capture import public_names
from reconcile.adapters.counters.ptflops.rules import BOOK
from reconcile.core.causes import Cause, State
from reconcile.core.records import Op
from tests.adapters.counters.in_environment import explained
from tests.adapters.counters.ptflops_cases import CASES, RELEASES
from tests.adapters.counters.small_nets import Does, called

ptflops = pytest.importorskip("ptflops")

nn, F = torch.nn, torch.nn.functional

OPS = importlib.import_module("ptflops.pytorch_ops")
ATEN = importlib.import_module("ptflops.aten_ops")


def empty(shape: Any) -> Any:
    return torch.empty(list(shape), device="meta")


def counted(op: Op) -> int | None:
    """The number that ptflops' own function gives for the op; None for an op that is ours."""
    space, _, name = op.op.rpartition(".")
    inputs, out = [empty(tensor.shape) for tensor in op.inputs], empty(op.outputs[0].shape)
    if space == "aten":
        rest = [None] * (len(inputs) == 2) + [None] * 3 + [op.attrs.get("transposed"), None, None]
        given = [*inputs, *rest] if name == "convolution" else inputs
        return int(ATEN.ATEN_OPS_MAPPING[getattr(torch.ops.aten, name)](given, (out,)))
    if space.startswith("torch.nn.modules"):
        kind = getattr(importlib.import_module(space), name)
        return of_module(OPS.MODULES_MAPPING[kind], kind, op, inputs, out)
    if name == "DeformConv2d":  # torchvision is not needed
        return of_module(OPS.deformable_conv_flops_counter_hook, nn.Conv2d, op, inputs, out)
    spaces = {"torch.nn.functional": F, "torch": torch, "torch.Tensor": torch.Tensor}
    if space not in spaces:
        return None
    function = getattr(spaces[space], name)
    handler = {**OPS.FUNCTIONAL_MAPPING, **OPS.TENSOR_OPS_MAPPING}[function]
    settings = {key: tuple(v) if isinstance(v, list) else v for key, v in op.attrs.items()}
    return int(handler(*inputs, **settings))


def of_module(hook: Any, kind: Any, op: Op, inputs: list[Any], out: Any) -> int:
    """The hook of a class, called with a module that has the weights of its settings and nothing else."""
    settings = dict(op.attrs, __flops__=0)
    for name in ("bias",):
        if isinstance(settings.get(name), list):
            settings[name] = empty(settings[name])
    if "hidden_size" in settings:
        weights = dict(kind(**{k: v for k, v in op.attrs.items() if k != "proj_size" or v}).named_parameters())
        settings["__getattr__"] = weights.__getitem__
    if "in_proj_bias" in settings:
        settings["in_proj_bias"] = empty((24,)) if settings["in_proj_bias"] else None
    module = type(kind.__name__, (kind,) if "hidden_size" in settings else (SimpleNamespace,), {})
    made = module.__new__(module)
    vars(made).update(settings)
    hook(made, tuple(inputs), [out[0]] if kind is nn.Upsample else out)
    return int(made.__flops__)


def test_the_cases_by_hand_are_what_its_functions_give() -> None:
    for case in (case for case in CASES if RELEASES[-1] in case.releases and case.op.op != "ptflops.average"):
        assert counted(case.op) == case.total, case


def test_every_class_and_function_that_it_counts_has_a_rule() -> None:
    """It has a formula for F.linear, which it does not patch (pytorch_engine.py:349)."""
    names = public_names([*OPS.FUNCTIONAL_MAPPING, *OPS.TENSOR_OPS_MAPPING])
    classes = [f"{kind.__module__}.{kind.__qualname__}" for kind in OPS.MODULES_MAPPING]
    ruled = {rule.op for rule in BOOK.rules()}
    assert [name for name in (*names.values(), *classes) if name not in ruled] == ["torch.nn.functional.linear"]
    assert [function for function in OPS.TENSOR_OPS_MAPPING if function not in names] == []


def around(child: Any) -> Any:
    """A module that holds another one."""
    return Does(lambda m, x: m.child(x), child=child)


def packed() -> Any:
    """A recurrent layer on sequences of different lengths."""
    return Does(lambda m, x: m.gru(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2])))[1], gru=nn.GRU(4, 3))


def shared() -> Any:
    """One layer under two parents."""
    layer = nn.Linear(3, 3, bias=False)
    return nn.Sequential(around(layer), around(layer))


def linear() -> Any:
    return nn.Linear(3, 4, bias=False)


def attention(weights: bool) -> Any:
    """Attention to itself, with weights returned or in one op."""
    inner = nn.MultiheadAttention(4, 2, bias=False, batch_first=True)
    return Does(lambda m, x: m.inner(x, x, x, need_weights=weights)[0], inner=inner)


GATES = 3 * 3 * (4 + 3)
"""Products of a step of a GRU of 4 inputs and 3 units; O:105 adds 7 of each unit."""
GRU = GATES + 7 * 3
OUTSIDE, AVERAGED, RECOUNTED = Cause.OUTSIDE_CONVENTION, Cause.AVERAGED_OVER_BATCH, Cause.RECOUNTED
NETS: dict[str, tuple[Callable[[], Any], tuple[tuple[int, ...], ...], int, dict[Cause, int]]] = {
    # name: model, shapes of its inputs, ptflops' total, what the convention matmul adds by cause, in FLOPs
    "one sample": (linear, ((1, 3),), 12, {}),
    "a batch": (linear, ((5, 3),), 12, {AVERAGED: 2 * (60 - 12)}),
    # One row of 9 numbers comes as 3 samples: 36 products, 4 biases and 4 products make 44 / 3, which is cut off.
    "cut off": (
        lambda: nn.Sequential(nn.Flatten(0), nn.Linear(9, 4), nn.Linear(4, 1, bias=False)),
        ((3, 3),),
        (36 + 4 + 4) // 3,
        {OUTSIDE: -2 * 4, AVERAGED: 2 * (44 - 14)},
    ),
    # The same work with the 7 steps first: they are taken for the batch, and 2 sequences of one step are left.
    "batch first": (
        lambda: nn.GRU(4, 3, bias=False, batch_first=True),
        ((2, 7, 4),),
        7 * GRU,
        {OUTSIDE: -2 * 14 * 21, AVERAGED: 2 * 7 * GRU},
    ),
    "steps first": (
        lambda: nn.GRU(4, 3, bias=False),
        ((7, 2, 4),),
        2 * GRU,
        {OUTSIDE: -2 * 14 * 21, AVERAGED: 2 * 12 * GRU},
    ),
    # Functions are not divided.
    "functions of a batch": (lambda: called(lambda x, y: torch.mm(x, y)), ((5, 3), (3, 4)), 60, {}),
    "methods": (lambda: called(lambda x, y: x.mul(y).add(y)), ((5, 3), (5, 3)), 2 * 15, {OUTSIDE: -2 * 30}),
    "operator": (lambda: called(lambda x, y: x @ y), ((5, 3), (3, 4)), 0, {Cause.CALL_NOT_SEEN: 2 * 60}),
    "functional linear": (lambda: called(F.linear), ((5, 3), (4, 3)), 0, {Cause.CALL_NOT_SEEN: 2 * 60}),
    "vector": (
        lambda: called(lambda x, y: torch.matmul(x, y)),
        ((5, 3), (3,)),
        5 * 3 * 3,
        {Cause.FORMULA_DIFFERS: 2 * (15 - 45)},
    ),
    "two parents": (shared, ((1, 3),), 2 * 2 * 9, {RECOUNTED: -2 * 18}),
    # The hook counts 6 elements, and so does F.relu, which the module calls.
    "ReLU": (nn.ReLU, ((1, 6),), 2 * 6, {OUTSIDE: -2 * 12}),
    "attention in one op": (
        lambda: attention(False),
        ((1, 5, 4),),
        5 * 4 + 4 * 5 * 16 + 2 * (2 * 25 * 2 + 25) + 5 * 4,
        {OUTSIDE: -2 * (5 * 4 + 2 * 25 + 5 * 4)},
    ),
    # torch.bmm and F.softmax inside of it count the scores, the weights and their softmax again; a scale is an operator.
    "attention": (
        lambda: attention(True),
        ((1, 5, 4),),
        (5 * 4 + 4 * 5 * 16 + 2 * (2 * 25 * 2 + 25) + 5 * 4) + 2 * 2 * 25 * 2 + 2 * 25,
        {OUTSIDE: -2 * (5 * 4 + 2 * 25 + 5 * 4 + 2 * 25), Cause.FORMULA_DIFFERS: -2 * 2 * 2 * 25 * 2},
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_its_total_is_closed_and_the_tool_finds_the_cause(name: str) -> None:
    make, shapes, total, causes = NETS[name]
    torch.manual_seed(0)
    inputs = tuple(torch.ones(shape) for shape in shapes)
    assert explained("ptflops@pytorch", make(), inputs if len(inputs) > 1 else inputs[0]) == (total, causes)
    assert len(inputs) > 1 or as_users_call_it(make(), inputs[0], "pytorch") == total


def as_users_call_it(net: Any, x: Any, backend: str) -> int:
    total, _ = ptflops.get_model_complexity_info(
        net, (1,), as_strings=False, print_per_layer_stat=False, input_constructor=lambda _size: x, backend=backend
    )
    return int(total)


ATEN_NETS: dict[str, tuple[Callable[[], Any], tuple[int, ...], int, dict[Cause, int]]] = {
    "a batch": (linear, (5, 3), 60, {}),
    "bias": (lambda: nn.Linear(3, 4), (5, 3), 60 + 20, {OUTSIDE: -2 * 20}),
    "steps first": (lambda: nn.GRU(4, 3, bias=False), (7, 2, 4), 14 * GATES, {}),
    "LSTM": (lambda: nn.LSTM(4, 3, bias=False), (7, 2, 4), 0, {Cause.OP_NOT_COUNTED: 2 * 14 * 4 * 3 * 7}),
    "products added": (
        lambda: called(lambda x: torch.baddbmm(x, x, x)),
        (2, 3, 3),
        0,
        {Cause.OP_NOT_COUNTED: 2 * 2 * 27},
    ),
}


@pytest.mark.parametrize("name", ATEN_NETS)
def test_the_backend_aten_counts_ops(name: str) -> None:
    make, shape, total, causes = ATEN_NETS[name]
    torch.manual_seed(0)
    assert explained("ptflops@aten", make(), torch.ones(shape)) == (total, causes)
    assert as_users_call_it(make(), torch.ones(shape), "aten") == total


def test_a_call_with_ops_in_several_modules_is_counted_once() -> None:
    """Attention that takes its last weight from a module: the rest is as without it."""
    net, total = attention(False), NETS["attention in one op"][2]
    nn.utils.parametrizations.weight_norm(net.inner.out_proj)
    counted, causes = explained("ptflops@pytorch", net, torch.ones(1, 5, 4), "all")
    assert counted == total
    assert RECOUNTED not in causes


@pytest.mark.parametrize("convention", ["all", "textbook"])
@pytest.mark.parametrize("counter", ["ptflops@pytorch", "ptflops@aten"])
def test_every_convention_closes(counter: str, convention: str) -> None:
    net = nn.Sequential(nn.Conv1d(4, 6, 3), nn.GroupNorm(2, 6), nn.GELU(), nn.MaxPool1d(2), nn.Upsample(scale_factor=2))
    explained(counter, net, torch.ones(2, 4, 9), convention)


def test_functions_are_left_as_they_were() -> None:
    before = {id(space): dict(vars(space)) for space in (torch, F, torch.Tensor)}
    explained("ptflops@pytorch", nn.ReLU(), torch.ones(1, 2))
    changed = [
        name
        for space in (torch, F, torch.Tensor)
        for name, value in before[id(space)].items()
        if vars(space).get(name) is not value
    ]
    assert changed == []


BEYOND: dict[str, tuple[Callable[[], Any], tuple[int, ...], str]] = {
    "packed": (packed, (3, 2, 4), "packed sequences have none: give padded ones"),
    "script": (
        lambda: torch.jit.script(linear()),
        (2, 3),
        "a ScriptModule takes none: give the module that it was made of",
    ),
    "fraction": (
        lambda: called(lambda x: F.interpolate(x, scale_factor=1.3)),
        (1, 1, 3, 3),
        "of an operation for a call of torch.nn.functional.interpolate, which no rule covers",
    ),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("name", BEYOND)
def test_a_model_that_it_cannot_count_is_not_comparable(name: str) -> None:
    make, shape, sentence = BEYOND[name]
    found = reconcile.run(torch=make(), inputs=torch.ones(shape), counters=("ptflops@pytorch", "flop_counter")).result
    ledger = next(ledger for ledger in found.ledgers if ledger.counter == "ptflops@pytorch")
    assert ledger.state is State.NOT_COMPARABLE
    assert sentence in ledger.reason
