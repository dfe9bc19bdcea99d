"""A file whose name is not text: every report is written, in UTF-8, and shows the bytes that are none as escapes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.drift.github import _cut_lines

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="file names are text elsewhere")
NAME = os.fsdecode(b"m\xff")
PAIR = """
from reconcile.model_zoo.pair import Input, Pair

PAIR = Pair("odd", {"rows": 3})

def inputs(p):
    return [Input("x", (p.rows, 4))]

def build_torch(p):
    import torch

    class Layer(torch.nn.Linear):
        pass

    return Layer(4, 5, bias=False)
"""


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


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_pair_file_and_its_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{NAME}.py").write_text(PAIR)
    words = ("check", "--model", f"./{NAME}.py", "--counter", "thop", "--baselines", NAME)
    assert reconcile(*words, "--update")[0] == 0
    code, said = reconcile(*words, "--format", "github")
    assert (code, "unchanged" in said) == (0, True)


def test_parts_of_reports() -> None:
    assert _cut_lines([NAME], 100, "rows") == [NAME]
