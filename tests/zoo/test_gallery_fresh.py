"""The committed gallery is what the zoo is today: its page from its rows, its rows of these very sources, some run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.built import committed
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery.report import describe_gallery
from reconcile.products.gallery.rows import is_reconciled, source_of
from reconcile.products.gallery.run import measure, read_gallery
from reconcile.report import reports
from reconcile.report.document.markdown import to_markdown
from reconcile.work import load
from tests.zoo.choice import AGAIN, APART, REPORTED, SAMPLE, chosen

REPORTS = Path(__file__).parents[2] / "reports"
STALE = "stale: run `make gallery` and commit what changed"
ROWS = read_gallery()


def test_the_page_is_made_of_the_rows() -> None:
    whole = to_markdown(describe_gallery(ROWS, {}))
    assert (REPORTS / "README.md").read_text() == committed(Path("reports/README.md"), whole), (
        f"reports/README.md is {STALE}"
    )


@pytest.mark.parametrize("model", zoo_names())
def test_every_pair_has_a_row_of_its_present_source_and_a_report(model: str) -> None:
    assert model in ROWS, f"{model} is not in the gallery; {STALE}"
    assert ROWS[model].source == source_of(model), f"the row of {model} is {STALE}"
    assert f"# {model}: FLOP reconciliation" in (REPORTS / f"{model}.md").read_text()


def test_no_row_is_of_a_pair_that_is_gone() -> None:
    assert set(ROWS) == set(zoo_names())


@pytest.mark.parametrize("model", zoo_names())
def test_every_pair_reconciles_at_its_size_and_computes_the_same(model: str) -> None:
    row = ROWS[model]
    assert (row.open, is_reconciled(row)) == ((), True)
    assert {cell.state for cell in row.cells.values()} <= {"equal", "explained"}
    assert row.declared or (row.error is not None and row.error < 1e-4)


@pytest.mark.frameworks
@pytest.mark.usefixtures("warmed")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "model", chosen(sorted(ROWS), ("conv1x1",), apart={*APART, *SAMPLE} - {*AGAIN})
)  # tests/run/test_reports_fresh.py runs gru_demo
def test_a_pair_run_again_gives_its_row_and_its_report(model: str) -> None:
    load()
    held = ROWS[model]
    proof = {
        "weights": held.weights,
        "error": held.error,
        "at": held.proven_at,
        "varies": True,
    }  # test_parity.py proves it
    row, result = measure(model, REPORTS / "baselines", lambda _: proof)
    assert row == held, f"the row of {model} is {STALE}"
    assert result is not None
    kept = [
        f for f in reports.find_formats(REPORTS, model) if f != "html" or model == "gru_demo"
    ]  # other pages are not committed
    texts = reports.render(result, ("md", *kept), None, f"reconcile run --model {model}")
    for end, text in texts.items():
        if REPORTED and not end.endswith(".svg"):  # test_reports_fresh.py looks at pictures
            assert text == (REPORTS / f"{model}.{end}").read_text(), f"reports/{model}.{end} is {STALE}"
