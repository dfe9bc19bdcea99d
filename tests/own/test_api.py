"""``reconcile.run`` with live objects: the docstring's example, what is left untouched, and what is refused."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import reconcile
from reconcile import api
from reconcile.core.errors import UsageError

pytestmark = pytest.mark.frameworks


def test_the_docstring_is_what_happens() -> None:
    """thop counts 4 multiply-adds per element of a normalisation: 2 x 4 x 8 x 30 x 30 of 57,600."""
    assert 2 * 8 * 30 * 30 * 3 * 3 * 3 == 388_800
    assert 2 * 4 * 8 * 30 * 30 == 57_600
    found = doctest.testmod(api)
    assert (found.failed, found.attempted) == (0, 7)


def test_both_frameworks_and_the_frames() -> None:
    import tensorflow as tf
    import torch

    dense = tf.keras.Sequential([tf.keras.layers.Dense(4, name="dense")], name="net")
    module = torch.nn.Sequential()
    module.add_module("dense", torch.nn.Linear(5, 4))
    found = reconcile.run(tf=dense, torch=module, inputs="3,5")
    assert found.exit_code == 0
    assert "call" not in vars(dense.layers[0])
    work = 2 * 3 * 5 * 4
    assert found.table.loc["dense", ["work (tf)", "work (torch)", "thop"]].tolist() == [work, work, work]
    lines = found.between("tf.profiler@frozen", "thop")
    assert lines["FLOP"].iloc[:-1].sum() == lines["FLOP"].iloc[-1] == work
    with pytest.raises(LookupError, match="there is no statement from thop to nothing; there are "):
        found.between("thop", "nothing")


def test_a_function_that_makes_one_and_named_inputs() -> None:
    import torch

    class Net(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"product": a @ b}

    named = {"b": torch.ones(5, 4), "a": torch.ones(3, 5)}
    events: list[tuple[str, str]] = []
    made = reconcile.run(
        torch=lambda: (Net(), named),
        counters=["flop_counter"],
        progress=lambda event: events.append((event.task, event.phase)),
    )
    assert " of <lambda> in PyTorch on b=float32 (5, 4), a=float32 (3, 5), by the convention" in made.cite()
    assert events == [(task, phase) for task in ("trace", "flop_counter") for phase in ("started", "done")]
    given = reconcile.run(torch=Net(), inputs=named, counters=["flop_counter"])
    for found in (made, given):
        assert found.result.ledgers[0].normalised_total == 2 * 3 * 5 * 4
        assert [x.counter for x in found.result.ledgers] == ["flop_counter"]


def test_what_cannot_be_used_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def broken() -> None:
        raise ValueError("no weights")

    cases = [
        ({}, "give a model: torch=..., tf=... or both."),
        ({"torch": torch.nn.Linear(2, 3), "mapping": "layers.csv"}, "mapping= is for two models: give both"),
        ({"torch": 3}, "torch= is an int; give a PyTorch model or a function that makes one."),
        ({"torch": broken}, "the factory broken raised ValueError: no weights"),
        ({"torch": dict}, "the factory dict returned a dict; it must return a torch.nn.Module"),
        (
            {"torch": torch.nn.Linear(2, 3)},
            r"the model Linear takes arguments \(input\), and none are given: give them with inputs=",
        ),
        ({"torch": lambda: torch.nn.Linear(2, 3)}, "the factory .* returned a model without example inputs"),
        ({"torch": torch.nn.Linear(2, 3), "inputs": "4,5"}, r"the model of Linear, called with \(float32 \(4, 5\)\), raised "),
        ({"torch": torch.nn.Linear(2, 3), "inputs": "4,x"}, "inputs='4,x' cannot be read"),
        ({"torch": torch.nn.Linear(2, 3), "inputs": "4,2", "counters": ["tohp"]}, "unknown counter 'tohp'"),
    ]  # fmt: skip
    for given, sentence in cases:
        with pytest.raises(UsageError, match=sentence):
            reconcile.run(**given)  # type: ignore[arg-type]


def test_inputs_that_are_given_replace_the_factorys() -> None:
    import torch

    run = reconcile.run(
        torch=lambda: (torch.nn.Embedding(2, 8), torch.zeros(9, 9)), inputs="4,5:int64", counters=["thop"]
    )
    assert run.result.traces[0].notes == ("called with int64 (4, 5)",)


def test_the_inside_of_a_custom_function_is_not_counted() -> None:
    """fvcore meets one opaque node there: not a formula of its own for the product."""
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return x @ w

    class Custom(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Product.apply(super().forward(x), torch.ones(8, 4))  # type: ignore[no-untyped-call, no-any-return]

    run = reconcile.run(torch=Custom(8, 8), inputs="2,3,8", counters=["fvcore"])
    (statement,) = [s for s in run.result.statements if (s.from_, s.to) == ("fvcore", "trace@torch")]
    (line,) = statement.adjustments
    assert (line.cause.value, line.layer, line.amount) == ("op-not-counted", "(model)", 2 * 6 * 8 * 4)
    assert "prim.PythonOp.Product" in line.evidence[0].formula
