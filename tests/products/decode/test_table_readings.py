"""Readings that published tables need: each is a closed form of a small trace, and that of norms is what fvcore prints."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.core.records import TRAINING, Op
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.products.decode.readings import DERIVED, PART, Candidate
from reconcile.products.decode.table_readings import of_tables
from reconcile.work import Work, known_part, load
from tests.products.decode.vit import Vit, linear, op

SMALL = Vit(tokens=5, width=12, heads=3, inner=20, layers=2, classes=7)
TOKENS, WIDTH, HEADS = SMALL.tokens, SMALL.width, SMALL.heads
DEEP = WIDTH // HEADS
LINEAR = TOKENS * WIDTH * WIDTH
FC = linear("fc", TOKENS, WIDTH, WIDTH)


def known(*ops: Op) -> list[tuple[Op, Work]]:
    load()
    return [(one, known_part(one).work) for one in ops]


def found(*ops: Op) -> dict[str, Candidate]:
    return {reading.what: reading for reading in of_tables(known(*ops))}


def test_a_transformer_with_fused_attention() -> None:
    readings = found(*SMALL.trace().ops)
    macs, lost, norms, head = SMALL.macs, SMALL.attention, SMALL.norms, SMALL.head
    values = {what: (reading.value, reading.rank) for what, reading in readings.items()}
    assert values == {
        "the products that ran, and norms and pools as fvcore counts them": (macs + norms, PART),
        "the products that ran without those of fused attention, and norms and pools as fvcore counts them": (
            macs - lost + norms,
            PART,
        ),
        "the products that ran without those of fused attention": (macs - lost, PART),
        "the products that ran without those of fused attention, doubled": (2 * (macs - lost), DERIVED),
        "the products that ran without those of the last layer": (macs - head, PART),
        "the products that ran without those of the last layer, doubled": (2 * (macs - head), DERIVED),
    }
    said = readings["the products that ran without those of fused attention"].note
    assert said == f"attention-left-out: {lost:,} products of 2 layers are not in it: blocks.0.attn, blocks.1.attn."


def test_products_between_activations() -> None:
    scores = op("aten.bmm", "attn", [(HEADS, TOKENS, DEEP), (HEADS, DEEP, TOKENS)], (HEADS, TOKENS, TOKENS))
    readings = found(scores, FC)
    what = "the products of weights that ran, without those of activations with each other"
    assert readings[what].value == LINEAR
    assert found(FC, FC._replace(layer="fc2")).keys().isdisjoint({what})


def test_an_adaptive_pool_is_a_mean_that_is_called_as_one() -> None:
    shape = (1, WIDTH, 4, 4)
    what = "the products that ran, and norms and pools as fvcore counts them"
    pool = op("aten.mean", "pool", [shape], (1, WIDTH, 1, 1), dim=[-1, -2], keepdim=True)
    assert found(pool, FC)[what].value == LINEAR + WIDTH * 16
    squeeze = op("aten.mean", "se", [shape], (1, WIDTH, 1, 1), dim=[2, 3], keepdim=True)
    assert what not in found(squeeze, FC)


def test_calls_count_as_often_as_they_ran() -> None:
    twice = [(one._replace(calls=2), counted) for one, counted in known(*SMALL.trace().ops)]
    once = {r.what: r.value for r in of_tables(known(*SMALL.trace().ops))}
    assert {r.what: r.value for r in of_tables(twice)} == {what: 2 * value for what, value in once.items()}


def test_a_training_step_has_none_of_them() -> None:
    assert found(FC._replace(phase=TRAINING), FC) == {}
    assert found(SMALL.trace().ops[0]) == {}


def make_net() -> Any:
    """Norms, pools and fused attention, whatever tables count beside products."""
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn, self.gn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GroupNorm(2, 8)
            self.plain, self.pool = nn.BatchNorm2d(8, affine=False), nn.AdaptiveAvgPool2d(1)
            self.ln, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = self.plain(self.gn(self.bn(self.conv(x))))
            x = nn.functional.interpolate(x, scale_factor=2)
            x = x * x.mean((2, 3), keepdim=True)
            tokens = self.ln(x.flatten(2).transpose(1, 2))[:, None]
            tokens = nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)
            x = self.pool(tokens[:, 0].transpose(1, 2).reshape(x.shape))
            return self.head(x.flatten(1))

    return Net()


@pytest.mark.frameworks
def test_the_reading_of_norms_is_what_fvcore_prints() -> None:
    load()
    collected = collect_live({"torch": make_net}, ["2,3,9,9"], run_request(counters=("fvcore",)), lambda _event: None)
    (trace,), (ledger,) = collected.traces, collected.ledgers
    readings = of_tables([(one, known_part(one).work) for one in trace.ops])  # type: ignore[union-attr]
    values = {reading.value for reading in readings if reading.family == "fvcore"}
    assert ledger.total in values  # type: ignore[union-attr]
    assert len(values) == 2
