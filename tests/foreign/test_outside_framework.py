"""Another author's framework: a package that registers itself, and that no file of this repository knows."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from reconcile.core.errors import UsageError
from reconcile.core.registry import frameworks
from tests.programs import output_of

from .installing import installed_as, reconcile

PACKAGE = Path(__file__).parent / "numpy_framework"
POINT = "[reconcile.frameworks]\nnumpy = reconcile_numpy:FRAMEWORK\n"
BATCH, WIDTH, HIDDEN, CLASSES = 4, 8, 16, 3
FIRST, SECOND = 2 * BATCH * WIDTH * HIDDEN, 2 * BATCH * HIDDEN * CLASSES
"""FLOPs of the two products: (BATCH, WIDTH) @ (WIDTH, HIDDEN) and (BATCH, HIDDEN) @ (HIDDEN, CLASSES)."""
NUMPY_MODEL = f"""
import numpy

def make():
    first, second = numpy.ones(({WIDTH}, {HIDDEN}), "float32"), numpy.ones(({HIDDEN}, {CLASSES}), "float32")
    return lambda x: numpy.matmul(numpy.tanh(numpy.matmul(x, first)), second)
"""
TORCH_MODEL = f"""
import torch

def make():
    layers = torch.nn.Linear({WIDTH}, {HIDDEN}, bias=False), torch.nn.Tanh(), torch.nn.Linear({HIDDEN}, {CLASSES}, bias=False)
    return torch.nn.Sequential(*layers)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return installed_as(tmp_path / "site", PACKAGE, "reconcile_numpy", POINT)


def written(folder: Path) -> Path:
    """A folder with the model."""
    folder.mkdir()
    (folder / "f.py").write_text(NUMPY_MODEL)
    return folder


def test_help_shows_its_option(installed: Path, tmp_path: Path) -> None:
    done = reconcile(installed, tmp_path / "here", "run", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    options = re.findall(r"^ +--(\w+) ", done.stdout, re.MULTILINE)
    assert options.index("torch") < options.index("tf") < options.index("onnx") < options.index("numpy")
    assert "A NumPy model of your own" in done.stdout


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_model_of_it_against_one_of_pytorch(installed: Path, tmp_path: Path) -> None:
    here = written(tmp_path / "here")
    (here / "g.py").write_text(TORCH_MODEL)
    words = ("--numpy", "f:make", "--torch", "g:make", "--input", f"{BATCH},{WIDTH}")
    done = reconcile(installed, here, "run", *words, "--format", "md,csv,json,html", "--out", "out")
    assert done.returncode == 0, done.stderr

    (stem,) = {path.stem for path in (here / "out").iterdir()}
    found = json.loads((here / "out" / f"{stem}.json").read_text())
    assert {t["framework"]: t["totals"]["matmul"] for t in found["traces"]} == {
        "torch": FIRST + SECOND,
        "numpy": FIRST + SECOND,
    }
    between = [s for s in found["statements"] if {s["from"], s["to"]} == {"trace@torch", "trace@numpy"}]
    assert between
    assert {(s["residual"], s["state"]) for s in between} == {(0, "equal")}
    assert {x["counter"] for x in found["ledgers"]} == {"thop", "fvcore", "flop_counter"}
    ends = {(s["from"], s["to"]) for s in found["statements"]}
    assert {(counter, "trace@torch") for counter in ("thop", "fvcore", "flop_counter")} <= ends

    code = "import json; from reconcile.report.schema import schema; print(json.dumps(schema()))"
    jsonschema.validate(found, json.loads(output_of("-c", code, paths=[installed])))
    assert {frozenset(row) - {"layer", "by", "comment"} for row in found["alignment"]} == {
        frozenset({"torch", "numpy"})
    }

    rows = list(csv.DictReader((here / "out" / f"{stem}.csv").read_text().splitlines()))
    assert "trace@numpy" in {cell for row in rows for cell in row.values()}
    page = (here / "out" / f"{stem}.html").read_text()
    assert "trace@numpy" in page
    assert "NumPy" in (here / "out" / f"{stem}.md").read_text() + page


@pytest.mark.parametrize(
    ("point", "why"),
    [
        ("numpy = reconcile_numpy:FRAMEWORKS", "it cannot be loaded (AttributeError: "),
        ("numpy = reconcile_nampy:FRAMEWORK", "it cannot be loaded (ModuleNotFoundError: No module named 'reconcile_nampy')"),
        ("numpy = reconcile_numpy:Adapter", "it is not a Framework record"),
    ],
)  # fmt: skip
def test_an_entry_point_that_is_wrong(
    installed: Path, registered: Callable[[Path], None], point: str, why: str
) -> None:
    (installed / "reconcile_numpy-1.0.dist-info" / "entry_points.txt").write_text(f"[reconcile.frameworks]\n{point}\n")
    registered(installed)
    with pytest.raises(UsageError) as refused:
        frameworks()
    assert str(refused.value).startswith(f"the entry point {point} (group reconcile.frameworks) cannot be used: {why}")


def test_a_name_that_is_taken(installed: Path, registered: Callable[[Path], None]) -> None:
    module = installed / "reconcile_numpy.py"
    module.write_text(module.read_text().replace('name="numpy"', 'name="torch"'))
    registered(installed)
    with pytest.raises(UsageError, match="a framework named torch is already registered"):
        frameworks()


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_model_at_hand(installed: Path, tmp_path: Path) -> None:
    """In the caller's own process, by the framework's name as the argument's."""
    code = f"""if 1:
        import f, reconcile
        found = reconcile.run(numpy=f.make(), inputs="{BATCH},{WIDTH}")
        print(found.result.traces[0].totals["matmul"], found.exit_code)
        import numpy
        found = reconcile.run(numpy=f.make(), inputs=numpy.ones(({BATCH}, {WIDTH})))
        print(found.result.traces[0].totals["matmul"], found.exit_code)
    """
    (tmp_path / "f.py").write_text(NUMPY_MODEL)
    printed = output_of("-c", code, folder=tmp_path, paths=[installed])
    assert printed.split() == [str(FIRST + SECOND), "0"] * 2


@pytest.mark.frameworks
@pytest.mark.slow
def test_in_an_environment_of_the_users_own(installed: Path, tmp_path: Path) -> None:
    """The worker's interpreter gets the package of the adapter, and nothing else, from here."""
    here = written(tmp_path / "here")
    words = ("--numpy", "f:make", "--input", f"{BATCH},{WIDTH}", "--python", sys.executable)
    done = reconcile(installed, here, "run", *words, "--out", "out")
    assert done.returncode == 0, done.stderr
    found = json.loads((here / "out" / "f.make.json").read_text())
    assert [(t["framework"], t["totals"]["matmul"]) for t in found["traces"]] == [("numpy", FIRST + SECOND)]
