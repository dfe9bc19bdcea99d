"""keras.applications on both backends: what is traced is the closed form, and every counter is explained layer by layer."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import State
from reconcile.engine.verdict import verdict
from reconcile.launch.request import RunRequest
from reconcile.workflow import run
from tests.programs import output_of
from tests.zoo import convolutional as conv

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

HERE = Path(__file__).parent

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

SMALL = ("MobileNetV3Small", "VGG16")
"""Those that `make slow` traces; `make fresh` traces all."""

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


COMMITTED = HERE.parents[1] / "reports" / "keras.applications" / "sweep.csv"


def committed(name: str) -> list[dict[str, str]]:
    """What the committed sweep (`make keras`) says of a model, a row per counter and trace."""
    with COMMITTED.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["model"] == f"keras.applications.{name}"]


def traces(*names: str) -> dict[str, dict[str, Any]]:
    """What these models do, or all."""
    printed = output_of(HERE / "keras_traces.py", *names, KERAS_BACKEND="torch")
    found: dict[str, dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def traced() -> Mapping[str, Mapping[str, Any]]:
    return traces()


@pytest.mark.heavy
def test_every_model_is_traced_on_meta_or_refused_by_keras(traced: Mapping[str, Mapping[str, Any]]) -> None:
    assert len(traced) >= 40
    assert {name: row["refused"] for name, row in traced.items() if "refused" in row} == REFUSED
    rest = {name: row for name, row in traced.items() if "refused" not in row}
    assert {name: (row["device"], row["unknown"]) for name, row in rest.items()} == dict.fromkeys(rest, ("meta", []))


def test_what_is_traced_is_the_closed_form() -> None:
    found = traces(*SMALL, *REFUSED)
    assert {name: row["refused"] for name, row in found.items() if "refused" in row} == REFUSED
    assert {name: found[name]["macs"] for name in SMALL} == {name: CLOSED[name] for name in SMALL}


@pytest.mark.heavy
def test_every_closed_form_is_what_is_traced(traced: Mapping[str, Mapping[str, Any]]) -> None:
    assert {name: traced[name]["macs"] for name in CLOSED} == CLOSED


@pytest.mark.heavy
def test_what_is_traced_is_what_papers_print(traced: Mapping[str, Mapping[str, Any]]) -> None:
    off = {
        name: traced[name]["macs"] for name, (digits, power) in PUBLISHED.items()
        if abs(traced[name]["macs"] - digits * 10**power) > 10**power * (1 if name == "MobileNetV2" else 0.5)
    }  # fmt: skip
    assert off == {}


@pytest.mark.heavy
def test_the_committed_sweep_is_of_every_model_and_not_stale(traced: Mapping[str, Mapping[str, Any]]) -> None:
    for name, row in traced.items():
        rows = {(r["framework"], r["counter"]): r for r in committed(name)}
        assert rows["tf", "trace"]["work"] != "", name
        assert {r["residual"] for r in rows.values() if r["counter"] not in ("", "trace")} == {"0"}
        if name in REFUSED:
            assert rows["torch", ""]["reason"].endswith(REFUSED[name])
        else:
            assert int(rows["torch", "trace"]["work"]) == int(rows["tf", "trace"]["work"]) == 2 * row["macs"], name


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
    rows = {row["counter"]: row["reported"] for row in committed(name) if row["counter"] != "trace"}
    assert rows == {ledger.counter: str(ledger.total) for ledger in result.ledgers}, "stale: make keras"
