"""The committed sweeps of keras.applications: in two frameworks (``make keras``), and on Keras' three backends
(``make keras-backends``). Of other libraries the page alone is committed: ``make transformers``, ``diffusers`` and ``libraries``.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from tests.zoo.test_keras_applications import CLOSED, PUBLISHED, REFUSED

PAGES = Path(__file__).resolve().parents[3] / "reports"
KERAS = PAGES / "keras.applications"
BACKENDS = KERAS / "backends"


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


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
