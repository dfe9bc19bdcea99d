"""Lines of MKL and oneDNN as products: each amount stands beside its closed form. No framework."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.cpu_libraries.log_lines import product_of

DNN = "onednn_verbose,v1,primitive,exec,cpu,"
LAYOUT = "src:f32:a:blocked:aBcd16b::f0 wei:f32:a:blocked:ABcd16b16a::f0 dst:f32:a:blocked:aBcd16b::f0"
CONV = f"{DNN}convolution,jit:avx512_core,forward_training,{LAYOUT},attr-scratchpad:user,alg:convolution_%s,%s,0.1"


@pytest.mark.parametrize(
    ("line", "macs"),
    [
        ("MKL_VERBOSE SGEMM(N,N,1024,16,27,0x1,0x2,1024,0x3,27,0x4,0x5,1024) 181.67us CNR:OFF", 32 * 32 * 16 * 27),
        ("MKL_VERBOSE SGEMM(T,N,128,8,64,0x1,0x2,64) 23.90us", 8 * 64 * 128),
        ("MKL_VERBOSE DGEMM(T,N,128,8,64,0x1,0x2,64) 39.28us", 8 * 64 * 128),
        ("MKL_VERBOSE CGEMM(N,N,20,20,30,0x1,0x2,20) 50.68us", 4 * 20 * 20 * 30),
        ("MKL_VERBOSE SGEMV(T,64,128,0x1,0x2,64) 1us", 64 * 128),
        ("MKL_VERBOSE SDOT(100,0x1,1,0x2,1) 5.23us", 100),
        (CONV % ("direct", "mb1_ic64oc64_ih56oh54kh3sh1dh0ph0_iw56ow54kw3sw1dw0pw0"), 54 * 54 * 64 * 64 * 9),
        (CONV % ("direct", "g4mb1_ic64oc64_ih32oh32kh3sh1dh0ph1_iw32ow32kw3sw1dw0pw1"), 32 * 32 * 64 * 16 * 9),
        (
            DNN
            + "matmul,brg_matmul:avx512_core_bf16,undef,src:bf16::blocked:ab::f0,attr-post-ops:sum,,8x64:64x128,1.7",
            8 * 64 * 128,
        ),
        (DNN + "matmul,brg,undef,src:bf16::blocked:abc::f0,,,6x8x64:6x64x128,1.7", 6 * 8 * 64 * 128),
        (
            DNN + "matmul,brg_matmul:avx10_1_512_amx,undef,src:u8::blocked:ab::f0 wei:s8::blocked:BA16a64b4a::f8:zpm2,"
            "attr-scales:src0:0:f32+wei:0:f32 attr-zero-points:src0:0:s32,,8x64:64x128,22.4319",
            8 * 64 * 128,
        ),
        (DNN + "gemm_api,,undef,src_s8::blocked:ab:f0 wei_s8::blocked:ab:f0,,,32x64:64x128,107.1", 32 * 64 * 128),
        (
            DNN + "rnn,ref,backward,src_layer:f32::blocked:abc::f0,attr-scratchpad:user,alg:vanilla_lstm "
            "direction:unidirectional_left2right activation:undef flags:,l1t5mb3sic20slc10dhc20dic20,57.4",
            2 * 5 * 3 * 4 * 20 * (10 + 20),  # of activations and of weights
        ),
        (
            DNN + "rnn,brgemm:avx512_core,forward_inference,src_layer:f32::blocked:abc::f0,attr-scratchpad:user,"
            "alg:vanilla_lstm direction:unidirectional_left2right activation:undef flags:,l1t5mb3sic20slc10dhc20dic20,0.04",
            5 * 3 * 4 * 20 * (10 + 20),
        ),
    ],
)
def test_a_line_has_the_products_of_its_sizes(line, macs):
    product = product_of(line)
    assert product is not None
    assert product.macs == macs


@pytest.mark.parametrize(
    "line",
    [
        "onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:1",
        CONV.replace("exec", "create:cache_miss")
        % ("direct", "mb1_ic64oc64_ih56oh54kh3sh1dh0ph0_iw56ow54kw3sw1dw0pw0"),
        DNN
        + "reorder,jit:blk,undef,src:f32::blocked:abcd::f0 dst:f32::blocked:aBcd16b::f0,attr-scratchpad:user,,1x64x56x56,0.3",
        "MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture",
        "MKL_VERBOSE SAXPY(10,0x1,0x2,1,0x3,1) 1us",
        "a model that prints",
    ],
)
def test_a_line_about_no_product_has_none(line):
    assert product_of(line) is None


BATCH = (
    "MKL_VERBOSE SGEMM_BATCH(N,N,0x7ffc3aea54f8,0x7ffc3aea54f4,0x7ffc3aea54f0,0x7f,0x7f,0x7ffc3aea54fc) 13.52us NThr:1"
)


def test_addresses_are_no_sizes():
    product = product_of(BATCH)
    assert (product.routine, product.sizes, product.macs) == ("SGEMM_BATCH", {}, 0)


def test_sizes_that_were_read_are_those_of_the_batch():
    product = product_of(BATCH + " sizes:30,40,50,6")
    assert product.sizes == {"m": 30, "n": 40, "k": 50, "b": 6}
    assert product.macs == 6 * 30 * 40 * 50


def test_a_padded_layout_is_that_of_the_line():
    line = CONV.replace("wei:f32:a:blocked", "wei:f32:ap:blocked") % (
        "direct",
        "mb1_ic3oc64_ih9oh7kh3sh1dh0ph0_iw9ow7kw3sw1dw0pw0",
    )
    assert product_of(line).padded == "wei ABcd16b16a"
    assert product_of(line.replace(":ap:", ":a:")).padded == ""


def test_the_algorithm_is_that_of_the_line():
    line = CONV % ("winograd", "mb1_ic64oc64_ih56oh54kh3sh1dh0ph0_iw56ow54kw3sw1dw0pw0")
    assert product_of(line).algorithm == "convolution_winograd"
