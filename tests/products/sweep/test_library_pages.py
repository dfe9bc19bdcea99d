"""The committed sweeps of keras.applications: in two frameworks (``make keras``), and on Keras' three backends
(``make keras-backends``). Of other libraries the page alone is committed: ``make transformers``, ``diffusers`` and ``libraries``.
"""

from __future__ import annotations

import csv
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
