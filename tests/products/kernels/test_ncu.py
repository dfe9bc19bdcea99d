"""Files of Nsight Compute: what is read of a real one, and what is said of one that lacks something."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.kernels import ncu, tiles
from tests.products.kernels.recorded import cases


def test_a_launch_has_its_ranges_outermost_first() -> None:
    (kernel,) = [one for one in cases()["mm_fp16"] if one.tensor]
    assert [(each.op, each.sizes) for each in kernel.launch.ranges] == [
        ("aten.matmul", ((512, 384), (384, 256))),
        ("aten.mm", ((512, 384), (384, 256))),
    ]
    assert kernel.launch.grid == (8, 8, 1)
    assert kernel.tensor == 2 * 512 * 384 * 256
    assert kernel.fma == 0


def test_lists_of_tensors_and_what_is_no_tensor() -> None:
    (layer, *_) = [each for one in cases()["lstm"] for each in one.launch.ranges if each.op == "aten.lstm"]
    assert layer.sizes[0] == (7, 3, 16)
    assert layer.sizes[-4:] == ((128, 16), (128, 32), (128,), (128,))


CUTLASS = "cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4"
NVJET = "nvjet_sm90_hsh_32x64_64x16_4x2_h_bz_NNN"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (f"void cutlass::Kernel2<{CUTLASS}>(T1::Params)", CUTLASS),
        ("void at::<unnamed>::conv_depthwise2d_forward_kernel<3, float, int>(int)", "conv_depthwise2d_forward_kernel"),
        ("void pytorch_flash::flash_bwd_dot_do_o_kernel<1, Traits<64, 128>>(p)", "flash_bwd_dot_do_o_kernel"),
        (NVJET, NVJET),
        (
            "void cutlass__5x_cudnn::Kernel<conv::ImplicitGemmConvolution<conv::Multistage<int>>>(p)",
            "ImplicitGemmConvolution",
        ),
    ],
)
def test_a_kernel_is_called_by_its_own_name(name: str, short: str) -> None:
    assert ncu.Launch(name, (1, 1, 1), ()).short == short


HEAD = '"ID","thread Domain:Push/Pop_Range:x","Kernel Name","Grid Size",'
COLUMNS = ",".join(f'"{name}"' for name in ("sm__ops_path_tensor_src_fp16.sum", *ncu.FMA))
RANGE = '"1 ""<default domain>:aten::mm, op_id = 1, sizes = [[2, 3], [3, 4]], input_op_ids = [(0,-1)]:none"" "'
SIZES = ("[2, 3]", "[[2, 3.0]]", "[[2, -3]]", "[[2, true]]", "[[2}]", "[" * 9999 + "]" * 9999)
ONE = '"(1, 1, 1)"'
BARE = '"1 ""<default domain>:aten::mm, op_id = 1, sizes = [[], []], input_op_ids = [(0,-1)]:none"" "'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "no columns 'Kernel Name'"),
        ('"ID","Kernel Name",' + COLUMNS, "no columns 'Kernel Name' and 'Grid Size'"),
        ('"a' * 99, "no CSV file of ncu"),
        ('"' + "a" * 200_000 + '"', "no CSV file of ncu"),
        ('"ID","Kernel Name","Grid Size",' + COLUMNS, "no column of the NVTX ranges"),
        (HEAD + COLUMNS.partition(",")[2], "no column of tensor cores"),
        (HEAD + COLUMNS.rpartition(",")[0], "no column of FFMA and DFMA"),
        (HEAD + COLUMNS + '\n"","","","","","",""\n', "lists no kernel"),
        (f'{HEAD}{COLUMNS}\n"0",{BARE},"k","(1, 1, 1)","0","0","0"\n', "have no sizes of tensors"),
        *(
            (f'{HEAD}{COLUMNS}\n"0",{ranges},"gemm",{grid},{counts}\n', "no count of kernel 0: ")
            for ranges, grid, counts in (
                (RANGE, ONE, '"n/a","0","0"'),
                (RANGE, ONE, '"-64","0","0"'),
                (RANGE, ONE, '"1e3","0","0"'),
                (RANGE, ONE, '"0","0"'),
                (RANGE, '"(1, 1)"', '"0","0","0"'),
                (RANGE, '"(0, 1, 1)"', '"0","0","0"'),
                (RANGE, "1", '"0","0","0"'),
                *((RANGE.replace("[[2, 3], [3, 4]]", sizes), ONE, '"0","0","0"') for sizes in SIZES),
            )
        ),
    ],
)
def test_what_a_file_lacks_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "k.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as refusal:
        ncu.read_launches(path)
    assert "\n" not in str(refusal.value)


def test_a_tile_of_nothing_is_none() -> None:
    assert tiles.tile(ncu.Launch("gemm_tilesize0x32x64", (1, 1, 1), ())) is None


def test_commas_in_counts_and_lines_of_ncu_itself(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text(
        f'==PROF== Connected to process 1\n{HEAD}{COLUMNS}\n"0",{RANGE},"gemm","(4, 2, 1)","1,234","5","6"\n'
    )
    (one,) = ncu.read_launches(tmp_path / "k.csv")
    assert (one.tensor, one.fma, one.launch.grid) == (1234, 11, (4, 2, 1))
    assert one.launch.ranges == (ncu.Range("aten.mm", 1, ((2, 3), (3, 4))),)


def test_a_column_that_is_a_part_of_another_is_not_added(tmp_path: Path) -> None:
    """Another GPU has FP16 with its results' types and with sparsity beside FP16: each operation stands in two columns."""
    more = ",".join(f'"sm__ops_path_tensor_src_fp16{end}.sum"' for end in ("_dst_fp32", "_sparsity_off"))
    (tmp_path / "k.csv").write_text(f'{HEAD}{COLUMNS},{more}\n"0",{RANGE},"gemm","(1, 1, 1)","64","0","0","64","64"\n')
    assert [one.tensor for one in ncu.read_launches(tmp_path / "k.csv")] == [64]
