"""Kernels of Pallas are counted as their programs times their grids, against closed forms; what data decide has no number."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.records import UNENTERED, Trace, from_json
from reconcile.work import known_part
from tests.matrix.reports import found_in, python_of, run_here

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent
KERNELS = HERE / "pallas_kernels.py"
HEADS, LENGTH, SIZE, BLOCK = 3, 64, 8, 16
ROWS, INNER, WIDE = 32, 48, 16


@pytest.fixture(scope="module", params=["jax", "jax-0.12"])
def traces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    found = found_in(python_of(request.param, HERE / "jax.toml"), KERNELS, tmp_path_factory.mktemp("pallas"))
    return {name: from_json(text) for name, text in found.items()}


def products(trace: Trace) -> int:
    return sum(known_part(op).work.mac * op.calls for op in trace.ops)


def blocks_below(blocks: int) -> int:
    """Blocks of a square of so many by so many that are not above its diagonal."""
    return blocks * (blocks + 1) // 2


def two_products(heads: int, pairs: int, block: int, size: int) -> int:
    """Scores and what they weigh, of so many pairs of blocks per head."""
    return heads * pairs * 2 * block * block * size


CAUSAL = two_products(HEADS, blocks_below(LENGTH // BLOCK), BLOCK, SIZE)
OF_GPU = 2 * 4 * 64
"""Per pair of elements, of the two batches and four heads."""
OF_TPU = 2 * 4 * 128 * 128 * 128
"""Per pair of blocks of 128."""
OF_SPLASH = 4 * 128 * 128 * 128
RAN = {
    "accumulated": ROWS * INNER * WIDE,
    "causal": CAUSAL,
    "causal_of_a_batch": 2 * CAUSAL,
    "causal_in_a_scan": 5 * CAUSAL,
    "causal_of_millions": CAUSAL // HEADS * 2**20,
    "triangle": (1 + 2 + 3 + 4 + 5) * 8**3,
    "rows_of_a_constant": 3 * 8 * INNER * WIDE,
    "rows_of_a_value": 2 * 8 * INNER * WIDE,
    "grid_of_a_value": 3 * 8 * INNER * WIDE,
    "dead_product": 0,
    # forward in blocks of 128 (2 x 2), backward in blocks of 32 (8 x 8): four products for keys and values, three for queries
    "of_gpu": OF_GPU * (2 * 128**2 * blocks_below(2) + 7 * 32**2 * blocks_below(8)),
    "norm_of_gpu": 0,
    "of_tpu": OF_TPU * (2 + 7) * blocks_below(512 // 128),
    "splash_causal": OF_SPLASH * 2 * blocks_below(8),
    # the block on the diagonal and the two before it, as far as there are any
    "splash_local": OF_SPLASH * 2 * (1 + 2 + 6 * 3),
    # tiles of 128 rows that a group has a part of: (1), (1, 2, 3), (), (3, 4)
    "grouped": (1 + 3 + 2) * 128 * 256 * 128,
}


@pytest.mark.parametrize("name", RAN)
def test_a_kernel_is_its_program_times_its_grid(traces: dict[str, Trace], name: str) -> None:
    trace = traces[name]
    assert (trace.problems, [op.op for op in trace.ops if UNENTERED in op.attrs]) == ((), [])
    assert products(trace) == RAN[name]
    unknown = {op.op for op in trace.ops if known_part(op).unknown}
    assert unknown <= {"lax.call_hi_primitive"}  # JAX 0.12 searches the groups' sizes with that, outside of the kernel


def test_what_is_skipped_counts_under_every_convention(traces: dict[str, Trace]) -> None:
    """The exponentials of the last block of the inner axis alone; the sums of each."""
    ops = traces["accumulated"].ops
    work = {op.op: known_part(op).work * op.calls for op in ops if known_part(op).work}
    assert work["lax.exp"].special == ROWS * WIDE
    assert work["lax.add"].add == ROWS * WIDE * (INNER // 16)


KERNEL_NAMES = {
    "rows_unknown": "some_rows",
    "rows_written": "some_rows",
    "grid_unknown": "kernel",
    "of_data": "positive_blocks",
}


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_what_data_decide_is_one_unknown_op_that_names_its_kernel(traces: dict[str, Trace], name: str) -> None:
    (op,) = [op for op in traces[name].ops if UNENTERED in op.attrs]
    assert op.op == "lax.pallas_call"
    assert op.attrs[UNENTERED].endswith(f": {KERNEL_NAMES[name]}")
    assert products(traces[name]) == 0


def test_a_formula_gives_what_data_decide(tmp_path: Path) -> None:
    (tmp_path / "pallas_kernels.py").write_text(KERNELS.read_text())
    (tmp_path / "formulas.py").write_text(
        "from reconcile.work import Work, formula\n\n\n"
        '@formula("lax.pallas_call", source="all blocks of positive_blocks")\n'
        "def kernel(op):\n"
        "    (rows, inner), (_, wide) = op.inputs[0].shape, op.inputs[1].shape\n"
        "    return Work(mac=rows * inner * wide)\n"
    )
    words = ("--jax", "pallas_kernels:of_data", "--environments", str(HERE / "jax.toml"), "--environment", "jax")
    assert run_here(tmp_path, *words)[1]["traces"][0]["complete"] is False
    (tmp_path / "out").rename(tmp_path / "before")
    report = run_here(tmp_path, *words, "--formulas", "formulas.py")[1]
    assert report["traces"][0]["totals"]["matmul"] == 2 * ROWS * INNER * WIDE
