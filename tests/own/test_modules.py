"""Modules that are not plain: each reconciles under `matmul` and `all`, or runs for real, with a word about it.

``x`` is (2, 3, 8): 2 x 3 = 6 rows of 8.  Expected work is in multiply-adds, 2 FLOPs each under `matmul`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reconcile.engine.settle import Collected
from reconcile.launch import runner
from tests.own.conftest import Repository

pytestmark = [pytest.mark.slow, pytest.mark.frameworks, pytest.mark.usefixtures("warmed")]

MODULES = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    X = torch.ones(2, 3, 8)


    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)
            self.b = nn.Linear(8, 4)
            self.a.register_forward_hook(lambda m, i, o: o @ m.weight)
            self.b.register_forward_pre_hook(lambda m, i: (i[0] * 2,))
            self.register_forward_pre_hook(lambda m, i, named: ((), {"x": named["x"] @ m.a.weight}), with_kwargs=True)
            self.register_forward_hook(lambda m, i, o: o["out"].softmax(-1))

        def forward(self, x):
            return {"out": self.b(self.a(x))}


    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)
            self.again = self.a
            self.both = nn.Sequential(self.a, nn.ReLU(), self.a)
            self.head = nn.Linear(8, 8)
            self.head.weight = self.a.weight

        def forward(self, x):
            return self.head(self.both(self.again(self.a(x))))


    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(8, 8))

        def forward(self, x):
            x = F.linear(x, self.w) + torch.einsum("bti,ij->btj", x, self.w)
            x = F.scaled_dot_product_attention(x, x, x)
            return F.layer_norm(F.gelu(torch.bmm(x, x.transpose(1, 2)) @ x), (8,))


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g @ w.T, x.T @ g


    class Custom(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)
            self.w = nn.Parameter(torch.randn(8, 4))

        def forward(self, x):
            return Product.apply(self.a(x), self.w)


    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)
            self.b = nn.Linear(8, 8)

        def forward(self, x):
            steps = 0
            while float(x.sum()) > -1e9 and steps < 5:
                x = self.a(x) * 0.0 if steps % 2 == 0 and x.mean() > -1e9 else self.b(x)
                steps += 1
            return x


    class Values(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)

        def forward(self, x):
            return self.a(x) if x.numpy().min() > -1000.0 else x  # a decision on values is no work of the model


    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 8)
            self.a = nn.Linear(8, 4)

        def forward(self, ids, mask=None, *, scale=1.0, extra):
            h = self.a(self.embedding(ids)) * scale
            if mask is not None:
                h = h * mask.unsqueeze(-1)
            return {"h": h, "more": [extra["pair"][0] @ extra["pair"][1], extra["flag"]]}


    def hooked():
        return Hooked(), {"x": X}

    def shared():
        return Shared(), X

    def functional():
        return Functional(), X

    def custom():
        return Custom(), X

    def branches():
        return Branches(), (X,)

    def values():
        return Values(), [X]

    def loaded():
        module = nn.Linear(8, 8)
        module.weight.data.numpy()[:] = 1.0
        return module, X

    def nested():
        extra = {"pair": (torch.ones(3, 4), torch.ones(4, 5)), "flag": True}
        return Nested(), {"ids": torch.full((2, 7), 49), "mask": torch.ones(2, 7), "scale": 2, "extra": extra}

    def mixed():
        extra = {"pair": [torch.ones(3, 4), torch.ones(4, 5)], "flag": None}
        return Nested(), [torch.full((2, 7), 49)], {"extra": extra}

    def encoder():
        return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), {"src": X}

    def plain():
        return nn.Embedding(2, 8), torch.zeros(9, 9)
"""

