"""The gallery's page: ratios that never round to what they are not, rows for what is missing, names that stay names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.products.gallery import report as page
from reconcile.products.gallery import rows
from reconcile.products.gallery import run as gallery
from reconcile.products.gallery.report import describe_cell, describe_gallery, ratio
from reconcile.products.gallery.rows import CounterCell, dump
from reconcile.products.gallery.run import GalleryRow, PublishedReading, read_gallery
from reconcile.report.document.markdown import render_inline, to_markdown
from reconcile.report.pictures import charts as pictures

EXACT, LOW = CounterCell("equal", 10, 10, "", ""), CounterCell("explained", 4, 10, "op-not-counted", "")
ROW = GalleryRow(
    model="toy",
    about="A toy.",
    source="0",
    settings={"batch": 1},
    weights=12_345,
    error=3e-7,
    proven_at={},
    declared="",
    work={"tf": 10, "torch": 10},
    cells={"thop": EXACT, "fvcore": LOW},
    states={"matmul": 0, "all": 0},
    published=(
        PublishedReading("1e1", "FLOPs", "a post", "thop, as reported", 1),
        PublishedReading("77", "MACs", "a post", "", 0),
    ),
)


@pytest.mark.parametrize(
    ("total", "work", "text"),
    [
        (10, 10, "1"),
        (0, 10, "0"),
        (4, 10, "0.400"),
        (1_000_001, 1_000_000, "1.000 (+1)"),
        (999_999, 1_000_000, "1.000 (-1)"),
        (7, 0, "+7 FLOP"),
    ],
)
def test_a_ratio_is_never_rounded_to_what_it_is_not(total: int, work: int, text: str) -> None:
    assert ratio(total, work) == text


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (EXACT, "**1**"),
        (LOW, "0.400<br>op-not-counted"),
        (CounterCell("not_comparable", None, None, "", "why"), "not comparable"),
        (CounterCell("unexplained", 4, 10, "dead-op", "why"), "0.400<br>dead-op<br>unexplained"),
        (None, ""),
    ],
)
def test_a_cell_names_the_largest_cause_or_why_it_is_empty(entry: CounterCell | None, text: str) -> None:
    assert render_inline(describe_cell(entry)) == text


def test_the_page_says_what_is_missing_open_and_not_explained() -> None:
    bad = replace(ROW, model="bad|row", states={"matmul": 1}, open=("matmul: thop: <b>open</b>",), error=None)
    page = to_markdown(describe_gallery({"toy": ROW, "bad|row": bad}, {"gone": "not written yet"}))
    assert "2 pairs of one model in TensorFlow and in PyTorch, 1 of them reconciled" in page
    assert "| [toy](toy.md)<br>batch 1 | 12,345 | 10 | 3e-07 | **1** | 0.400<br>op-not-counted |" in page
    assert "- bad\\|row: matmul: thop: &lt;b>open&lt;/b>" in page
    assert "<br>not reconciled" in page
    assert "- gone: not written yet" in page
    assert "| toy | 77 | MACs | a post | not explained |" in page


def test_rows_come_back_from_the_file_as_they_were(tmp_path) -> None:
    path = tmp_path / "gallery.json"
    assert read_gallery(path) == {}
    path.write_text(dump([ROW]))
    assert read_gallery(path) == {"toy": ROW}


def test_the_command_keeps_other_rows_and_exits_with_the_worst(tmp_path, monkeypatch) -> None:
    data = tmp_path / "rows.json"
    data.write_text(dump([replace(ROW, model="conv_only", states={"matmul": 3}), replace(ROW, model="no_more")]))
    monkeypatch.setattr(gallery, "measure", lambda model, _baselines: (replace(ROW, model=model), None))
    monkeypatch.setattr(pictures, "require", lambda: None)
    monkeypatch.setattr(page, "to_svg", lambda rows: f"<svg>{len(rows)}</svg>")
    args = ["zoo", "gallery", "--model", "conv1x1", "--out", str(tmp_path), "--data", str(data), "--jobs", "1"]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 3, done.output
    assert set(read_gallery(data)) == {"conv1x1", "conv_only"}  # a pair that the zoo no longer has leaves the page
    assert "conv1x1: reconciled" in done.stderr
    assert "- gru_demo: not measured yet" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "gallery.svg").read_text() == "<svg>2</svg>"
    wrong = CliRunner().invoke(cli, ["zoo", "gallery", "--model", "conv1x", "--out", str(tmp_path)])
    assert (wrong.exit_code, "Did you mean conv1x1" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("file", ["pair_of_two.py", "shared.py", "parts/__init__.py", "parts/some.py"])
def test_a_source_is_all_files_of_the_zoo_that_a_pair_imports(tmp_path, monkeypatch, file):
    monkeypatch.setattr(rows.loading, "HERE", str(tmp_path))
    (tmp_path / "parts").mkdir()
    zoo = "from reconcile.model_zoo"
    (tmp_path / "pair_of_two.py").write_text(
        f"{zoo}.shared import a\n{zoo}.parts import b\n{zoo}.parts.some import c\n"
    )
    for name in ("shared.py", "parts/__init__.py", "parts/some.py", "other.py"):
        (tmp_path / name).write_text("")
    before = rows.source_of("pair_of_two")
    (tmp_path / "other.py").write_text("x = 1\n")
    assert rows.source_of("pair_of_two") == before
    (tmp_path / file).write_text((tmp_path / file).read_text() + "x = 1\n")
    assert rows.source_of("pair_of_two") != before


@pytest.mark.parametrize(
    ("both", "declared", "said"),
    [
        ({"varies": True, "error": 9e-5}, "", None),
        ({"varies": True, "error": 0.5}, "they are meant to", None),
        ({"varies": True, "error": 0.5}, "", "the outputs differ by 0.5 of the largest one"),
        ({"varies": False, "error": 0.0}, "", "the outputs are constant"),
        ({"reason": "killed"}, "", "the outputs could not be compared: killed"),
    ],
)
def test_outputs_that_prove_nothing_are_said(both: dict[str, Any], declared: str, said: str | None) -> None:
    found = list(gallery._doubts(both, declared))
    assert [said in text for text in found if said] == [True] * (said is not None)
    assert bool(found) == (said is not None)
