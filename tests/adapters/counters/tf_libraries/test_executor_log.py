"""The log of a run by hand: which product belongs to which node."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.tf_libraries.executor_log import PRODUCT_BEFORE_NODE, nodes_in
from reconcile.adapters.shared.refusal import CannotCount

INNER = "onednn_verbose,v1,primitive,exec,cpu,inner_product,x64:gemm:jit,forward_training,src:f32::blocked:ab,,,mb8ic64oc128,0.1"
MATMUL = "onednn_verbose,v1,primitive,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0,,,4x3:3x5,0.01"
REORDER = "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:ab::f0,,,16x8,0.1"


def node(name: str, kind: str, thread: int = 7, dead: bool = False) -> str:
    """A line of the executor."""
    end = " is dead" if dead else ""
    return (
        f"I0000 00:00:1795829947.51 {thread:7} executor.cc:879] Process node: 5 step -67 {{{{node {name}}}}} = {kind}[T=DT_FLOAT"
        f', _device="/job:localhost/device:CPU:0"](x, w){end} device: /job:localhost/device:CPU:0'
    )


def test_a_product_belongs_to_the_node_above_it() -> None:
    log = [
        node("x", "_Arg"), node("d/BiasAdd", "_MklNativeFusedMatMul"), INNER, REORDER, node("m", "_MklMatMul"), MATMUL,
        MATMUL,
    ]  # fmt: skip
    arg, dense, product = nodes_in(log)
    assert (arg.name, arg.kind, arg.calls, arg.products) == ("x", "_Arg", 1, {})
    (lines,) = dense.products.values()
    assert [(line[0], line[1]) for line in lines] == [("inner_product", {"m": 8, "n": 128, "k": 64})]
    (lines,) = product.products.values()
    assert [line[1] for line in lines] == [{"b": 1, "m": 4, "n": 5, "k": 3}] * 2


def test_each_run_of_a_loops_node_has_its_own_lines() -> None:
    once, twice = [node("m", "_MklMatMul"), MATMUL], [node("m", "_MklMatMul"), MATMUL, MATMUL]
    (found,) = nodes_in([*once, *twice, *once, node("m", "_MklMatMul")])
    assert (found.calls, sorted(found.lines.values())) == (4, [1, 2])
    assert {len(found.products[text]): times for text, times in found.lines.items()} == {1: 2, 2: 1}


def test_a_node_of_a_branch_not_taken_did_not_run() -> None:
    (found,) = nodes_in([node("m", "MatMul", dead=True), node("m", "MatMul", dead=True)])
    assert (found.calls, found.lines) == (0, {})


def test_lines_of_two_threads_are_of_no_node() -> None:
    with pytest.raises(CannotCount, match="ran in 2 threads"):
        nodes_in([node("a", "MatMul"), node("b", "MatMul", thread=8), MATMUL])


def test_a_product_above_every_node_is_refused() -> None:
    with pytest.raises(CannotCount, match=PRODUCT_BEFORE_NODE):
        nodes_in([REORDER, MATMUL, node("a", "MatMul")])
