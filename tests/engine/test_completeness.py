"""A trace is complete under one convention and incomplete under another: hand-made records, no framework."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.bridge import make_item
from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, BUILT_IN, CAUSAL, MATMUL, TEXTBOOK, Convention, Conventions
from reconcile.core.records import FLOP, LIVE, WEIGHT_GRADIENT, Entry, Ledger, Op, Problem, Sighting, Tensor, Trace
from reconcile.engine.answer import Answer
from reconcile.engine.booking import book
from reconcile.engine.breakdown import differing_components
from reconcile.engine.phases import phase_table
from reconcile.engine.reconcile import books_of, gather_facts
from reconcile.engine.settle import Collected, settle
from reconcile.engine.verdict import GIVE_FORMULAS, verdict
from reconcile.report.json import to_dict
from reconcile.report.page import to_html
from reconcile.work import Work, known_part

M, K, N = 4, 7, 3
VERSIONS = {"torch": "2.13.0"}
OPS = (
    Op("a", "aten.mm", "fc", (Tensor((M, K), "float32"), Tensor((K, N), "float32")), (Tensor((M, N), "float32"),), {}),
    Op("b", "aten.igamma", "odd", (Tensor((M, N), "float32"),) * 2, (Tensor((M, N), "float32"),), {}, calls=2),
    Op("c", "aten._is_all_true", "odd", (Tensor((M,), "bool"),), (Tensor((), "bool"),), {}),
)
TRACE = Trace("torch", VERSIONS, "meta", OPS, (), (), ("fc", "odd"), ())
SIGHTED = tuple(Sighting(op, f"{op.layer}|{op.op.partition('.')[2]}", LIVE) for op in OPS)
LEDGER = Ledger(
    "flop_counter", "torch", FLOP, "meta", VERSIONS, 2 * M * K * N, (Entry("fc|mm", "fc", "aten.mm", 2 * M * K * N, 1),),
    SIGHTED, {}, (),
)  # fmt: skip
MACS_ONLY = Convention("macs", mac=1)
META = {
    "name": "m",
    "doc": "",
    "params": {},
    "notes": (),
    "layers": [["fc", (), "fc"], ["odd", (), "odd"]],
    "inputs": (),
}


def settled(convention: Convention, *traces: Trace) -> Answer:
    conventions = {**BUILT_IN, convention.name: convention}
    return settle(Collected(META, traces or (TRACE,), (LEDGER,)), Conventions(convention, conventions))


@pytest.mark.parametrize(("convention", "work"), [(MATMUL, 2 * M * K * N), (MACS_ONLY, M * K * N)])
def test_a_convention_that_weighs_nothing_unknown_is_complete(convention, work):
    result = settled(convention)
    (trace,) = result.traces
    assert (trace.complete, trace.state, trace.reason, trace.unknown) == (True, State.EXPLAINED, "", ())
    assert trace.totals == {"matmul": 2 * M * K * N} | {convention.name: work}
    (statement,) = result.statements
    assert (statement.to_total, statement.residual) == (work, 0)
    assert result.exit_code == 0
    (figure,) = verdict(result).figures
    assert figure.flops == work
    assert [u.op for u in trace.unweighed] == ["aten.igamma"]
    (note,) = trace.notes
    assert note.startswith("under all, textbook, this trace is incomplete: aten.igamma at layer odd: ")


@pytest.mark.parametrize(
    ("convention", "known"),
    [
        (ALL, 2 * M * K * N),
        (TEXTBOOK, M * (2 * K - 1) * N),  # a sum of K products is K - 1 adds
        (Convention("mine", mac=2, special=1), 2 * M * K * N),
    ],
)
def test_a_convention_that_weighs_what_is_unknown_is_incomplete(convention, known):
    result = settled(convention)
    (trace,) = result.traces
    assert (trace.complete, trace.state) == (False, State.UNEXPLAINED)
    assert trace.reason.startswith("the trace is incomplete: aten.igamma at layer odd: ")
    assert [(u.op, u.layer) for u in trace.unknown] == [("aten.igamma", "odd")]
    assert trace.totals == {"matmul": 2 * M * K * N}
    (statement,) = result.statements
    assert (statement.state, statement.to_total, statement.residual) == (State.NOT_COMPARABLE, None, None)
    assert result.exit_code == 1
    assert verdict(result).figures == ()
    assert {row.layer: dict(row.work) for row in result.layers} == {"fc": {"torch": known}, "odd": {}}


@pytest.mark.parametrize("cause", [None, Cause.OP_NOT_COUNTED])
def test_nothing_is_booked_for_what_is_unknown_and_weighed(cause):
    """A counter that counts 5 of an op of which a part is unknown: under `all` it is unknown how far it is off."""
    part = known_part(OPS[1])
    item = make_item(
        None, None, layer="odd", op="o", counted=Work(special=5), seen=1, ran=part.work, times=1, cause=cause,
        unknown=part.unknown,
    )  # fmt: skip
    assert book(item, FLOP, ALL) == []
    (booking,) = book(item, FLOP, MATMUL)
    assert (booking.cause, booking.amount) == (cause or Cause.OUTSIDE_CONVENTION, -5)


def test_an_op_of_no_known_component_is_incomplete_everywhere():
    solve = OPS[1]._replace(op="mine.solve")
    result = settled(MATMUL, TRACE._replace(ops=(OPS[0], solve)))
    (trace,) = result.traces
    assert not trace.complete
    assert trace.totals == {}
    assert trace.reason == "the trace is incomplete: mine.solve at layer odd: no work formula for mine.solve"


def test_integer_ops_are_listed_as_such():
    counted = OPS[2]._replace(op="mine.all_true", calls=3)
    (trace,) = settled(MATMUL, TRACE._replace(ops=(*OPS[:2], counted))).traces
    assert trace.integer_ops == {"mine.all_true": 3}


def test_traces_are_compared_where_both_are_complete():
    other = TRACE._replace(framework="tf", ops=(OPS[0],))
    align = Alignment([])
    for convention, state in ((MATMUL, State.EQUAL), (ALL, State.NOT_COMPARABLE)):
        books = books_of(gather_facts((other, TRACE), (), align), Conventions(convention))
        (between,) = books.statements
        assert between.state is state
    relu = OPS[0]._replace(id="d", op="aten.relu", layer="odd", inputs=OPS[0].outputs, outputs=OPS[0].outputs)
    traces = books_of(gather_facts((other._replace(ops=(OPS[0], relu)), TRACE), (), align), Conventions(MATMUL)).traces
    assert differing_components(traces) == []  # comparisons at layer odd: 12 on one side, unknown on the other


def test_a_table_by_phase_knows_its_convention():
    backward = OPS[0]._replace(id="d", phase=WEIGHT_GRADIENT)
    (trace,) = settled(MATMUL, TRACE._replace(ops=(*OPS, backward))).traces
    for convention, known in ((MATMUL, True), (ALL, False)):
        table = phase_table(trace, convention)
        assert table is not None
        assert table.total.known is known
        assert [row.layer for row in table.rows if not row.known] == ([] if known else ["odd"])


def test_json_has_a_total_where_there_is_one():
    for convention, total in ((MATMUL, 2 * M * K * N), (ALL, None)):
        result = settled(convention)
        written = to_dict(result)["traces"][0]
        assert written["complete"] is (total is not None)
        assert [u["op"] for u in written["unknown"]] == ([] if total else ["aten.igamma"])
        assert written["totals"] == {"matmul": 2 * M * K * N}


def test_a_gap_in_the_trace_itself_is_one_under_every_convention():
    trace = TRACE._replace(ops=OPS[:1], problems=(Problem("fc", "(thread)", "fc", "it ran unseen"),))
    (seen,) = settled(MATMUL, trace).traces
    assert not seen.complete
    assert seen.totals == {}
    assert "it ran unseen" in seen.reason


HEADS = Tensor((1, 2, M, K), "float32")
MASKED_ATTENTION = Op(
    "d", "aten.scaled_dot_product_attention", "fc", (HEADS, HEADS, HEADS, Tensor((M, M), "bool")), (HEADS,), {}
)  # fmt: skip


@pytest.mark.parametrize(
    ("convention", "trace", "asks"),
    [
        (ALL, TRACE, True),
        (MATMUL, TRACE._replace(problems=(Problem("fc", "aten.mm", "a", "how often it runs is not known"),)), False),
        (CAUSAL, TRACE._replace(ops=(*OPS, MASKED_ATTENTION)), False),
    ],
)
def test_a_formula_is_asked_for_where_one_can_be_given(convention: Convention, trace: Trace, asks: bool) -> None:
    """Not where how often an op ran is unknown, nor what its mask discards: a formula says neither."""
    answer = settled(convention, trace)
    (withheld,) = verdict(answer).withheld
    assert withheld.remedy.startswith(GIVE_FORMULAS) is asks
    assert (GIVE_FORMULAS in to_html(answer)) is asks
