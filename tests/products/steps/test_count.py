"""``reconcile.count``: totals and phases of steps by closed forms, and what a step shows."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import reconcile
from reconcile.core.causes import Cause
from reconcile.core.errors import NotInResult, UsageError
from reconcile.core.records import FORWARD, INPUT_GRADIENT, OPTIMIZER, OTHER, WEIGHT_GRADIENT
from reconcile.products.steps import count

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests.products.steps import nets  # noqa: E402
from tests.products.steps.nets import FIRST, MLP_STEP, PLAIN, SECOND, by_hand, counted, phases, settled  # noqa: E402

pytestmark = pytest.mark.frameworks

OWN = (
    " per step of mine as the program runs it (2 calls of a model, 2 backward passes, 1 step of an optimizer) in PyTorch on "
    "2 times float32 (6, 64)"
)
"""What the number is of, in the sentence to cite."""


def loop(net: nn.Module, optimizer: torch.optim.Optimizer, micro: int = 2) -> None:
    """A step as people write it: micro-batches, cross-entropy, clipping, and the optimizer."""
    for _ in range(micro):
        (nn.functional.cross_entropy(net(nets.rows()), nets.classes()) / micro).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize("micro", [1, 3])
def test_a_step_of_micro_batches_by_closed_form(micro: int) -> None:
    net = nets.mlp()
    optimizer = torch.optim.AdamW(net.parameters())
    step = counted(lambda: loop(net, optimizer, micro), net)
    assert step.metrics()["flops"] == micro * MLP_STEP
    forward, weights = micro * (FIRST + SECOND), micro * (FIRST + SECOND)
    assert phases(step) == {FORWARD: forward, INPUT_GRADIENT: micro * SECOND, WEIGHT_GRADIENT: weights}
    assert settled(step) == {}
    assert step.result.ledgers[0].total == micro * MLP_STEP == by_hand(lambda: loop(net, optimizer, micro))
    assert step.exit_code == 0


def test_micro_batches_are_calls_not_layers() -> None:
    net = nets.mlp()
    step = counted(lambda: loop(net, torch.optim.SGD(net.parameters(), 0.1)), net)
    assert step.table["work (torch)"].to_dict() == {"0": 2 * 2 * FIRST, "2": 2 * 3 * SECOND}
    (trace,) = step.collected.traces
    calls = [op.calls for op in trace.ops if (op.layer, op.phase, op.op) == ("0", FORWARD, "aten.addmm")]
    assert calls == [2]


def test_clipping_and_the_optimizer_have_their_names() -> None:
    net = nets.mlp()
    optimizer = torch.optim.AdamW(net.parameters())
    ops = counted(lambda: loop(net, optimizer), net).collected.traces[0].ops
    assert {op.phase for op in ops if op.layer == "(clip_grad_norm_)"} == {OTHER}
    assert {op.layer for op in ops if op.phase == OPTIMIZER} == {"(optimizer)"}
    assert [op.op for op in ops if op.layer == "(clip_grad_norm_)" and "norm" in op.op] != []


WAYS = {
    "plain": ({}, PLAIN),
    "reentrant": ({"saved": "reentrant"}, nets.REENTRANT),
    "non-reentrant": ({"saved": "non-reentrant"}, nets.NON_REENTRANT),
    "lora": ({"lora": True}, nets.LORA),
    "autocast, reentrant": ({"saved": "reentrant"}, nets.REENTRANT),
}


CHEAP = ("lora", "autocast, reentrant")


@pytest.mark.parametrize("way", [pytest.param(way, marks=() if way in CHEAP else pytest.mark.slow) for way in WAYS])
def test_a_transformers_step_by_closed_form(way: str) -> None:
    made, expected = WAYS[way]
    model = nets.Transformer(**made)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    ids = nets.tokens()

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in way):
            loss = nets.cross_entropy(model, ids)
        loss.backward()
        optimizer.step()

    step = counted(run, model)
    assert phases(step) == expected
    total = sum(expected.values())
    assert step.metrics()["flops"] == total
    ledger = step.result.ledgers[0]
    assert ledger.total == by_hand(run)
    # this counter has no formula for the CPU's attention before PyTorch 2.15
    left = {} if ledger.total == total else {Cause.OP_NOT_COUNTED: nets.attention(expected)}
    assert settled(step) == left
    assert step.exit_code == 0


def test_a_step_of_several_batches_is_not_that_of_a_sample() -> None:
    """The first dimension of its inputs is the batch of one call, and the step has two."""
    step = counted(lambda: [net(nets.rows()).sum().backward() for net in [nets.mlp()] for _ in range(2)])
    assert step.verdict.cautions == ()


def test_views_are_those_of_a_run(tmp_path: Path) -> None:
    net = nets.mlp()
    step = counted(lambda: loop(net, torch.optim.SGD(net.parameters(), 0.1)), net, name="mine")
    assert f"{2 * MLP_STEP:,} FLOPs" in step.cite()
    assert OWN in step.cite()
    assert str(step) == "Reconciled: 1 counter, 1 exact."
    lines = step.between("flop_counter", "trace@torch")["FLOP"].tolist()
    assert lines[0] == lines[-1] == 2 * MLP_STEP
    shown = step.phases.set_index("layer")
    assert (shown.loc["2", INPUT_GRADIENT], shown.loc["", INPUT_GRADIENT]) == (2 * SECOND, 2 * SECOND)
    assert [path.name for path in step.write(tmp_path, formats=["md", "json"])] == [
        "mine-training.md",
        "mine-training.json",
    ]
    assert f"{2 * MLP_STEP:,}" in (tmp_path / "mine-training.md").read_text()


def test_without_a_model_modules_are_named_as_they_are_called() -> None:
    net, loss = nets.mlp(), nn.CrossEntropyLoss()
    step = counted(lambda: loss(net(nets.rows()), nets.classes()).backward())
    assert step.table["work (torch)"].to_dict() == {"0": 2 * FIRST, "2": 3 * SECOND}
    both = counted(lambda: nets.mlp()[2](net[0](nets.rows()).relu()).sum().backward())
    assert sum(both.table["work (torch)"]) == MLP_STEP


def test_a_step_has_the_parameters_of_its_layers() -> None:
    """A shared weight counts once; where this process has only a part of one, the parameters of no layer are known."""
    net = nn.ModuleDict({"first": nn.Linear(3, 4), "second": nn.Linear(3, 4)})
    net["second"].weight = net["first"].weight

    def parameters() -> object:
        step = counted(lambda: [net[name](torch.zeros(2, 3)).sum().backward() for name in net], net)
        return step.result.traces[0].parameters

    assert parameters() == {"first": 3 * 4 + 4, "second": 4}
    net["second"].bias._fsdp_flattened = True
    assert parameters() == {}


def test_several_models_have_their_classes_names() -> None:
    one, two = nets.mlp(), nets.mlp()
    step = counted(lambda: (one(nets.rows()), two(nets.rows()), two(nets.rows())), one, two)
    names = {"Sequential.0": FIRST, "Sequential.2": SECOND, "Sequential#2.0": 2 * FIRST, "Sequential#2.2": 2 * SECOND}
    assert step.table["work (torch)"].to_dict() == names


def test_what_cannot_be_used_is_one_sentence() -> None:
    net = nets.mlp()
    cases = [
        (lambda: reconcile.count(3), "reconcile.count takes PyTorch models, and this is an int."),
        (lambda: reconcile.count(net, "x"), "reconcile.count takes PyTorch models, and this is a str."),
        (lambda: reconcile.count(net, counters=["thop"]), "thop counts a model that reconcile calls itself"),
        (lambda: reconcile.count(net, counters=["tohp"]), "unknown counter 'tohp'"),
        (lambda: reconcile.count(net, convention="mine"), "unknown convention 'mine'"),
    ]  # fmt: skip
    for call, sentence in cases:
        with pytest.raises(UsageError, match=sentence):
            call()


def test_before_its_end_a_step_has_no_result() -> None:
    step = reconcile.count(nets.mlp())
    for look in (step.cite, step.metrics, lambda: step.seconds):
        with pytest.raises(NotInResult, match=r"the step has not run: look at it after the `with` block."):
            look()
    with step, pytest.raises(NotInResult, match=r"the step still runs: look at it after the `with` block."):
        step.cite()


def test_the_docstring_is_what_happens() -> None:
    """3 rows of 4 to 2: forward, and the gradients of the weights."""
    assert 2 * 2 * 3 * 4 * 2 == 96
    found = doctest.testmod(count)
    assert found.failed == 0
    assert found.attempted > 4
