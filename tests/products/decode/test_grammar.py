"""The candidates: each by its closed form, all of them documented, and few enough to mean something."""

from __future__ import annotations

import re
from dataclasses import replace

from reconcile.core.conventions import BUILT_IN, Convention
from reconcile.core.records import DUPLICATE, LIVE, POINTWISE
from reconcile.products.decode.grammar import Source, candidates
from tests.products.decode import data

BATCH, STEPS = 4, 97


def table(*sources: Source) -> dict[str, set[int]]:
    """Amounts by what they are."""
    found: dict[str, set[int]] = {}
    for candidate in candidates(sources)[0]:
        found.setdefault(candidate.what, set()).add(candidate.value)
    return found


def looped() -> Source:
    """A product in a loop, one outside, and a bias; batch 4."""
    ops = (
        data.product("a", 4, 8, 3, STEPS, "gru"),
        data.product("b", 4, 3, 5, layer="dense"),
        data.bias("c", 4, 5, layer="dense"),
    )
    return data.source(data.trace(*ops), batch=BATCH)


def test_a_session_graph_by_role() -> None:
    found = table(data.source(data.session()))
    name = "tf.profiler@session"
    assert found[f"{name}, as reported"] == {7_200 + 1_088 + 10}
    assert found[f"{name}, only what is of the model"] == {7_200}
    assert found[f"{name}, only what is of initialisers and random input"] == {2 * 544}
    assert found[f"{name}, only what is of ops that no output depends on"] == {10}
    assert found[f"{name} without initialisers and random input"] == {7_210}
    (first,) = (c for c in candidates([data.source(data.session())])[0] if c.what.endswith("as reported"))
    assert first.how == (
        "7,200 of the model (MatMul) + 10 of ops that no output depends on (Sum) "
        "+ 1,088 of initialisers and random input (Add 544, Mul 544) = 8,298"
    )


def test_built_twice_is_of_session_graphs_alone() -> None:
    for counter in ("tf.profiler@session", "tf.profiler@batch_none"):
        assert {2 * 8_298 + 1, 8_298 + 1} <= {
            v for values in table(data.source(data.session(counter))).values() for v in values
        }
    frozen = table(data.source(data.session("tf.profiler@frozen")))
    assert not {2 * 8_298 + 1, 8_298 + 1} & {v for values in frozen.values() for v in values}


def test_the_first_of_two_builds_is_a_part() -> None:
    ledger = data.session("tf.profiler@built_twice")
    twice = ledger._replace(
        sightings=tuple(s._replace(role=DUPLICATE) if s.role == LIVE else s for s in ledger.sightings)
    )
    assert table(data.source(twice))[
        "tf.profiler@built_twice, only what is of the model's first build in the same graph"
    ] == {7_200}


