"""W&B's get_flops in its environment, on one sample of a batch; its nodes beside those of the batch; Keras 3."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from reconcile.adapters.counters.bridge import View
from reconcile.adapters.counters.wandb import capture
from reconcile.adapters.counters.wandb.rules import BOOK, is_of_one_sample
from reconcile.adapters.shared.refusal import CannotCount
from reconcile.core.records import DEAD, FLOP, LIVE, Ledger, Op, Shape, Sighting, Trace
from tests.adapters.counters.cases import op
from tests.adapters.counters.in_environment import settled_pair

CONV, BIAS = 97 * 127 * 32 * 16, 97 * 127 * 32
"""conv_only's multiply-adds and biases of one sample: 32 channels of 97 x 127 positions, 4 x 4 taps."""


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.parametrize("batch", [1, 3])
def test_it_counts_one_sample_of_any_batch(batch: int) -> None:
    """Before the division by 2e9, the products at two operations and a bias at one; the other samples are missing."""
    ledger, statement = settled_pair("wandb", "wandb", "conv_only", batch=str(batch))
    assert (statement.from_total, statement.to_total) == (2 * CONV + BIAS, batch * 2 * CONV)
    amounts = {line.cause.value: line.amount for line in statement.adjustments}
    others = {"formula-differs": (batch - 1) * 2 * CONV} if batch > 1 else {}
    assert amounts == {"outside-convention": -BIAS, **others}
    assert [note.endswith(f"the run has {batch}") for note in ledger.notes] == [True] * (batch > 1)
    assert ledger.versions["tensorflow"] == "2.15.1"  # the newest with Keras 2


def seen(*ops: Op, role: str = LIVE) -> View:
    return View("wandb", "tf", FLOP, {}, tuple(Sighting(each, each.id, role) for each in ops), ())


def ran(*ops: Op) -> Trace:
    return Trace("tf", {}, "cpu", ops, (), (), (), ())


def dense(rows: int, features: int = 5) -> Op:
    return op("MatMul", [(rows, 4), (4, features)], [(rows, features)])


def cast(*shape: int | None) -> Op:
    shapes: list[Shape] = [shape]
    return op("Relu", shapes, shapes)


@pytest.mark.parametrize(
    ("met", "there", "one"),
    [
        ((dense(1), cast(1, 5)), (dense(3), cast(3, 5)), True),
        ((dense(1), cast(5, 8)), (dense(3), cast(15, 8)), True),  # five steps of each sample
        ((dense(1), cast(None, 5)), (dense(3), cast(3, 5)), True),
        ((dense(1),), (dense(1),), False),  # it is the whole batch
        ((dense(1), cast(5, 8)), (dense(3), cast(10, 8)), False),  # three samples here, two there
        ((dense(2),), (dense(3),), False),
        ((dense(3),), (dense(1),), False),
        ((cast(1, 5),), (cast(3, 5, 1),), False),
    ],
)
def test_nodes_are_of_one_sample_or_others(met: tuple[Op, ...], there: tuple[Op, ...], one: bool) -> None:
    assert is_of_one_sample(seen(*met), ran(*there)) is one


def test_a_node_that_no_output_needs_says_nothing_of_the_batch() -> None:
    assert not is_of_one_sample(seen(dense(1), role=DEAD), ran(dense(3)))


def test_its_rules_are_the_profilers() -> None:
    rule = BOOK.find("MatMul", {"wandb": "0.27.0", "tensorflow": "2.15.1"})
    assert rule is not None
    assert (rule.id, BOOK.rules()) == ("tf.profiler/MatMul", ())


class Callback:
    """In place of W&B's."""

    def set_model(self, model: Any) -> None:
        self.model = model


def counting(monkeypatch: pytest.MonkeyPatch, gflops: float | Exception, flops: int) -> Ledger:
    """The capture of a model of which get_flops returns or raises this, and tf.profiler counted that."""

    class WandbCallback(Callback):
        def get_flops(self) -> float:
            if isinstance(gflops, Exception):
                raise gflops
            return gflops

    package, integration = ModuleType("wandb"), ModuleType("wandb.integration.keras.keras")
    vars(integration)["WandbCallback"] = WandbCallback
    for name in ("wandb", "wandb.integration", "wandb.integration.keras"):
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, integration.__name__, integration)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "")
    ledger = Ledger("wandb", "tf", FLOP, "graph", {}, flops, (), (), {}, ())
    monkeypatch.setattr(capture, "version_of", lambda _name, _package: "0.27.0")
    monkeypatch.setattr(capture, "batch_of", lambda _model: 1)
    monkeypatch.setattr(capture, "profiled_once", lambda _counter, _model, count: (ledger, count()))
    model: Any = SimpleNamespace(called_model=None)
    return capture.capture("wandb", model)


def test_its_gflops_are_halves_of_the_profilers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counting(monkeypatch, 7 / 1e9 / 2, 7).total == 7
    with pytest.raises(CannotCount, match=r"returns 7e-09, and tf\.profiler counted 7 FLOPs"):
        counting(monkeypatch, 7 / 1e9, 7)


def test_a_release_without_the_callback_says_which_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wandb", "wandb.integration", "wandb.integration.keras", "wandb.integration.keras.keras"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(capture, "batch_of", lambda _model: 1)
    model: Any = SimpleNamespace(called_model=None)
    with pytest.raises(CannotCount, match=r"no WandbCallback here .* take 0\.27\.0"):
        capture.capture("wandb", model)


def test_keras_3_is_refused_and_other_errors_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = TypeError('can only concatenate list (not "tuple") to list')
    with pytest.raises(CannotCount, match=r"a tuple in Keras 3 .* add --environment wandb"):
        counting(monkeypatch, shapes, 0)
    with pytest.raises(TypeError, match="another"):
        counting(monkeypatch, TypeError("another"), 0)
