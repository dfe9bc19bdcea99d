"""The picture of docs/witness.md is what a counter, the trace and the log say of the README's network."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.frameworks
ROOT = Path(__file__).parents[2]


def drawn_by() -> Any:
    spec = spec_from_file_location("draw", ROOT / "docs" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_three_columns_of_the_readmes_network() -> None:
    draw = drawn_by()
    result = draw.first_run((draw.COUNTER, draw.LOG))
    counter, trace, log = draw.three_columns(result).columns
    conv, gru, head = 2 * 30 * 30 * 8 * 9, 2 * 30 * 3 * 64 * (240 + 64), 2 * 64 * 10
    assert counter.values == (conv, 0, head)
    assert trace.values == log.values == (conv, gru, head)
    held = (ROOT / "docs" / "pictures" / "witness.svg").read_text()
    assert held == draw.witnessed(result), "docs/pictures/witness.svg is stale: `make pictures`"
