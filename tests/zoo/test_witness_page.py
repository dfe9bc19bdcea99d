"""Rows of the committed page of the witness, taken again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zoo.witness_page import COUNTERS, PAGE, Row, run, share, table


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


def test_what_is_not_witnessed_lowers_the_share() -> None:
    assert share([Row("a", 300, 299, {"aten.bmm": 1}, False), Row("b", 100, 0, {}, True)]) == "74.75 %"
    assert share([]) == "-"


def test_a_pair_without_a_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no_such_pair left no report \\(exit code 2\\): "):
        run("no_such_pair", tmp_path)


@pytest.mark.parametrize("title", COUNTERS)
def test_at_least_95_percent_of_the_zoo_are_witnessed(title: str) -> None:
    last = written(title)[-1].split("|")
    assert (last[1].strip(), float(last[4].strip().removesuffix(" %")) >= 95) == ("all", True)
