"""Readings that published tables need: each is a closed form of a small trace, and that of norms is what fvcore prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reconcile.core.records import TRAINING, Op, Tensor
from reconcile.decode.readings import DERIVED, PART, Reading
from reconcile.decode.table_readings import of_tables
from reconcile.launch.request import run_request
from reconcile.launch.runner import collect
from reconcile.work import Work, known_part, load

TOKENS, WIDTH, HEADS, CLASSES, LAYERS = 5, 12, 3, 7, 2
DEEP = WIDTH // HEADS
ATTENTION = 2 * HEADS * TOKENS * TOKENS * DEEP
"""Products of the queries with the keys, and of what comes of them with the values."""
LINEAR = TOKENS * WIDTH * WIDTH
HEAD = WIDTH * CLASSES


def op(
    number: int, name: str, layer: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], **attrs: object
) -> Op:
    shapes = tuple(Tensor(shape, "float32") for shape in inputs)
    return Op(f"op{number}", name, layer, shapes, (Tensor(output, "float32"),), attrs)


def fused(number: int) -> Op:
    each = (1, HEADS, TOKENS, DEEP)
    options = {"dropout_p": 0.0, "is_causal": False, "scale": None, "enable_gqa": None, "attn_mask": None}
    return op(number, "aten.scaled_dot_product_attention", f"blocks.{number}.attn", [each] * 3, each, **options)


def norm(number: int) -> Op:
    shapes = [(1, TOKENS, WIDTH), (WIDTH,), (WIDTH,)]
    return op(
        number, "aten.native_layer_norm", f"blocks.{number}.norm", shapes, shapes[0], normalized_shape=[WIDTH], eps=1e-5
    )


def linear(number: int, rows: int = TOKENS, out: int = WIDTH, layer: str = "fc") -> Op:
    return op(number, "aten.addmm", layer, [(out,), (rows, WIDTH), (WIDTH, out)], (rows, out))


def known(*ops: Op) -> list[tuple[Op, Work]]:
    load()
    return [(one, known_part(one).work) for one in ops]


def found(*ops: Op) -> dict[str, Reading]:
    return {reading.what: reading for reading in of_tables(known(*ops))}


TRANSFORMER = [part(n) for n in range(LAYERS) for part in (norm, fused, linear)] + [linear(9, 1, CLASSES, "head")]
MACS = LAYERS * (ATTENTION + LINEAR) + HEAD


def test_a_transformer_with_fused_attention() -> None:
    readings = found(*TRANSFORMER)
    lost, norms = LAYERS * ATTENTION, LAYERS * 5 * TOKENS * WIDTH
    values = {what: (reading.value, reading.rank) for what, reading in readings.items()}
    assert values == {
        "the products that ran, and norms and pools as fvcore counts them": (MACS + norms, PART),
        "the products that ran without those of fused attention, and norms and pools as fvcore counts them": (
            MACS - lost + norms,
            PART,
        ),
        "the products that ran without those of fused attention": (MACS - lost, PART),
        "the products that ran without those of fused attention, doubled": (2 * (MACS - lost), DERIVED),
        "the products that ran without those of the last layer": (MACS - HEAD, PART),
        "the products that ran without those of the last layer, doubled": (2 * (MACS - HEAD), DERIVED),
    }
    said = readings["the products that ran without those of fused attention"].note
    assert said == f"attention-left-out: {lost:,} products of 2 layers are not in it: blocks.0.attn, blocks.1.attn."


def test_products_between_activations() -> None:
    scores = op(0, "aten.bmm", "attn", [(HEADS, TOKENS, DEEP), (HEADS, DEEP, TOKENS)], (HEADS, TOKENS, TOKENS))
    readings = found(scores, linear(1))
    what = "the products of weights that ran, without those of activations with each other"
    assert readings[what].value == LINEAR
    assert found(linear(1), linear(2)).keys().isdisjoint({what})


def test_an_adaptive_pool_is_a_mean_that_is_called_as_one() -> None:
    shape = (1, WIDTH, 4, 4)
    what = "the products that ran, and norms and pools as fvcore counts them"
    pool = op(0, "aten.mean", "pool", [shape], (1, WIDTH, 1, 1), dim=[-1, -2], keepdim=True)
    assert found(pool, linear(1))[what].value == LINEAR + WIDTH * 16
    squeeze = op(0, "aten.mean", "se", [shape], (1, WIDTH, 1, 1), dim=[2, 3], keepdim=True)
    assert what not in found(squeeze, linear(1))


def test_calls_count_as_often_as_they_ran() -> None:
    twice = [(one._replace(calls=2), counted) for one, counted in known(*TRANSFORMER)]
    once = {r.what: r.value for r in of_tables(known(*TRANSFORMER))}
    assert {r.what: r.value for r in of_tables(twice)} == {what: 2 * value for what, value in once.items()}


def test_a_training_step_has_none_of_them() -> None:
    assert found(linear(0)._replace(phase=TRAINING), linear(1)) == {}
    assert found(norm(0)) == {}


NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.gn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GroupNorm(2, 8)
        self.plain, self.pool = nn.BatchNorm2d(8, affine=False), nn.AdaptiveAvgPool2d(1)
        self.ln, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, x):
        x = self.plain(self.gn(self.bn(self.conv(x))))
        x = nn.functional.interpolate(x, scale_factor=2)
        x = x * x.mean((2, 3), keepdim=True)
        tokens = self.ln(x.flatten(2).transpose(1, 2))[:, None]
        tokens = nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)
        x = self.pool(tokens[:, 0].transpose(1, 2).reshape(x.shape))
        return self.head(x.flatten(1))


def make():
    return Net(), torch.zeros(2, 3, 9, 9)
"""


@pytest.mark.frameworks
def test_the_reading_of_norms_is_what_fvcore_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net_of_norms.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    assert "net_of_norms" not in sys.modules
    collected = collect(run_request(torch="net_of_norms:make", counters=("fvcore",)))
    (trace,), (ledger,) = collected.traces, collected.ledgers
    load()
    readings = of_tables([(one, known_part(one).work) for one in trace.ops])  # type: ignore[union-attr]
    values = {reading.value for reading in readings if reading.counter == "fvcore"}
    assert ledger.total in values  # type: ignore[union-attr]
    assert len(values) == 2
