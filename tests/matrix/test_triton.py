"""A kernel of Triton is an op that is named as the kernel, however a program launches it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.records import FORWARD, Tensor
from reconcile.core.results import TraceRow
from reconcile.core.work import Work
from reconcile.products.kernels import ncu, witness
from tests.matrix.reports import python_of
from tests.products.kernels.recorded import cases, trace
from tests.programs import output_of, run_program

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

HERE = Path(__file__)
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
def python() -> Path:
    return python_of("triton", HERE.with_name("triton.toml"))


@pytest.fixture(scope="module")
def told(python: Path) -> Any:
    printed = output_of(HERE.with_name("triton_nets.py"), python=python, TRITON_INTERPRET="1")
    return json.loads(printed.splitlines()[-1])


@pytest.fixture(scope="module")
def compiled(python: Path) -> Any:
    """The same, of kernels that were compiled for a GPU and not run."""
    return json.loads(output_of(HERE.with_name("triton_nets.py"), python=python).splitlines()[-1])


def launch(a: list[int], b: list[int], layer: str = "inner", phase: str = "forward", **more: int) -> list[Any]:
    """The op of a product (M, K) x (K, N), whose multiply-adds are known: blocks divide its sizes."""
    grid = [a[0] // BLOCK, b[1] // BLOCK]
    return [
        "triton.product", layer, phase, 1, [a, b, [a[0], b[1]]],
        {"N": b[1], "K": b[0], **more, "grid": grid, "masked": 0, "known": a[0] * b[0] * b[1]},
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
    assert told["several"] == [[unknown], []]  # of what it tries, the launch alone counts


def test_within_an_operator_it_is_that_one(told: Any) -> None:
    ((op,), problems) = told["operator"]
    assert (op[0], op[1], problems) == ("nets.product", "inner", [])
    assert op[-1]["known"] == ROWS * INNER * WIDE


@pytest.mark.parametrize(
    ("way", "name", "products"),
    [
        # 28 rows and 61 terms: whole blocks of 16 x 16, and of 32 terms
        ("tutorial", "triton.tutorial", (2 * 2) * 2 * BLOCK * BLOCK * 32),
        ("causal", "triton.flash", (1 + 2 + 3) * 2 * BLOCK * BLOCK * INNER),
        # programs at 0, 1 and 2, each other tile from there: one product more for each tile, two for odd ones
        ("tiles", "triton.tiles", (1 + 2 + 3 + (2 + 4 + 6 + 3) + (1 + 2)) * BLOCK**3),
        ("halves", "triton.halves", 3 * BLOCK**3),
        ("lengths", "triton.flash", (2 + 1 + 2) * 2 * BLOCK * BLOCK * INNER),
    ],
)
def test_the_products_that_ran_are_counted(told: Any, way: str, name: str, products: int) -> None:
    ((op,), problems) = told[way]
    assert (op[0], op[-1]["known"], problems) == (name, products, [])


def test_a_step_has_the_kernels_of_its_gradients(told: Any) -> None:
    ops, problems = told["step"]
    gradient = [ROWS, WIDE]
    found = [[*op[:2], *op[3:]] for op in ops]
    expected = [launch(X, WEIGHT, B=BLOCK), launch(gradient, [WIDE, INNER], B=BLOCK)]
    expected.append(launch([INNER, ROWS], gradient, B=BLOCK))
    assert (sorted(found, key=str), problems) == (sorted([[*op[:2], *op[3:]] for op in expected], key=str), [])


@pytest.mark.parametrize(
    ("way", "masked"),
    [
        ("tutorial", 4 * 2 * BLOCK * BLOCK * 32 - 28 * WIDE * 61),  # beyond the last row, and the last term
        ("causal", 2 * INNER * ((1 + 2 + 3) * BLOCK * BLOCK - ROWS * (ROWS + 1) // 2)),  # in the blocks of the diagonal
        ("added", 2 * BLOCK * BLOCK * (BLOCK - 1) // 2),
        ("lengths", 0),
    ],
)
def test_the_products_that_masks_discard_are_counted(told: Any, way: str, masked: int) -> None:
    assert told[way][0][0][-1]["masked"] == masked


def test_a_compiled_program_says_the_same(told: Any, compiled: Any) -> None:
    unread = ("lengths", "halves")  # as long as memory says, and as a condition that is computed in the loop
    assert [compiled[way][0][0][-1]["known"] for way in unread] == [None] * len(unread)
    for way in set(told) - set(unread):
        expected = [[*op[:-1], {**op[-1], "masked": None}] for op in told[way][0]]
        assert compiled[way] == [expected, told[way][1]], way


@pytest.mark.parametrize(
    ("case", "op", "program", "wrong"),
    [
        (
            "mm_fp16_odd",
            "triton.tutorial",
            "tutorial",
            0,
        ),  # 500 x 200 by 200 x 300 in tiles of 32 x 32, 64 terms at a time
        ("flash_causal", "triton.flash", "flash 0", 0),  # 256 tokens in blocks of 128: 3 of 4 for each of 8 heads
        ("flash_causal", "triton.flash", "flash 1", 2 * 8),
        ("flash_causal", "triton.flash", "flash -1", -2 * 8),
    ],
)
def test_what_a_gpu_counted_in_the_same_blocks_shows_a_wrong_bound(
    compiled: Any, case: str, op: str, program: str, wrong: int
) -> None:
    """No kernel of Triton is among the recorded ones: these are in the blocks and loops of flash attention's and CUTLASS's."""
    kernel = next(one for one in cases()[case] if one.tensor)
    size = kernel.launch.ranges[-1].sizes
    renamed = replace(kernel, launch=ncu.Launch(program, kernel.launch.grid, (ncu.Range(op, 1, size),)))
    tensors = tuple(Tensor(shape, "float16") for shape in size)
    ran = TraceRow("0", "inner", "inner", op, tensors, (), 1, FORWARD, Work(mac=compiled["recorded"][program]))
    found = witness.witness(trace([ran]), [renamed])
    assert found.statement.residual == wrong * 2 * (2 * 128 * 128 * 64)  # a block more or less for each program
    assert found.exit_code == (1 if wrong else 0)


def test_products_have_a_number_and_all_else_needs_a_formula(python: Path, tmp_path: Path) -> None:
    asked = ["-m", "reconcile", "run", "--torch", "triton_nets:make", "--counter", "flop_counter", "--out", tmp_path]
    there = {"python": python, "paths": [HERE.parent], "TRITON_INTERPRET": "1"}
    printed = output_of(*asked, **there)
    assert f"To publish: {2 * ROWS * WIDE * (INNER + OUT):,} FLOPs" in printed
    assert "op-not-counted" in printed
    done = run_program(*asked, "--convention", "all", **there)
    assert done.returncode == 1, done.stderr
    assert "the work of triton.product at layer inner is not known" in " ".join(done.stdout.split())
    formulas = tmp_path / "formulas.py"
    formulas.write_text(FORMULA)
    printed = output_of(*asked, "--convention", "all", "--formulas", formulas, **there)
    assert f"To publish: {2 * ROWS * WIDE * (INNER + OUT) + ROWS * OUT:,} FLOPs" in printed
