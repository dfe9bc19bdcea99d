"""The gallery's training steps: backward over forward from integers alone, one row per framework that differs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from reconcile.cli import cli
from reconcile.core.causes import State
from reconcile.core.number_format import multiple
from reconcile.model_zoo import loading
from reconcile.products.gallery import training
from reconcile.products.gallery.rows import CounterCell, dump
from reconcile.products.gallery.training import TrainingRow, read_training
from reconcile.products.gallery.training_report import command, describe_training
from reconcile.products.obstacles import list_obstacles
from reconcile.report.document.markdown import to_markdown
from reconcile.report.pictures import charts as pictures
from tests.report import samples

WORK = {
    "matmul": {"forward": 10, "loss": 0, "input-gradient": 9, "weight-gradient": 10, "optimizer": 0},
    "all": {"forward": 12, "loss": 3, "input-gradient": 12, "weight-gradient": 12, "optimizer": 1_234},
}
ROW = TrainingRow(
    model="toy",
    source="0",
    settings={"batch": 1},
    at={},
    device="cpu",
    work={"tf": WORK, "torch": WORK},
    cells={
        "thop": CounterCell("not_comparable", None, None, "", "thop: why"),
        "flop_counter": CounterCell("equal", 29, 29, "", ""),
    },
    states={"matmul": 0, "all": 0},
)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (19, 10, "1.9000"),
        (0, 0, "0 / 0"),
        (7, 0, "+7 FLOP"),
        (1_999_999, 1_000_000, "2.0000 (-1)"),
    ],
)
def test_a_multiple_is_whole_only_where_it_is(part: int, whole: int, text: str) -> None:
    assert multiple(part, whole) == text


@given(st.integers(0, 10**30), st.integers(1, 10**30))
def test_a_multiple_is_within_half_a_unit_of_its_last_place(part: int, whole: int) -> None:
    text, _, rest = multiple(part, whole).replace(",", "").partition(" ")
    assert abs(Fraction(text) - Fraction(part, whole)) <= Fraction(1, 20_000)
    assert ("." not in text) == (part % whole == 0)
    if rest:
        assert Fraction(text) * whole + int(rest.strip("()")) == part


def test_frameworks_that_do_the_same_share_a_row() -> None:
    page = to_markdown(describe_training({"toy": ROW}, {}))
    assert "| [toy](toy-training.md) | TensorFlow, PyTorch | 10 | 9 | 10 | 1.9000 | 2 | 1,234 | **1** |" in page
    assert "Not in the tables: thop: why." in page


def test_each_framework_has_one_and_recomputation_a_column() -> None:
    more = {**WORK, "matmul": {**WORK["matmul"], "recomputation": 5}}
    changed = replace(ROW, at={"batch": "2"}, device="meta", work={"tf": more, "torch": WORK})
    page = to_markdown(describe_training({"toy": changed}, {"gone": "not yet"}))
    assert "| [toy](toy-training.md)<br>batch 2<br>on meta | TensorFlow | 10 | 9 | 10 | 5 | 1.9000 | 2 |" in page
    assert "|  | PyTorch | 10 | 9 | 10 | 0 | 1.9000 | 2 |" in page
    assert "- gone: not yet" in page


def test_a_pair_says_what_its_step_needs() -> None:
    for model in _names():
        at, device = training.settings_of(model)
        assert (set(at) <= set(loading.load_pair(loading.pair_path(model)).params), device in ("cpu", "meta")) == (
            True,
        ) * 2
    assert command("pointnet", *training.settings_of("pointnet")) == (
        "reconcile run --model pointnet --set batch=2 --pass training --from flop_counter --to trace@torch"
    )
    assert command("toy", {}, "meta").startswith("reconcile run --model toy --device meta --pass training --from")


def test_what_is_unknown_has_no_number() -> None:
    row = replace(ROW, work={}, states={"matmul": 1}, open=("matmul: trace@torch: x",))
    page = to_markdown(describe_training({"toy": row}, {}))
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert "<br>not reconciled | unknown |  |" in page
    assert len({line.count("|") for line in lines}) == 1
    assert "- toy: matmul: trace@torch: x" in page
    assert "1 pairs, 0 of them" in page


def test_rows_come_back_and_the_command_writes_the_page(tmp_path, monkeypatch) -> None:
    data = tmp_path / "steps.json"
    data.write_text(dump([ROW]))
    assert read_training(data) == {"toy": ROW}
    made = replace(ROW, model="conv1x1")
    monkeypatch.setattr(training, "measure", lambda _model, _baselines: (made, None))
    monkeypatch.setattr(pictures, "require", lambda: None)
    args = ["zoo", "gallery", "--pass", "training", "--model", "conv1x1", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0, done.output
    assert set(read_training(data)) == {"conv1x1"}
    missing = {name: "not measured yet" for name in _names() if name != "conv1x1"}
    assert (tmp_path / "training.md").read_text() == to_markdown(describe_training({"conv1x1": made}, missing))
    assert not (tmp_path / "README.md").exists()


def _names() -> tuple[str, ...]:
    from reconcile.model_zoo.loading import zoo_names

    return tuple(zoo_names())


def test_what_a_counter_does_not_look_at_leaves_a_row_reconciled() -> None:
    result = samples.clean()
    unseeing = replace(result.ledgers[0], state=State.NOT_COMPARABLE, total=None, normalised_total=None)
    name = unseeing.counter
    lost = tuple(
        replace(s, state=State.NOT_COMPARABLE, residual=None) if name in (s.from_, s.to) else s
        for s in result.statements
    )
    blind = replace(result, ledgers=(unseeing, *result.ledgers[1:]), statements=lost)
    assert list(list_obstacles({"matmul": blind})) == []
    assert list(list_obstacles({"matmul": samples.unexplained()}))
