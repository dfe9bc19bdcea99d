"""The committed sweeps of libraries: their tables say what the page says, and an independent count agrees with each work.

``make transformers`` and ``make diffusers`` write them from environments that have the libraries, ``make libraries`` those of
timm and torchvision, whose detectors run on the CPU. keras.applications is swept twice: in two frameworks, and on Keras' three
backends (``make keras-backends``).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.zoo.test_keras_applications import CLOSED, PUBLISHED, REFUSED

PAGES = Path(__file__).resolve().parents[3] / "reports"
TRANSFORMERS, TRAINING, DIFFUSERS = (PAGES / name for name in ("transformers", "transformers/training", "diffusers"))
TIMM, TORCHVISION = PAGES / "timm", PAGES / "torchvision"
DETECTION = TORCHVISION / "detection"
KERAS = PAGES / "keras.applications"
BACKENDS = KERAS / "backends"
CALLS = {TRANSFORMERS: 250, DIFFUSERS: 50}
"""Sweeps of a call, and how many models ran, at least."""
SHARES = {TRANSFORMERS: 0.98, TRAINING: 0.95, DIFFUSERS: 0.95}
"""The least share of those that ran which are reconciled: in a call, and in a training step of a sample."""


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize("folder", SHARES, ids=lambda folder: folder.name)
def test_the_share_that_is_reconciled(folder: Path) -> None:
    """The models with a traced work whose counters all end at that work with residual 0, or cannot count it."""
    by_model: dict[str, list[dict[str, str]]] = {}
    for row in rows(folder / "sweep.csv"):
        by_model.setdefault(row["model"], []).append(row)
    ran = {model: own for model, own in by_model.items() if any(r["counter"] == "trace" for r in own)}
    closed = [m for m, own in ran.items() if all(r["state"] in ("equal", "explained", "not_comparable") for r in own)]
    residuals = [(r["model"], r["counter"]) for own in ran.values() for r in own if r["residual"] not in ("", "0")]
    assert [pair for pair in residuals if pair[0] in closed] == []
    assert len(closed) >= SHARES[folder] * len(ran)
    assert len(ran) >= CALLS.get(folder, CALLS[TRANSFORMERS])


@pytest.mark.parametrize("folder", SHARES, ids=lambda folder: folder.name)
def test_the_page_has_every_model(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    models = {row["model"] for row in rows(folder / "sweep.csv")}
    shown = set(re.findall(r"^\| ([\w.]+) \|", text, re.MULTILINE))
    assert shown >= models


@pytest.mark.parametrize("folder", CALLS, ids=lambda folder: folder.name)
def test_an_independent_count_agrees(folder: Path) -> None:
    counted = rows(folder / "independent.csv")
    assert len(counted) >= CALLS[folder]
    assert [row for row in counted if row["work"] != row["independent count"]] == []
    work = {row["model"]: row["work"] for row in rows(folder / "sweep.csv") if row["counter"] == "trace"}
    assert [row["model"] for row in counted if work.get(row["model"]) != row["work"]] == []


@pytest.mark.parametrize(("folder", "models"), [(TIMM, 98), (TIMM / "all", 1371), (TORCHVISION, 121), (DETECTION, 12)])
def test_all_models_of_timm_and_torchvision_reconcile(folder: Path, models: int) -> None:
    """No counter leaves a residual, and what no counter can compare on meta is a detector, which runs on the CPU."""
    by_model: dict[str, list[dict[str, str]]] = {}
    for row in rows(folder / "sweep.csv"):
        by_model.setdefault(row["model"].partition("@")[0], []).append(row)
    assert len(by_model) == models
    assert [row for own in by_model.values() for row in own if row["residual"] not in ("", "0")] == []
    closed = {m for m, own in by_model.items() if any(r["counter"] != "trace" and r["residual"] == "0" for r in own)}
    elsewhere = {row["model"].partition("@")[0] for row in rows(DETECTION / "sweep.csv")}
    assert set(by_model) - closed <= (elsewhere if folder == TORCHVISION else set())
    if folder in (TIMM, DETECTION):
        listed = TORCHVISION / "detection.toml" if folder == DETECTION else folder / "models.toml"
        assert listed.read_text().count("[[model]]") == models


def works(folder: Path) -> dict[str, dict[str, int]]:
    """FLOPs of every trace, by model and framework."""
    found: dict[str, dict[str, int]] = {}
    for row in rows(folder / "sweep.csv"):
        if row["counter"] == "trace":
            name = row["model"].removeprefix("keras.applications.").removesuffix("@xla")
            found.setdefault(name, {})[row["framework"]] = int(row["work"])
    return found


def test_keras_does_the_same_work_on_its_three_backends() -> None:
    """In every model, as the sweep of two frameworks has it and as closed forms and papers do."""
    found = works(BACKENDS)
    before = works(KERAS)
    assert len(found) == 40
    assert set(found) == set(before)
    for name, by_framework in found.items():
        assert set(by_framework) == {"tf", "torch", "jax"} - ({"torch"} if name in REFUSED else set()), name
        assert set(by_framework.values()) == {before[name]["tf"]}, name
    assert {name: found[name]["jax"] for name in CLOSED} == {name: 2 * macs for name, macs in CLOSED.items()}
    off = {name: found[name]["jax"] // 2 - digits * 10**power for name, (digits, power) in PUBLISHED.items()}
    assert [name for name, by in off.items() if abs(by) > 10 ** PUBLISHED[name][1]] == []


def test_three_backends_have_a_row_each_without_a_residual() -> None:
    text = (BACKENDS / "README.md").read_text()
    lines = re.findall(r"^\| keras\.applications\.(\w+)@xla \|(.*)\|$", text, re.MULTILINE)
    cells = {name: [cell.strip() for cell in rest.split("|")] for name, rest in lines}
    assert {name: int(row[0].replace(",", "")) for name, row in cells.items()} == {
        name: by_framework["jax"] for name, by_framework in works(BACKENDS).items()
    }
    assert {row[3] for row in cells.values()} == {"0"}
    assert [name for name, row in cells.items() if not row[4].startswith("reconciled")] == []
    assert [name for name, row in cells.items() if float(row[5]) <= 0 or float(row[6]) <= 0] == []
    assert "39 models ran in TensorFlow, PyTorch and JAX: 39 with the same work in each, 0 with another." in text
    assert "1 model ran in TensorFlow and JAX: 1 with the same work in each, 0 with another." in text
    residuals = {row["residual"] for row in rows(BACKENDS / "sweep.csv") if row["counter"] not in ("", "trace")}
    assert residuals == {"0"}
