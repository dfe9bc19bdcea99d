"""FLA's chunked delta rule, mamba_ssm's SSD and Liger's losses, by their own source: each kernel has the products of the papers.

Of a kernel's blocks those products are left that no mask discards (``causal``), whatever blocks an autotuner chose.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.reports import python_of
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

MAMBA = "mamba-ssm==2.3.2.post1 --hash=sha256:104cc47e9101e5401a675fa2b784f2952b9b037f3b1dd83b5ac544394e95d028\n"
HEADS, CHUNK, CHUNKS = 2, 64, 2
BELOW, LOWER = CHUNK * (CHUNK - 1) // 2, CHUNK * (CHUNK + 1) // 2  # pairs of a place and one before it, or itself, too
EACH = 2 * HEADS * CHUNKS  # FLOPs of a multiply-add in every chunk of every head


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("mamba")
    (folder / "mamba.txt").write_text(MAMBA)
    fetch = ["-m", "pip", "download", "--no-deps", "--no-build-isolation", "--no-binary=:all:", "--require-hashes"]
    output_of(
        *fetch, "-r", folder / "mamba.txt", "-d", folder, python=Path(sys.executable), MAMBA_SKIP_CUDA_BUILD="TRUE"
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    here = Path(__file__)
    python = python_of("triton_libraries", here.with_name("triton.toml"))
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    printed = output_of(here.with_name("triton_libraries.py"), unpacked, python=python, TRITON_INTERPRET="1")
    return json.loads(printed.splitlines()[-1])


def test_the_chunked_delta_rule(counted: Any) -> None:
    """Yang et al. 2024 (arXiv 2406.06484), section 3.2, of keys and values of 64; forward."""
    kernels, code, error = counted["fla"]
    wide, block = 64, CHUNK // 4
    blank = block - 1 + block - 2  # above the diagonal in a triangle's first two rows, which no row before them fills
    assert kernels == {
        "triton.chunk_scaled_dot_kkt_fwd_kernel": EACH * BELOW * wide,
        # the inverse of 4 x 4 blocks: 16 products, of which 12 have a factor on the diagonal
        "triton.merge_16x16_to_64x64_inverse_kernel": EACH * (16 * block**3 - 12 * blank * block),
        "triton.recompute_w_u_fwd_kernel": EACH * CHUNK * CHUNK * 2 * wide,
        "triton.chunk_gated_delta_rule_fwd_kernel_h_blockdim64": EACH * 2 * CHUNK * wide * wide,
        "triton.chunk_fwd_kernel_o": EACH * (CHUNK * wide * wide + LOWER * 2 * wide),
    }
    assert (code, error < 1e-2) == (0, True)


def test_state_space_duality(counted: Any) -> None:
    """Dao and Gu 2024 (arXiv 2405.21060), section 6, of values of 32 and states of 16; forward and backward."""
    kernels, code, error = counted["mamba"]
    states, values = 16, 32
    pairs, through = LOWER * values, CHUNK * states * values
    scores = EACH // HEADS * CHUNK * CHUNK * states  # of all heads together
    assert kernels == {
        "triton._bmm_chunk_fwd_kernel": 2 * scores,  # forward, and again for the gradients
        "triton._chunk_state_fwd_kernel": 2 * EACH * through,
        "triton._chunk_scan_fwd_kernel": EACH * (through + pairs),
        "triton._chunk_scan_bwd_dstates_kernel": EACH * through,
        "triton._chunk_scan_chunk_state_bwd_dx_kernel": EACH * (through + pairs),
        "triton._chunk_state_bwd_db_kernel": EACH * through,
        "triton._chunk_scan_bwd_dc_kernel": EACH * through,
        "triton._chunk_scan_bwd_dcb_kernel": EACH * pairs,
        "triton._bmm_chunk_bwd_kernel": 2 * scores,
        "triton._chunk_scan_bwd_ddAcs_stable_kernel": EACH * BELOW * values,
    }
    assert (code, error < 1e-3) == (0, True)


@pytest.mark.parametrize("loss", ["fused", "of logits"])
def test_losses(counted: Any, loss: str) -> None:
    """A head of 64 x 32 on 16 tokens: its logits, and both gradients. The kernels of the losses multiply no matrices."""
    flops, code, error = counted["liger"][loss]
    assert (flops, code, error < 1e-4) == (3 * 2 * 16 * 32 * 64, 0, True)
