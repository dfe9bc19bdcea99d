"""The committed gallery is what the zoo is today, calls and training steps: pages from rows, rows of these very sources, some run
again. A step that runs again reconciles under every convention, by evidence, and both frameworks multiply the same matrices."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.built import committed
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import Collected, settle
from reconcile.launch.request import RunRequest
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery import training
from reconcile.products.gallery.report import describe_gallery
from reconcile.products.gallery.rows import is_reconciled, source_of
from reconcile.products.gallery.run import measure, read_gallery
from reconcile.products.gallery.training_report import PAGE, command, describe_training, headline
from reconcile.report import reports
from reconcile.report.document.markdown import to_markdown
from reconcile.work import load
from tests.run.closing import follows_from_evidence
from tests.zoo.choice import AGAIN, APART, REPORTED, SAMPLE, chosen

REPORTS = Path(__file__).parents[2] / "reports"
STALE = "stale: run `make gallery` and commit what changed"
ROWS, STEPS = read_gallery(), training.read_training()
OTHERWISE = {
    "crnn",  # TensorFlow takes a recurrent layer's gradient with respect to its first state, too
    "gru_demo",
    "family_recurrent",
    "family_control",  # a loop in TensorFlow takes the gradient of its state in every turn, also in the first
    "family_convolution",  # its dilated and grouped convolutions, in the forward pass already
    "moe",
    "resnet50_v1_5",  # declared: the stride lies elsewhere
}
"""Pairs whose frameworks multiply otherwise in a step; all others' are equal under matmul."""


def test_the_pages_are_made_of_the_rows() -> None:
    pages = {
        "README": committed(Path("reports/README.md"), to_markdown(describe_gallery(ROWS, {}))),
        PAGE: to_markdown(describe_training(STEPS, {})),
    }
    assert [name for name, text in pages.items() if (REPORTS / f"{name}.md").read_text() != text] == [], STALE


def test_every_pair_has_rows_of_its_present_source_and_no_other_has() -> None:
    sources = {name: source_of(name) for name in zoo_names()}
    for rows in (ROWS, STEPS):
        assert {name: row.source for name, row in rows.items()} == sources, STALE


@pytest.mark.parametrize("model", zoo_names())
def test_every_pair_reconciles_at_its_size_and_computes_the_same(model: str) -> None:
    assert f"# {model}: FLOP reconciliation" in (REPORTS / f"{model}.md").read_text()
    row, step = ROWS[model], STEPS[model]
    assert [(each.open, is_reconciled(each)) for each in (row, step)] == [((), True)] * 2
    assert {cell.state for cell in row.cells.values()} <= {"equal", "explained"}
    assert row.declared or (row.error is not None and row.error < 1e-4)
    assert set(step.work) == {"tf", "torch"}


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
    # other pages than gru_demo's are not committed
    kept = [f for f in reports.find_formats(REPORTS, model) if f != "html" or model == "gru_demo"]
    texts = reports.render(result, ("md", *kept), None, f"reconcile run --model {model}")
    for end, text in texts.items():
        if REPORTED and not end.endswith(".svg"):  # test_reports_fresh.py looks at pictures
            assert text == (REPORTS / f"{model}.{end}").read_text(), f"reports/{model}.{end} is {STALE}"


@pytest.mark.frameworks
@pytest.mark.usefixtures("warmed")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("model", chosen(sorted(STEPS), ("conv1x1",), apart=(*APART, *AGAIN)))
def test_a_step_run_again_gives_its_row_and_its_report(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load()
    collect, kept = training.collect, list[Collected]()

    def keep(request: RunRequest) -> Collected:
        kept.append(collect(request))
        return kept[0]

    monkeypatch.setattr(training, "collect", keep)
    row, result = training.measure(model, REPORTS / "baselines")
    assert row == STEPS[model], f"the row of {model} is {STALE}"
    assert result is not None
    name = reports.stem(model, training=True)
    texts = reports.render(result, ("md",), headline(result), command(model, row.at, row.device))
    held = (REPORTS / f"{name}.md").read_text() if REPORTED else texts["md"]
    assert texts["md"] == held, f"reports/{name}.md is {STALE}"
    counters_are_explained(kept[0])
    multiplies_the_same_matrices(model, kept[0])


def counters_are_explained(collected: Collected) -> None:
    """Those that see a step, under every convention; every amount follows from the ops and rules of its evidence."""
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        seen = [x for x in result.ledgers if x.total is not None]
        assert {x.counter for x in seen} == {"tf.profiler@function", "tf.profiler@runmeta", "flop_counter"}
        assert [x.counter for x in seen if (x.unchecked, x.mismatches) != (0, ())] == []
        between = [s for s in result.statements if s.state is not State.NOT_COMPARABLE]
        assert [s.residual for s in between] == [0] * len(between)
    follows_from_evidence(collected)


def multiplies_the_same_matrices(model: str, collected: Collected) -> None:
    """Both frameworks multiply the same matrices in every phase, or the pair is one of ``OTHERWISE``."""
    same = settle(collected, Conventions(BUILT_IN["matmul"]))
    tf, torch = (same.by_phase(trace) for trace in same.traces)
    (bridge,) = (s for s in same.statements if (s.from_, s.to) == ("trace@tf", "trace@torch"))
    if model in OTHERWISE:
        assert {line.cause for line in bridge.adjustments} == {Cause.REAL_WORK_DIFFERS}
    else:
        assert bridge.adjustments == ()
        assert {p: n for p, n in tf.items() if n} == {p: n for p, n in torch.items() if n}
