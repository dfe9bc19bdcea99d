"""The gallery's training steps are those of the zoo today: the page from its rows, the rows of these very sources, some run
again."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.model_zoo.pair import zoo_names
from reconcile.report import reports
from reconcile.report.steps import PAGE, command, headline, to_markdown
from reconcile.work import load
from reconcile.zoo.rows import reconciled, source_of
from reconcile.zoo.training import measure, read
from tests.zoo.choice import chosen

REPORTS = Path(__file__).parents[2] / "reports"
STALE = "stale: run `make gallery` and commit what changed"
ROWS = read()


def test_the_page_is_made_of_the_rows() -> None:
    assert (REPORTS / f"{PAGE}.md").read_text() == to_markdown(ROWS, {}), f"reports/{PAGE}.md is {STALE}"
    assert set(ROWS) == set(zoo_names())


@pytest.mark.parametrize("model", zoo_names())
def test_a_step_of_every_pair_reconciles_at_its_own_size(model: str) -> None:
    row = ROWS[model]
    assert row.source == source_of(model), f"the row of {model} is {STALE}"
    assert (row.open, reconciled(row), set(row.work)) == ((), True, {"tf", "torch"})


@pytest.mark.frameworks
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("model", chosen(sorted(ROWS), ("conv1x1",)))
def test_a_step_run_again_gives_its_row_and_its_report(model: str) -> None:
    load()
    row, result = measure(model, REPORTS / "baselines")
    assert row == ROWS[model], f"the row of {model} is {STALE}"
    assert result is not None
    name = reports.stem(model, training=True)
    texts = reports.render(result, ("md",), headline(result), command(model, row.at, row.device))
    assert texts["md"] == (REPORTS / f"{name}.md").read_text(), f"reports/{name}.md is {STALE}"
