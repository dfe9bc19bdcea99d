"""Rows of the committed page of the witness, taken again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zoo.witness_page import PAGE, run, table


def written(title: str) -> list[str]:
    """The lines of a framework's table in the committed page."""
    part = PAGE.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("|")]


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize("pair", ["gru_demo", "conv1x1", "family_dense"])
def test_a_row_of_the_page_is_what_the_log_says(pair: str, tmp_path: Path) -> None:
    for title, row in run(pair, tmp_path).items():
        (line,) = [line for line in table([row]) if line.startswith(f"| {pair} ")]
        assert line in written(title)