ROWS = 2 * 3
CASES = {
    # The root's hook and its product, linear a and the product of its hook, linear b.
    "hooked": ROWS * (8 * 8 + 8 * 8 + 8 * 8 + 8 * 4),
    # a, again, twice in both, head.
    "shared": ROWS * 8 * 8 * 5,
    # linear, einsum; attention: scores and values of 2 x (3, 3, 8); (3, 8, 3) and (3, 3, 8).
    "functional": ROWS * 8 * 8 * 2 + 2 * (2 * 3 * 3 * 8) + 2 * (3 * 8 * 3 + 3 * 3 * 8),
    "custom": ROWS * (8 * 8 + 8 * 4),
    # a at steps 0, 2 and 4, b at 1 and 3.
    "branches": ROWS * 8 * 8 * 5,
    "values": ROWS * 8 * 8,
    "loaded": ROWS * 8 * 8,
    "nested": 2 * 7 * 8 * 4 + 3 * 4 * 5,
    "mixed": 2 * 7 * 8 * 4 + 3 * 4 * 5,
    # query, key, value and output; scores and values; the two of the feed-forward part.
    "encoder": ROWS * 8 * 8 * 4 + 2 * (2 * 3 * 3 * 8) + ROWS * 8 * 16 * 2,
}

FOUND: dict[str, Collected] = {}
"""What workers found for a module, however often its report is asked for."""


@pytest.fixture
def report(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """``report(name, *args)``: the JSON report of a module; its workers run once."""
    collect = runner.collect
    repository.write(modules=MODULES)

    def reported(name: str, *args: str) -> dict[str, Any]:
        def once(*request: Any) -> Collected:
            if name not in FOUND:
                FOUND[name] = collect(*request)
            return FOUND[name]

        monkeypatch.setattr(runner, "collect", once)
        return repository.report(f"modules.{name}", "--torch", f"modules:{name}", *args)

    return reported


Report = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("convention", ["matmul", "all"])
@pytest.mark.parametrize("name", CASES)
def test_it_reconciles(report: Report, name: str, convention: str) -> None:
    data = report(name, "--convention", convention)
    (trace,) = data["traces"]
    assert trace["totals"]["matmul"] == 2 * CASES[name]
    assert [x["counter"] for x in data["ledgers"] if x["total"] is None] == []
    assert trace["device"] == "cpu"
    assert [note for note in trace["notes"] if note.startswith("cannot run on meta")] == []
    assert trace["notes"][-1].startswith("called with ")


def test_naming_the_inputs_sends_no_module_down_another_path(report: Report) -> None:
    """An encoder layer to which a hook is attached is no fused op any more, and flop_counter would count it."""
    totals = {ledger["counter"]: ledger["total"] for ledger in report("encoder")["ledgers"]}
    assert totals["flop_counter"] == 0


def test_the_inside_of_a_custom_function_is_not_counted(report: Report) -> None:
    """fvcore meets one opaque node there: not a formula of its own for the product."""
    data = report("custom", "--from", "fvcore")
    (statement,) = (s for s in data["statements"] if (s["from"], s["to"]) == ("fvcore", "trace@torch"))
    ((line),) = statement["adjustments"]
    assert (line["cause"], line["layer"], line["amount"]) == ("op-not-counted", "(model)", 2 * ROWS * 8 * 4)
    said = "ran inside of prim.PythonOp.Product: fvcore does not support prim.PythonOp.Product"
    assert line["evidence"][0]["formula"] == said


def test_the_report_says_what_the_model_was_called_with(report: Report) -> None:
    said = (
        "called with ids=int64 (2, 7), mask=float32 (2, 7), scale=2, "
        "extra={pair: (float32 (3, 4), float32 (4, 5)), flag: True}"
    )
    assert report("nested")["traces"][0]["notes"] == [said]


def test_inputs_on_the_command_line_replace_the_factorys(repository: Repository) -> None:
    repository.write(modules=MODULES)
    asked = ("--torch", "modules:plain", "--counter", "thop")
    assert "called with (float32 (9, 9)), raised RuntimeError: " in repository.refusal(*asked)
    data = repository.report("modules.plain", *asked, "--input", "4,5:int64")
    assert data["params"] == {"torch": "modules:plain", "inputs": "4,5:int64"}
    assert data["traces"][0]["notes"] == ["called with int64 (4, 5)"]
