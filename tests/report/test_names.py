"""A file whose name is not text: every report is written, in UTF-8, and shows the bytes that are none as escapes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.products.ci.github import _cut_lines

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="file names are text elsewhere")
NAME = os.fsdecode(b"m\xff")


def reconcile(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(words), prog_name="reconcile")
    return done.exit_code, done.output


@pytest.mark.frameworks
def test_a_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    values = [onnx.helper.make_tensor_value_info(name, 1, [2, 3]) for name in "xy"]
    weights = onnx.helper.make_tensor("w", 1, [3, 3], [1.0] * 9)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights]
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    Path(f"{NAME}.onnx").write_bytes(made.SerializeToString())
    code, said = reconcile("run", "--onnx", f"{NAME}.onnx", "--format", "md,csv,json,html", "--out", NAME)
    assert code == 0, said
    texts = {path.suffix: path.read_bytes().decode() for path in Path(NAME).iterdir()}
    assert set(texts) == {".md", ".csv", ".json", ".html"}
    assert [suffix for suffix, text in texts.items() if "udcff" not in text and suffix != ".csv"] == []


def test_parts_of_reports() -> None:
    assert _cut_lines([NAME], 100, "rows") == [NAME]
