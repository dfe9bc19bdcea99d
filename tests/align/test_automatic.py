"""Two models without a word on which layer is which: what is found, what is left alone, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.align.alignment import ROOT, Alignment
from reconcile.align.automatic import align_layers, count_matches, layers_of, lone, together
from reconcile.align.partners import CROSSED, SEVERAL_LAYERS_FIT
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import Trace
from reconcile.core.results import Match
from reconcile.engine.traces import layer_work
from reconcile.work import work_of
from tests.align.models import Layer, pair, trace

SIZES = st.integers(1, 4)
LAYERS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3), SIZES), max_size=7, unique_by=lambda x: x[0]
)


def matched(rows: Sequence[Match]) -> dict[str, str]:
    return {tf: torch for row in rows if row.by for tf in row.paths["tf"] for torch in row.paths["torch"]}


def foots(tf: Trace, torch: Trace, rows: Sequence[Match]) -> None:
    """Every layer is in one row; the rows' work adds up to each model's, and is in no row that is not there."""
    all_foot((tf, torch), rows)


def all_foot(traces: Sequence[Trace], rows: Sequence[Match]) -> None:
    """The same of any number of models."""
    align = Alignment(layers_of(rows))
    for one in traces:
        mine = [path for row in rows for path in row.paths[one.framework]]
        assert sorted(mine) == sorted(set(one.layers))
        work = layer_work(one, align, BUILT_IN["all"])
        alone = layer_work(one, Alignment([]), BUILT_IN["all"])
        assert sum(n or 0 for n in work.values()) == sum(n or 0 for n in alone.values())
        assert set(work) <= {row.layer for row in rows}
    assert len({row.layer for row in rows}) == len(rows)


NET = [("encoder.0.fc1", 5, 7), ("encoder.0.act", 0, 21), ("encoder.0.fc2", 7, 5), ("head", 5, 2)]


def keras(layers: Sequence[Layer]) -> list[Layer]:
    return [("tf_net." + path.replace(".0", "_._0"), *rest) for path, *rest in layers]  # type: ignore[misc]


def test_names_of_both_ecosystems() -> None:
    tf, torch = pair(keras(NET), NET)
    rows = align_layers(tf, torch)
    assert matched(rows) == {a[0]: b[0] for a, b in zip(keras(NET), NET, strict=True)}
    assert count_matches(rows) == {"name+work": 4}
    assert lone(rows) == {}
    assert [row.layer for row in rows] == [path for path, *_ in NET]
    foots(tf, torch, rows)


def test_without_names_order_and_shapes_and_work_say_it() -> None:
    tf = [("dense", 5, 7), ("re_lu", 0, 21), ("dense_1", 7, 5), ("dense_2", 5, 2)]
    torch = [("0", 5, 7), ("1", 0, 21), ("2", 7, 5), ("3", 5, 2)]
    rows = align_layers(*pair(tf, torch))
    assert matched(rows) == {"dense": "0", "re_lu": "1", "dense_1": "2", "dense_2": "3"}
    assert count_matches(rows) == {"order+shape+work": 3, "order+work": 1}


def test_a_name_that_both_have_is_the_layer_whatever_its_work() -> None:
    rows = align_layers(*pair([("a.fc", 5, 7), ("b.fc", 5, 7)], [("a.fc", 5, 7), ("b.fc", 5, 8)]))
    assert [(row.layer, row.by) for row in rows] == [("a.fc", "name+work"), ("b.fc", "name")]


def test_names_may_stand_in_another_order_on_the_other_side() -> None:
    layers = [("query", 5, 5), ("key", 5, 5), ("value", 5, 5)]
    rows = align_layers(*pair(layers, layers[::-1]))
    assert matched(rows) == {name: name for name, *_ in layers}
    assert [row.layer for row in rows] == ["value", "key", "query"]


def test_one_identical_layer_more_is_a_tie_and_no_evidence() -> None:
    tf, torch = [(f"dense_{i}", 4, 4) for i in range(5)], [(f"net.{i}", 4, 4) for i in range(6)]
    rows = align_layers(*pair(tf, torch))
    assert matched(rows) == {}
    assert {row.comment for row in rows} == {SEVERAL_LAYERS_FIT}
    foots(*pair(tf, torch), rows)


def test_a_convolution_of_another_stride_is_found_by_its_filter() -> None:
    """A filter of 5 x 7 has as many summands, but not as many results."""
    tf, torch = pair([("dense", 5, 7), ("dense_1", 7, 3)], [("a", 5, 7), ("b", 7, 3)])
    assert {row.layer: row.by for row in align_layers(tf, taller(torch, 0, 9))} == {
        "a": "order+shape",
        "b": "order+shape+work",
    }


def taller(trace: Trace, index: int, batch: int) -> Trace:
    """The same filter at that op, on another number of rows."""
    op = trace.ops[index]
    rows, filter = op.inputs
    inputs = (rows._replace(shape=(batch, *(rows.shape or ())[1:])), filter)
    outputs = (op.outputs[0]._replace(shape=(batch, *(op.outputs[0].shape or ())[1:])),)
    return trace._replace(
        ops=(*trace.ops[:index], op._replace(inputs=inputs, outputs=outputs), *trace.ops[index + 1 :])
    )


def test_a_product_is_not_matched_with_what_has_none_by_its_name() -> None:
    rows = align_layers(*pair([("fc", 4, 5), ("last", 5, 2)], [("fc", 0, 7), ("last", 5, 2)]))
    assert {row.layer: row.by for row in rows} == {"tf:fc": "", "torch:fc": "", "last": "name+work"}


def test_a_name_that_one_side_has_twice_is_none() -> None:
    rows = align_layers(*pair([("dense", 5, 6), ("dense_1", 4, 5)], [("dense", 5, 6)]))
    assert matched(rows) == {"dense": "dense"}
    rows = align_layers(*pair([("dense", 4, 5), ("dense_1", 5, 6)], [("dense", 5, 6)]))
    assert matched(rows) == {"dense_1": "dense"}


def test_what_has_a_namesake_elsewhere_matches_no_neighbour() -> None:
    """4 x 4 and 5 x 7 are as much as 1 x 1 and 5 x 10; but ``b_c`` is there by its name, too."""
    tf, torch = pair([("a.u", 4, 4), ("a.b_c", 5, 7)], [("a.v", 1, 1), ("a.w", 5, 10), ("a_b.c", 5, 9)])
    rows = align_layers(tf, torch)
    assert {row.layer: row.by for row in rows if row.by} == {"a_b.c": "name"}
    foots(tf, torch, rows)


def test_a_partner_is_looked_for_inside_the_namesake_around_it() -> None:
    """``gru`` and ``lstm`` are there on both sides, so that what is inside the one is not taken for what is in the other."""
    tf = [("gru.cell", 4, 6), ("head", 6, 2), ("lstm.cell", 4, 8)]
    torch = [("lstm.inner", 4, 6), ("head", 6, 2), ("gru.inner", 4, 8)]
    rows = align_layers(*pair(tf, torch))
    assert {row.layer: row.by for row in rows if row.by} == {"head": "name+work"}
    same = align_layers(*pair(tf, [("gru.inner", 4, 6), ("head", 6, 2), ("lstm.inner", 4, 8)]))
    assert matched(same) == {"gru.cell": "gru.inner", "head": "head", "lstm.cell": "lstm.inner"}


def test_the_same_work_by_another_filter_is_another_layer() -> None:
    """3 x 4 by 4 x 4 is 48 multiply-adds for 12 results, and 6 x 4 by 4 x 2 is as many for as many."""
    tf, torch = pair([("a", 4, 4)], [("b", 4, 2)])
    torch = taller(torch, 0, 6)
    assert work_of(tf.ops[0]) == work_of(torch.ops[0])
    assert [row.by for row in align_layers(tf, torch)] == ["", ""]


def test_an_attention_of_several_layers_and_of_one_is_one_row() -> None:
    several = [("attn.query", 4, 4), ("attn.key", 4, 4), ("attn.value", 4, 4), ("attn.out", 4, 4)]
    one = [("attn", 4, 16)]
    for fc in ("dense", "fc"):
        tf, torch = pair([("first", 4, 4), *several, (fc, 4, 9)], [("first", 4, 4), *one, ("dense", 4, 9)])
        rows = align_layers(tf, torch)
        assert [(row.layer, row.by) for row in rows[1:2]] == [("attn", "name+together+work")]
        assert rows[1].paths["tf"] == tuple(path for path, *_ in several)
        foots(tf, torch, rows)
    nameless = [(f"dense_{i}", 4, 4) for i in range(4)]
    rows = align_layers(*pair([("first", 4, 4), *nameless, ("last", 4, 9)], [("first", 4, 4), *one, ("last", 4, 9)]))
    assert [row.by for row in rows] == ["name+work", "order+together+work", "name+work"]


def test_a_branch_before_or_behind_another_is_alone_of_its_kind() -> None:
    """It is not matched if more than a branch has changed places with it, or if there is another one of its kind."""
    body = [(f"{i}", i + 2, i + 3) for i in range(CROSSED + 1)]
    for many, expected in (
        (CROSSED, {"short": "only+shape+work"}),
        (CROSSED + 1, {"tf:dense_9": "", "torch:short": ""}),
    ):
        tf = [("dense_9", 40, 50), *((f"dense_{p}", *rest) for p, *rest in body[:many]), ("end", 2, 2)]
        torch = [*((f"net.{p}", *rest) for p, *rest in body[:many]), ("short", 40, 50), ("end", 2, 2)]
        rows = align_layers(*pair(tf, torch))  # type: ignore[arg-type]
        assert {row.layer: row.by for row in rows if "net." not in row.layer and row.layer != "end"} == expected
        assert sum(row.by == "order+shape+work" for row in rows) == many
        twice = align_layers(*pair(tf, [*torch, ("twin", 40, 50)]))  # type: ignore[arg-type]
        assert [row for row in twice if row.by.startswith("only")] == []


def test_an_activation_that_the_layer_applies_is_part_of_it() -> None:
    """Five comparisons more in the one, and a layer of as many right behind the other; of six there are not as many."""
    tf = [("fc", 4, 5), ("fc", 0, 5), ("last", 5, 2)]
    for many, by, lone_ones in ((5, "name+together+work", {}), (6, "name+work", {"torch": ["relu"]})):
        torch = [("fc", 4, 5), ("relu", 0, many), ("last", 5, 2)]
        rows = align_layers(*pair(tf, torch))
        assert next(row.by for row in rows if row.layer == "fc") == by
        assert lone(rows) == lone_ones
        foots(*pair(tf, torch), rows)
    rows = align_layers(*pair(tf, [("fc", 4, 5), ("last", 5, 2), ("relu", 0, 5)]))
    assert lone(rows) == {"torch": ["relu"]}


def test_scopes_in_a_layer_are_the_layers_wrappers_the_models() -> None:
    tf = [("wrap.fc.Tensordot", 4, 5), ("wrap.fc", 0, 15), ("wrap", 0, 2), ("wrap.other", 5, 3)]
    torch = [("fc", 4, 5), ("", 0, 7), ("other", 5, 3)]
    rows = align_layers(*pair(tf, torch))
    assert [(row.layer, row.paths["tf"], row.by) for row in rows] == [
        ("fc", ("wrap.fc", "wrap.fc.Tensordot"), "name+work"),
        (ROOT, ("wrap",), "name"),
        ("other", ("wrap.other",), "name+work"),
    ]
    foots(*pair(tf, torch), rows)


def test_a_product_outside_layers_matches_a_layer_of_the_other() -> None:
    """A language model's head, by the embedding's own matrix: in one framework the model does it itself."""
    tf = [("wrap.fc", 4, 5), ("wrap", 0, 3), ("", 5, 9)]
    torch = [("", 0, 2), ("fc", 4, 5), ("lm_head", 5, 9)]
    for sides in ((tf, torch), (torch, tf)):
        rows = align_layers(*pair(*sides))
        assert {row.layer: row.by for row in rows} == {ROOT: "name+together+work", sides[1][0][0] or "fc": "name+work"}
        foots(*pair(*sides), rows)
    neither = align_layers(*pair([("", 5, 9), ("a", 2, 3)], [("", 0, 2), ("b", 2, 3)]))
    assert {row.layer: row.by for row in neither} == {ROOT: "name", "b": "order+shape+work"}


def test_an_op_of_unknown_work_is_matched_by_name_alone() -> None:
    tf, torch = pair([("a", 4, 5), ("b", 4, 5)], [("a", 4, 5), ("c", 4, 5)])
    tf = tf._replace(ops=tuple(op._replace(op="NobodyKnows") for op in tf.ops))
    rows = align_layers(tf, torch)
    assert {row.layer: row.by for row in rows} == {"a": "name", "tf:b": "", "torch:c": ""}


@pytest.mark.parametrize("sides", [((), ()), (NET, ()), ((), NET)])
def test_blank_sides(sides: tuple[Sequence[Layer], Sequence[Layer]]) -> None:
    rows = align_layers(*pair(*sides))
    assert [row.by for row in rows] == [""] * (len(sides[0]) + len(sides[1]))
    foots(*pair(*sides), rows)


@settings(max_examples=20)
@given(LAYERS, st.randoms(use_true_random=False))
def test_renaming_a_side_never_swaps_two_layers(layers: list[Layer], random: object) -> None:
    """Every layer has its twin under another name: a match that is made is its twin, or of the same work as its twin."""
    tf = [(f"dense_{i}", *rest) for i, (_, *rest) in enumerate(layers)]
    torch = [(f"net.{path}", *rest) for path, *rest in layers]
    twins = {a[0]: b for a, b in zip(tf, torch, strict=True)}  # type: ignore[misc]
    found = matched(align_layers(*pair(tf, torch)))  # type: ignore[arg-type]
    assert found == {name: twin[0] for name, twin in twins.items()}


@settings(max_examples=20)
@given(LAYERS, st.sets(st.integers(0, 6)))
def test_layers_left_out_on_one_side_make_no_match_wrong(layers: list[Layer], out: set[int]) -> None:
    """With names on neither side, what is matched does the same work."""
    tf = [(f"dense_{i}", *rest) for i, (_, *rest) in enumerate(layers)]
    torch = [(f"net.{path}", *rest) for i, (path, *rest) in enumerate(layers) if i not in out]
    kinds = {path: tuple(rest) for path, *rest in [*tf, *torch]}
    rows = align_layers(*pair(tf, torch))  # type: ignore[arg-type]
    for row in rows:
        if row.by.endswith("work") and "together" not in row.by:
            assert kinds[row.paths["tf"][0]] == kinds[row.paths["torch"][0]]


def test_order_says_nothing_of_sequences_that_are_not_alike() -> None:
    """One of three is found again, at the end of the one and at the start of the other: that is no order."""
    tf = [("dense", 2, 3), ("dense_1", 3, 4), ("dense_2", 9, 9)]
    rows = align_layers(*pair(tf, [("a", 9, 9), ("b", 30, 31), ("c", 31, 32)]))
    assert [row for row in rows if row.by.startswith("order")] == []
    alike = align_layers(*pair(tf, [("x", 2, 3), ("y", 30, 31), ("z", 9, 9)]))
    assert matched(alike) == {"dense": "x", "dense_2": "z"}


def test_branches_in_another_order_are_compared_by_namesake() -> None:
    """Each ends with a layer that its name gives away; those cannot all keep the order."""
    tf = [(f"branch{i}.{name}", 4, 4) for i in (1, 2, 3) for name in ("conv7", "conv8", "last")]
    torch = [(f"branch{i}.{name}", 4, 4) for i in (3, 1, 2) for name in ("m5", "m6", "last")]
    rows = matched(align_layers(*pair(tf, torch)))
    twins = {"conv7": "m5", "conv8": "m6", "last": "last"}
    assert rows == {f"branch{i}.{mine}": f"branch{i}.{theirs}" for i in (1, 2, 3) for mine, theirs in twins.items()}


def test_what_does_no_product_is_never_put_together() -> None:
    rows = align_layers(*pair([("a.x", 0, 3), ("a.y", 0, 4), ("end", 2, 2)], [("a.z", 0, 9), ("end", 2, 2)]))
    assert matched(rows) == {"end": "end"}


def test_a_third_model_goes_by_the_one_most_like_it() -> None:
    """Its names are the first model's, which are not the second's; a layer that only two have is a row of these."""
    first = [("dense", 5, 7), ("act", 0, 21), ("last", 7, 2)]
    second = [("0", 5, 7), ("1", 0, 21), ("2", 7, 2)]
    third = [("dense", 5, 7), ("act", 0, 21), ("extra", 7, 7), ("last", 7, 2)]
    traces = (*pair(first, second), trace("jax", third))
    rows = together(traces)
    assert {row.layer: row.paths["jax"] for row in rows} == {
        "0": ("dense",), "1": ("act",), "2": ("last",), "jax:extra": ("extra",),
    }  # fmt: skip
    assert [row.layer for row in rows] == ["0", "1", "jax:extra", "2"]
    assert rows[0].by == "order+shape+work and name+work"
    assert lone(rows) == {"jax": ["extra"]}
    all_foot(traces, rows)
    without = together((traces[0], trace("torch", second[:1]), traces[2]))
    assert ("tf:last", ("last",), (), ("last",)) in [(row.layer, *row.paths.values()) for row in without]


@given(LAYERS, LAYERS, LAYERS)
@settings(max_examples=20, deadline=None)
def test_nothing_is_lost_of_three_models(tf: list[Layer], torch: list[Layer], jax: list[Layer]) -> None:
    traces = (*pair(tf, torch), trace("jax", jax))
    all_foot(traces, together(traces))