def test_products_with_and_without_biases() -> None:
    found = table(looped())
    macs, dots, biases = STEPS * 4 * 8 * 3 + 4 * 3 * 5, STEPS * 4 * 3 + 4 * 5, 4 * 5
    products = "the products that ran"
    assert found["the work that ran, in MACs (half of matmul)"] == {macs}
    assert found["the work that ran, in FLOPs by the convention all"] == {2 * macs + biases}
    assert found[f"{products}, FLOPs doubled as if they were MACs"] == {4 * macs}
    assert found[f"{products} at 2K − 1 per dot product"] == {2 * macs - dots}
    assert found[f"{products} at 2K − 1 per dot product, and their biases"] == {2 * macs - dots + biases}
    assert found[f"{products}, and their biases"] == {2 * macs + biases}
    assert found[f"{products} in MACs, a bias counted as a MAC"] == {macs + biases}
    assert found[f"{products} in MACs × 2, a bias counted as a MAC"] == {2 * (macs + biases)}
    assert found["the work that ran by the convention textbook, without biases"] == {2 * macs - dots}
    assert found["the work that ran by the convention all, doubled"] == {2 * (2 * macs + biases)}
    assert found["the work that ran by the convention all, halved"] == {macs + biases // 2}


def test_one_step_and_per_sample() -> None:
    found = table(looped())
    body, rest = 4 * 8 * 3, 4 * 3 * 5
    assert found["one step: the loop bodies, once, in MACs (half of matmul)"] == {body}
    assert found["the work that ran, every loop body once, in MACs (half of matmul)"] == {body + rest}
    assert found["the work that ran, in MACs (half of matmul), per sample"] == {(STEPS * body + rest) // BATCH}
    one = table(replace(looped(), collected=replace(looped().collected, meta={**data.META, "params": {}})))
    assert not [what for what in one if "per sample" in what]


def test_layers_of_the_same_amount_are_one_candidate() -> None:
    ops = [data.product(f"op{i}", 2, 3, 5, layer=f"l{i}") for i in range(4)]
    found = table(data.source(data.trace(*ops), batch=1))
    assert found["each of 4 layers: l0, l1, l2, ..., in MACs"] == {30}


def test_an_incomplete_trace_says_what_can_be_read_of_it() -> None:
    odd = data.product("a", 4, 8, 3, layer="x")._replace(op="NobodyKnowsIt")
    known = [data.product("b", 4, 8, 3, layer="y"), data.product("c", 1, 2, 3, layer="z")]
    beside = data.product("d", 5, 7, 3, layer="x")
    found, notes = candidates([data.source(data.trace(odd, *known, beside))])
    (note,) = notes
    assert note.startswith("trace@tf in old is incomplete: the work of NobodyKnowsIt (")
    assert "other layers are read" in note
    assert {c.what for c in found if c.value == 96} == {"layer y, in MACs"}
    assert not [c for c in found if "the work that ran" in c.what]
    assert [c.what for c in found if c.value == 5 * 7 * 3] == []  # a part of layer x


def test_a_total_is_read_where_the_trace_is_complete() -> None:
    """A pointwise op without a formula has no multiply-adds: 4 x 8 x 3 of them ran, and the number of operations is unknown."""
    odd = data.product("a", 4, 8, 3, layer="x")._replace(op="mine.pointwise", attrs={POINTWISE: True})
    own = Convention("own", mac=3)
    source = data.source(data.trace(odd, data.product("b", 4, 8, 3, layer="y")), batch=1)
    found, (note,) = candidates([source], {**BUILT_IN, "own": own})
    assert "Its total cannot be read but under matmul, own, nor can the layers" in note
    held = {c.what: c.value for c in found}
    assert held["the work that ran, in MACs (half of matmul)"] == 96
    assert held["the work that ran, in FLOPs by the convention matmul"] == 2 * 96
    assert held["the work that ran, in FLOPs by the convention own"] == 3 * 96
    assert [what for what in held if "convention all" in what or "textbook" in what] == []


def test_arithmetic_shown_is_right() -> None:
    """Every sum that is printed, worked out again from its text."""
    checked = 0
    for candidate in data.candidates([*data.saved("gru_demo"), looped(), data.source(data.session())])[0]:
        if candidate.how:
            left, _, right = candidate.how.rpartition(" = ")
            bare = re.sub(r"\([A-Z]\w* .*?\)|\([A-Z]\w*\)", "", left)  # kinds of op inside a role
            bare = re.sub(r"[a-zA-Z][\w']*", "", bare.replace("×", "*").replace("−", "-").replace(",", ""))
            assert eval(bare) == int(right.replace(",", "")) == candidate.value, candidate
            checked += 1
    assert checked > 50


def test_the_parameters_that_a_trace_names() -> None:
    """Those of each layer, summed; none where none are named."""
    trace = data.trace(data.product("a", 4, 8, 3, 1, "fc"))
    assert table(data.source(trace._replace(parameters={"fc": 24, "norm": 6})))["the number of parameters"] == {30}
    assert "the number of parameters" not in table(data.source(trace))
