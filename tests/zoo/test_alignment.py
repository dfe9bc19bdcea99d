"""The pairs of the zoo say which layers belong together; aligned by themselves, they never say otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconcile.align.alignment import Alignment
from reconcile.align.automatic import align_layers
from reconcile.core.records import Trace
from reconcile.core.results import Match
from reconcile.engine.settle import Collected
from reconcile.model_zoo import loading
from reconcile.work import work_of
from tests.zoo.choice import chosen

pytestmark = pytest.mark.frameworks

MODELS = loading.zoo_names()


@pytest.fixture(params=chosen(MODELS))
def taken(request: pytest.FixtureRequest, collecting: Callable[..., Collected]) -> Collected:
    module = loading.load_pair(loading.pair_path(request.param))
    return collecting(request.param, **module.proof)


def traces(taken: Collected) -> tuple[Trace, Trace]:
    tf, torch = taken.traces
    assert isinstance(tf, Trace)
    assert isinstance(torch, Trace)
    return tf, torch


def wrong(rows: tuple[Match, ...], truth: Alignment, was: dict[str, str]) -> list[Match]:
    """Rows whose layers the pair declares to be in different rows; ``was`` gives PyTorch's layers their names back."""
    return [
        row
        for row in rows
        if row.by
        and not {truth.layer("tf", p) for p in row.paths["tf"]}
        & {truth.layer("torch", was.get(p, p)) for p in row.paths["torch"]}
    ]


def macs(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for op in trace.ops:
        found[op.layer] = found.get(op.layer, 0) + work_of(op).mac * op.calls
    return found


def test_with_their_names_every_product_finds_its_partner(taken: Collected) -> None:
    tf, torch = traces(taken)
    rows = align_layers(tf, torch)
    assert not wrong(rows, taken.declared_layers, {})
    lone = [row for row in rows if not row.by]
    assert not [row for row in lone for t in (tf, torch) for p in row.paths[t.framework] if macs(t)[p]]


def test_without_names_nothing_is_taken_for_something_else(taken: Collected) -> None:
    """PyTorch's layers are called after their number, which no layer of TensorFlow is."""
    tf, torch = traces(taken)
    new = {path: f"zz{index}" if path else path for index, path in enumerate(torch.layers)}
    blind = torch._replace(
        ops=tuple(op._replace(layer=new[op.layer]) for op in torch.ops), layers=tuple(new[p] for p in torch.layers)
    )
    was = {renamed: path for path, renamed in new.items()}
    assert not wrong(align_layers(tf, blind), taken.declared_layers, was)
