"""Random networks against the closed forms of their own blocks, and proof that the check can fail.

A few networks of fixed seeds in each framework; `make fuzz` draws others for minutes, `python -m tests.networks` replays one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from . import net
from .__main__ import main
from .block import NOTHING, Block, Cost, along, product, weighed

pytestmark = pytest.mark.frameworks

SEEDS = {
    "torch": (1288, 1736, 1102, 1093, 1010, 1161, 1862, 1020, 1115, 1216),
    "tf": (1170, 1295, 1016, 2265),
}
"""Chosen so that few networks have many kinds of blocks, in training steps: frozen layers, loops and branches by values, what
is computed again, and in PyTorch layers that share a weight, hooks, and gradients in a forward pass."""


@pytest.mark.parametrize(("framework", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_networks(framework: str, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(framework, framework))
    code = main([framework, "--seed", str(seed)])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert printed.startswith("nothing is wrong: ")


@pytest.fixture(scope="module")
def counted() -> tuple[net.Net, Any]:
    """A network of two linear layers, of known sizes, and its run."""
    import torch

    import reconcile

    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    made = net.Net("torch", 0, model, (torch.ones(2, 4),), product(2 * 4 * 5) + product(2 * 5 * 3), False, "two")
    return made, reconcile.run(torch=model, inputs=made.inputs)


def test_the_check_passes(counted: tuple[net.Net, Any]) -> None:
    net.judge(*counted)


def _changed(run: Any, which: str, **fields: Any) -> Any:
    """The run with the first of these changed."""
    first, *rest = getattr(run.result, which)
    return replace(run, result=replace(run.result, **{which: (replace(first, **fields), *rest)}))


LIES: dict[str, Callable[[net.Net, Any], tuple[net.Net, Any]]] = {
    "the trace is wrong": lambda made, run: (replace(made, cost=made.cost + Cost(1)), run),
    "thop has a residual": lambda made, run: (made, _changed(run, "statements", residual=1)),
    "the trace is not complete": lambda made, run: (made, _changed(run, "traces", totals={})),
    "thop gives no number and no reason": lambda made, run: (made, _changed(run, "ledgers", total=None, reason="")),
}
"""The first line of a finding, and what it is found of."""


@pytest.mark.parametrize("said", LIES)
def test_what_is_wrong_is_found(counted: tuple[net.Net, Any], said: str) -> None:
    with pytest.raises(net.Wrong, match=rf"^{said}\n\(replay: python -m tests.networks torch --seed 0\)"):
        net.judge(*LIES[said](*counted))


def test_a_published_number_that_is_another_is_found(
    counted: tuple[net.Net, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, run = counted
    said = run.verdict
    lie = replace(said, figures=tuple(replace(figure, flops=figure.flops + 2) for figure in said.figures))
    monkeypatch.setattr(type(run), "verdict", lie)
    with pytest.raises(net.Wrong, match=r"^a number is published that did not run"):
        net.judge(made, run)


def test_an_alarm_is_told_from_a_gap() -> None:
    """A product by numpy, which is no network of these."""
    import torch

    import reconcile

    from .torch_layers import Apply

    model = Apply(lambda m, x: torch.from_numpy(x.numpy() @ x.numpy().T))
    made = net.Net("torch", 0, model, (torch.rand(2, 4),), NOTHING, False, "numpy")
    with pytest.raises(net.Wrong, match=r"^the seal raises an alarm"):
        net.judge(made, reconcile.run(torch=model, inputs=made.inputs))


def test_what_is_known_still_happens() -> None:
    """An entry of KNOWN that is mended goes."""
    import torch

    import reconcile

    from .torch_ways import Apply, Rank

    wrapper = Apply(lambda m, x: torch.mm(x, m.matrix))
    wrapper.matrix = Rank(torch.ones(4, 1), torch.ones(1, 3))
    run = reconcile.run(torch=wrapper, inputs=(torch.ones(2, 4),))
    assert run.verdict.figures == ()
    off = {(statement.from_, net.WRAPPER) for statement in run.result.statements if statement.residual}
    assert off == net.KNOWN


def test_gradients_along_a_chain() -> None:
    """An input needs none; what stands after a weight needs one; nothing comes to what stands before a block without."""
    first, second = (Block(name, None, (1,), weighed(macs), True) for name, macs in (("a", 10), ("b", 100)))
    wall = Block("wall", None, (1,), lambda n, t: NOTHING, passes=False)
    assert along([first, second], False) == (Cost(110, 100, 110), True)
    assert along([first, wall, second], False) == (Cost(110, 0, 100), True)
    assert along([first, second, wall], False) == (Cost(110), False)
    assert along([first, second], True, weights=False) == (Cost(110, 110), True)
