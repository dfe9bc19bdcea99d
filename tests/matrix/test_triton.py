"""A kernel of Triton is an op that is named as the kernel, however a program launches it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.provision import ensure

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

HERE = Path(__file__)
ROOT = HERE.parents[2]
ROWS, INNER, WIDE, OUT, BLOCK = 48, 64, 32, 16, 16
FORMULA = """
from reconcile.work import Work, formula

@formula("triton.product", source="product in triton_nets.py")
def product(op):
    rows, (inner, columns) = op.inputs[0].shape[0], op.inputs[1].shape
    assert (op.attrs["N"], op.attrs["K"]) == (columns, inner)
    return Work(mac=rows * inner * columns)
"""


@pytest.fixture(scope="module")
def python() -> str:
    return str(ensure(environments.load(HERE.with_name("triton.toml"))["triton"]))


def ran(python: str, *arguments: str, cwd: Path = ROOT) -> Any:
    paths = os.pathsep.join([str(ROOT), str(HERE.parent)])
    env = {**os.environ, "PYTHONPATH": paths, "TRITON_INTERPRET": "1"}
    return subprocess.run([python, *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def told(python: str) -> Any:
    done = ran(python, str(HERE.with_name("triton_nets.py")))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def launch(a: list[int], b: list[int], layer: str = "inner", phase: str = "forward", **more: int) -> list[Any]:
    grid = [a[0] // BLOCK, b[1] // BLOCK]
    return [
        "triton.product", layer, phase, 1, [a, b, [a[0], b[1]]],
        {"N": b[1], "K": b[0], **more, "grid": grid},
    ]  # fmt: skip


X, WEIGHT = [ROWS, INNER], [INNER, WIDE]


@pytest.mark.parametrize("way", ["plain", "by_run", "function"])
def test_a_launch_is_an_op_with_its_arguments(told: Any, way: str) -> None:
    assert told[way] == [[launch(X, WEIGHT, B=BLOCK)], []]


def test_heuristics_and_autotuning_launch_once(told: Any) -> None:
    """The block is chosen at the launch, which alone can tell the grid."""
    unknown = launch(X, WEIGHT)
    unknown[-1]["grid"] = []
    assert told["heuristics"] == told["autotuned"] == [[unknown], []]


def test_within_an_operator_it_is_that_one(told: Any) -> None:
    ((op,), problems) = told["operator"]
    assert (op[0], op[1], problems) == ("nets.product", "inner", [])


def test_a_step_has_the_kernels_of_its_gradients(told: Any) -> None:
    ops, problems = told["step"]
    gradient = [ROWS, WIDE]
    found = [[*op[:2], *op[3:]] for op in ops]
    expected = [launch(X, WEIGHT, B=BLOCK), launch(gradient, [WIDE, INNER], B=BLOCK)]
    expected.append(launch([INNER, ROWS], gradient, B=BLOCK))
    assert (sorted(found, key=str), problems) == (sorted([[*op[:2], *op[3:]] for op in expected], key=str), [])


def test_without_a_formula_there_is_no_number(python: str, tmp_path: Path) -> None:
    asked = (
        "-m",
        "reconcile",
        "run",
        "--torch",
        "triton_nets:make",
        "--counter",
        "flop_counter",
        "--out",
        str(tmp_path),
    )
    done = ran(python, *asked)
    assert done.returncode == 1, done.stderr
    assert "the work of triton.product at layer inner is not known" in " ".join(done.stdout.split())
    formulas = tmp_path / "formulas.py"
    formulas.write_text(FORMULA)
    done = ran(python, *asked, "--formulas", str(formulas))
    total = 2 * ROWS * WIDE * (INNER + OUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"To publish: {total:,} FLOPs" in done.stdout
    assert "op-not-counted" in done.stdout
