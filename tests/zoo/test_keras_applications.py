"""keras.applications on both backends: the committed sweep has closed forms and what papers print, and a model run again gives
its rows, explained layer by layer."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.engine.verdict import verdict
from reconcile.launch.request import RunRequest
from reconcile.workflow import run
from tests.zoo import convolutional as conv

CLOSED = {
    "ResNet50": conv.resnet50(224, 1000),
    "MobileNetV2": conv.mobilenet_v2(224, 1000),
    "MobileNetV3Small": conv.mobilenet_v3_small(224, 1000),
    "EfficientNetB0": conv.efficientnet_b0(224, 1000),
    "DenseNet121": conv.densenet121(224, 1000),
    "ConvNeXtTiny": conv.convnext_tiny(224, 1000),
    "VGG16": conv.vgg16(224, 1000),
}
"""Multiply-adds of the networks that the zoo has, too, at the same size: Keras' definitions are the same ones."""

PUBLISHED = {
    "MobileNet": (569, 6),  # arXiv:1704.04861, table 4
    "MobileNetV2": (300, 6),  # arXiv:1801.04381, table 4
    "NASNetLarge": (238, 8),  # arXiv:1707.07012, table 2
    "ConvNeXtTiny": (45, 8),  # arXiv:2201.03545, table 1, and the next four
    "ConvNeXtSmall": (87, 8),
    "ConvNeXtBase": (154, 8),
    "ConvNeXtLarge": (344, 8),
    "ConvNeXtXLarge": (609, 8),
    "EfficientNetB0": (39, 7),  # arXiv:1905.11946, table 2, and the next three
    "EfficientNetB2": (10, 8),
    "EfficientNetB3": (18, 8),
    "EfficientNetB6": (19, 9),
}
"""Digits and power of ten of multiply-adds that papers print, in their digits; MobileNetV2's are cut off, not rounded."""

REFUSED = {
    "NASNetMobile": "NASNetMobile is not available with the torch backend at this time due to an outstanding bug. "
    "If interested, please open a PR.",  # keras/src/applications/nasnet.py
}

WHOLE = ("MobileNetV3Small", "DenseNet121", "ConvNeXtTiny", "EfficientNetV2B0", "InceptionV3", "ResNet50V2", "Xception")
"""One of each family of layers: runs of every counter."""
SAMPLE = ("MobileNetV3Small",)


def committed() -> dict[str, list[dict[str, str]]]:
    """What the committed sweep (`make keras`) says of each model, a row per counter and trace."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (Path(__file__).parents[2] / "reports/keras.applications/sweep.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["model"].removeprefix("keras.applications.")].append(row)
    return found


SWEEP = committed()
WORK = {name: [int(row["work"]) for row in rows if row["counter"] == "trace"] for name, rows in SWEEP.items()}
"""FLOPs of each model in either framework."""


def test_what_is_traced_is_the_closed_form_and_what_papers_print() -> None:
    assert {name: WORK[name] for name in CLOSED} == {name: [2 * macs] * 2 for name, macs in CLOSED.items()}
    off = {
        name: WORK[name] for name, (digits, power) in PUBLISHED.items()
        if abs(WORK[name][0] / 2 - digits * 10**power) > 10**power * (1 if name == "MobileNetV2" else 0.5)
    }  # fmt: skip
    assert off == {}


def test_every_model_is_reconciled_or_refused_by_keras() -> None:
    rows = [row for held in SWEEP.values() for row in held]
    assert {row["residual"] for row in rows if row["counter"] not in ("", "trace")} == {"0"}
    assert {name: len(set(work)) for name, work in WORK.items()} == dict.fromkeys(SWEEP, 1)
    refused = {name: row["reason"] for name, held in SWEEP.items() for row in held if not row["counter"]}
    assert {name: reason.partition("raised ValueError: ")[2] for name, reason in refused.items()} == REFUSED


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_sweep_is_of_every_model() -> None:
    import keras

    assert {name for name, each in vars(keras.applications).items() if callable(each)} == set(SWEEP)


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.heavy if name not in SAMPLE else ()) for name in WHOLE]
)
def test_every_counter_is_explained_layer_by_layer(name: str) -> None:
    where = f"keras.applications:{name}"
    result = run(RunRequest("", {}, factories={"tf": where, "torch": where}))
    assert result.exit_code == 0
    assert {statement.residual for statement in result.statements} == {0}
    assert {ledger.state for ledger in result.ledgers} <= {State.EQUAL, State.EXPLAINED}
    assert [row for row in result.alignment if not all(row.paths.values())] == []
    (figure,) = verdict(result).figures
    assert (figure.frameworks, figure.flops % 2) == (("tf", "torch"), 0)
    assert figure.macs == CLOSED.get(name, figure.macs)
    rows = {row["counter"]: row["reported"] for row in SWEEP[name] if row["counter"] != "trace"}
    assert rows == {ledger.counter: str(ledger.total) for ledger in result.ledgers}, "stale: make keras"
