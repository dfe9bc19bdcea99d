"""Nodes that TensorFlow ran, put at the ops of its graph as it was written: by name, by what was fused, and by call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from reconcile.adapters.counters.cpu_libraries import PRODUCTS
from reconcile.adapters.counters.tf_libraries.executor_log import ExecutedNode
from reconcile.adapters.counters.tf_libraries.logged_products import REMOVED
from reconcile.core.records import Op
from tests.adapters.counters.cases import op

pytest.importorskip("tensorflow")
from reconcile.adapters.counters.tf_libraries.node_mapping import Graph, MappedNodes

SHAPES: Any = ([(8, 64), (64, 5)], [(8, 5)])
LINE = ["gemm_api", {"b": 1, "m": 8, "n": 5, "k": 64}, "", "f32", ""]


class Edges(Graph):
    """The ops before an op, by hand."""

    def __init__(self, before: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._before = before

    def before(self, id: str) -> Iterator[str]:
        return iter(self._before.get(id, ()))


def named(id: str, kind: str = "MatMul", **fields: Any) -> Op:
    return op(kind, *SHAPES)._replace(id=id, layer=id.partition("/")[0], **fields)


def ran(name: str, kind: str, *lines: Any, calls: int = 1) -> ExecutedNode:
    """A node that left these lines each time."""
    text = repr(list(lines))
    return ExecutedNode(name, kind, calls, {text: calls} if lines else {}, {text: list(lines)} if lines else {})


def lines_at(placed: MappedNodes) -> dict[str, tuple[int, int]]:
    """Calls and lines of each op with lines."""
    return {o.id: (o.calls, len(o.attrs[PRODUCTS])) for o in placed.ops() if PRODUCTS in o.attrs}


def gone(placed: MappedNodes) -> list[str]:
    return [o.id for o in placed.ops() if REMOVED in o.attrs]


def test_a_fused_node_is_the_nearest_product_before_its_name() -> None:
    ops = [named("a/MatMul"), named("a/BiasAdd", "BiasAdd"), named("b/MatMul"), named("b/Relu", "Relu")]
    edges = Edges({"b/Relu": ["b/BiasAdd", "b/MatMul", "a/BiasAdd", "a/MatMul"], "a/BiasAdd": ["a/MatMul"]})
    nodes = [ran("b/Relu", "_MklNativeFusedMatMul", LINE), ran("a/BiasAdd", "_FusedMatMul", LINE)]
    placed = MappedNodes(ops, edges, nodes)
    assert (lines_at(placed), gone(placed), placed.strays) == ({"a/MatMul": (1, 1), "b/MatMul": (1, 1)}, [], [])


def test_a_product_that_ran_by_its_own_name_is_not_the_fused_one() -> None:
    ops = [named("a/MatMul"), named("b/MatMul"), named("b/Add", "AddV2")]
    nodes = [ran("b/Add", "_MklNativeFusedMatMul", LINE), ran("b/MatMul", "_MklMatMul", LINE, LINE)]
    placed = MappedNodes(ops, Edges({"b/Add": ["b/MatMul", "a/MatMul"]}), nodes)
    assert lines_at(placed) == {"a/MatMul": (1, 1), "b/MatMul": (1, 2)}


def test_an_elementwise_node_is_no_product() -> None:
    placed = MappedNodes(
        [named("a/MatMul"), named("a/Relu", "Relu")], Edges({"a/Relu": ["a/MatMul"]}), [ran("a/Relu", "_MklRelu")]
    )
    assert (lines_at(placed), gone(placed)) == ({}, ["a/MatMul"])


def test_a_rewritten_node_has_the_name_that_it_had() -> None:
    node = ran("a/ArithmeticOptimizer/FoldTransposeIntoMatMul_MatMul", "_MklMatMul", LINE)
    placed = MappedNodes([named("a/MatMul")], Edges({}), [node])
    assert (lines_at(placed), gone(placed)) == ({"a/MatMul": (1, 1)}, [])


def test_a_loops_node_has_the_name_without_its_number() -> None:
    node = ran("l/while/body/_7/l/while/MatMul", "_MklMatMul", LINE, calls=97)
    placed = MappedNodes([named("l/while/body/l/while/MatMul", calls=97)], Edges({}), [node])
    assert lines_at(placed) == {"l/while/body/l/while/MatMul": (97, 1)}


def test_a_node_that_no_op_is_is_a_stray() -> None:
    strays = [ran("x/MatMul", "_MklMatMul", LINE), ran("y", "_Arg")]
    placed = MappedNodes([named("a/MatMul")], Edges({}), strays)
    assert (placed.strays, gone(placed)) == (strays[:1], ["a/MatMul"])


def test_calls_without_lines_stay_without() -> None:
    node = ExecutedNode("a/MatMul", "MatMul", 5, {repr([LINE]): 3}, {repr([LINE]): [LINE]})
    found = [(o.calls, PRODUCTS in o.attrs) for o in MappedNodes([named("a/MatMul", calls=5)], Edges({}), [node]).ops()]
    assert found == [(3, True), (2, False)]


def test_a_compiled_call_has_the_products_within_it() -> None:
    other = named("c/Other")._replace(
        inputs=op("MatMul", [(8, 64), (64, 7)], []).inputs, outputs=op("", [], [(8, 7)]).outputs
    )
    twins = [named("c/A"), named("c/B")]
    ops = [
        named("c", "StatefulPartitionedCall"),
        *(o._replace(within=("c",)) for o in (*twins, other, named("c/Silent"))),
    ]
    half = [["gemm_api", {"b": 1, "m": rows, "n": 5, "k": 64}, "", "f32", ""] for rows in (5, 3)]
    wide = ["gemm_api", {"b": 1, "m": 8, "n": 7, "k": 64}, "", "f32", ""]
    placed = MappedNodes(ops[:-1], Edges({}), [ran("c", "StatefulPartitionedCall", *half, wide, *half)])
    assert (lines_at(placed), placed.strays) == ({"c/A": (1, 2), "c/B": (1, 2), "c/Other": (1, 1)}, [])
    placed = MappedNodes(ops, Edges({}), [ran("c", "StatefulPartitionedCall", wide)])
    assert (lines_at(placed), gone(placed)) == ({"c/Other": (1, 1)}, [])  # the rest ran, without a line


def test_lines_of_a_call_that_are_of_none_are_strays() -> None:
    ops = [named("c", "StatefulPartitionedCall"), named("c/A", within=("c",))]
    more = ["gemm_api", {"b": 1, "m": 9, "n": 5, "k": 64}, "", "f32", ""]
    placed = MappedNodes(ops, Edges({}), [ran("c", "StatefulPartitionedCall", LINE, more)])
    assert lines_at(placed) == {"c/A": (1, 1)}
    assert [list(node.products.values()) for node in placed.strays] == [[[more]]]
