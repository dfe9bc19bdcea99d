"""For every cause, a ledger that it explains, and traces that lie about an op of it: nothing is then exact or explained.

A lie is the trace without an op that the counter met, with that op on other tensors, or in another number of calls.  Hand-made
records, no framework.  A new cause without a case here fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconcile.adapters.counters.module_work import own_work
from reconcile.core.causes import Cause, Setting, State
from reconcile.core.conventions import ALL, BUILT_IN, MATMUL, TEXTBOOK, Convention, Conventions
from reconcile.core.records import (
    DEAD,
    DUPLICATE,
    FLOP,
    INITIALIZER,
    LIVE,
    MAC,
    RUN_STATS_TRUNCATED,
    Entry,
    Ledger,
    Op,
    Sighting,
    Trace,
)
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.engine.verdict import verdict
from tests.adapters.counters import test_float32_sums as test_float32
from tests.adapters.counters.records_by_hand import META, tensor

TESTS = Path(__file__).parents[2]
VERSIONS = {
    "torch": "2.13.0", "fvcore": "0.1.5.post20221221", "thop": "0.1.1.post2209072238", "tensorflow": "2.21.0",
    "ptflops": "0.7.5", "ultralytics-thop": "2.2.3",
}  # fmt: skip
B, IN, OUT = 2, 5, 3
MACS = B * IN * OUT
MISSING, WIDER, OFTENER = "missing", "wider", "oftener"
EVERY = (MISSING, WIDER, OFTENER)


@dataclass(frozen=True)
class Case:
    """A ledger, the ops that ran, the one of them that the lies are about, and the lies that this counter can see through."""

    ledger: Ledger
    ops: tuple[Op, ...]
    about: str
    convention: Convention = MATMUL
    lies: tuple[str, ...] = EVERY
    untaken: tuple[str, ...] = ()
    other: Trace | None = None

    def traces(self, ops: tuple[Op, ...]) -> tuple[Trace, ...]:
        versions = {"torch": VERSIONS["torch"]}
        layers = tuple(dict.fromkeys(op.layer for op in ops))
        made = Trace(self.ledger.framework, versions, "meta", ops, (), self.untaken, layers, ())
        return (made,) if self.other is None else (self.other, made)

    def result(self, ops: tuple[Op, ...]) -> Answer:
        conventions = {**BUILT_IN, self.convention.name: self.convention}
        return settle(Collected(META, self.traces(ops), (self.ledger,)), Conventions(self.convention, conventions))


def lying(case: Case) -> Iterator[tuple[str, tuple[Op, ...]]]:
    """The lies about that op, with their names."""
    (op,) = (op for op in case.ops if op.id == case.about)
    others = tuple(x for x in case.ops if x is not op)
    twice = [t._replace(shape=t.shape and (2 * (t.shape[0] or 1), *t.shape[1:])) for t in (*op.inputs, *op.outputs)]
    wider = op._replace(inputs=(twice[0], *op.inputs[1:]), outputs=tuple(twice[len(op.inputs) :]))
    made = {MISSING: others, WIDER: (*others, wider), OFTENER: (*others, op._replace(calls=op.calls + 1))}
    for name in case.lies:
        yield name, made[name]


# PyTorch: counters of ops, and thop.


def mm(name: str = "aten.mm", layer: str = "a", id: str = "mm") -> Op:
    return Op(id, name, layer, (tensor(B, IN), tensor(IN, OUT)), (tensor(B, OUT),), {})


MV = Op("mv", "aten.mv", "a", (tensor(B, IN), tensor(IN)), (tensor(B),), {})
ADDMM = Op("mm", "aten.addmm", "a", (tensor(B, OUT), tensor(B, IN), tensor(IN, OUT)), (tensor(B, OUT),), {})


def by_ops(counter: str, value: int, *sighted: tuple[Op, str]) -> Ledger:
    sightings = tuple(Sighting(op, f"{op.layer}|{op.op.partition('.')[2]}", role) for op, role in sighted)
    entries = (Entry(sightings[0].entry, sightings[0].op.layer, sightings[0].op.op, value, 1),) if value else ()
    unit = FLOP if counter == "flop_counter" else MAC
    return Ledger(counter, "torch", unit, "cpu", VERSIONS, value, entries, sightings, {}, ())


def thop(value: int, module: Op, copies: int = 1) -> Ledger:
    root = Op("r", "models.Net", "", (tensor(B, IN),), (tensor(B, OUT),), {"bases": []})
    sightings = (Sighting(root, "(root)"), Sighting(module, module.layer, LIVE, copies))
    entries = (Entry(module.layer, module.layer, module.op, value, 1),)
    return Ledger("thop", "torch", MAC, "cpu", VERSIONS, value, entries, sightings, {}, ())


LINEAR = Op(
    "m", "torch.nn.modules.linear.Linear", "a", (tensor(B, IN),), (tensor(B, OUT),),
    {"weight": [OUT, IN], "bias": None, "bases": [], "in_features": IN, "out_features": OUT},
)  # fmt: skip


def averaged() -> Ledger:
    """A linear layer on B samples, which its hook counts and the total divides: by the first dimension of the input, B."""
    call = Sighting(LINEAR._replace(id="call0"), "a")
    ran = Sighting(mm()._replace(within=("call0",)), "")
    divides = Sighting(Op("average", "ptflops.average", "", (tensor(B, IN),), (), {"batch": B}), "average")
    entries = (Entry("a", "a", LINEAR.op, MACS, 1), Entry("average", "", "ptflops.average", IN * OUT - MACS, 1))
    return Ledger("ptflops@pytorch", "torch", MAC, "cpu", VERSIONS, IN * OUT, entries, (call, ran, divides), {}, ())


def multiplied() -> Ledger:
    """A linear layer that a smaller image runs as the full one does, counted once for each of the four that fit into it."""
    root = Op("r", "models.Net", "", (tensor(B, IN),), (tensor(B, OUT),), {"bases": []})
    small = (Sighting(root, "(root)", LIVE, 4), Sighting(LINEAR, "a", LIVE, 4))
    full = (Sighting(root, "(root)", LIVE, 0), Sighting(LINEAR, "a", LIVE, 0))
    entries = (Entry("a", "a", LINEAR.op, 4 * MACS, 1),)
    counter = "ultralytics-thop@get_flops"
    return Ledger(counter, "torch", MAC, "cpu", VERSIONS, 4 * MACS, entries, (*small, *full), {}, ())


SOFTMAX = Op(
    "m", "torch.nn.modules.activation.Softmax", "a", (tensor(B, IN),), (tensor(B, IN),), {"dim": 1, "bases": []}
)
SOFTMAX_RAN = Op("s", "aten._softmax", "a", (tensor(B, IN),), (tensor(B, IN),), {"dim": 1})
SOFTMAX_COUNTED = B * (
    2 * IN + IN - 1
)  # thop: exponentials and divisions, and the adds of a sum (thop/vision/basic_hooks.py)

# TensorFlow: a static graph, and one that ran.


def node(calls: int = 1, id: str = "a/MatMul", rows: int | None = B, **fields: object) -> Op:
    attrs = {"transpose_a": False, "transpose_b": False, "T": 1}
    made = Op(id, "MatMul", "a", (tensor(rows, IN), tensor(IN, OUT)), (tensor(rows, OUT),), attrs, calls)
    return made._replace(**fields)


def profiled(counter: str, *sighted: tuple[Op, str, int], notes: tuple[str, ...] = ()) -> Ledger:
    entries = tuple(Entry(op.id, op.layer, op.op, value, op.calls) for op, _, value in sighted if value)
    sightings = tuple(Sighting(op, op.id, role) for op, role, _ in sighted)
    total = sum(entry.value for entry in entries)
    return Ledger(counter, "tf", FLOP, "cpu", VERSIONS, total, entries, sightings, {}, notes)


STATIC, RAN = "tf.profiler@frozen", "tf.profiler@runmeta"
LIVE_NODE = (node(2), LIVE, 2 * 2 * MACS)


def aside(role: str) -> Case:
    """A second node with this role, which the trace does not have."""
    return Case(profiled(RAN, LIVE_NODE, (node(id="other"), role, 2 * MACS)), (node(2),), "a/MatMul")


INTEGERS = (tensor(B, dtype="int32"),)
COUNTER = Op("i", "Add", "a", INTEGERS * 2, INTEGERS, {})
RELU = Op("relu", "aten.relu", "a", (tensor(B, OUT),), (tensor(B, OUT),), {})
TF_TRACE = Trace("tf", {"tensorflow": "2.21.0"}, "graph", (node(),), (), (), ("a",), ())

ROUNDING, ROUNDING_RAN = test_float32.convolution("a", test_float32.A)
ROUNDED = test_float32.as_float32(3 * test_float32.A)

CASES = {
    Cause.DEAD_OP: aside(DEAD),
    Cause.UNTAKEN_BRANCH: Case(
        profiled(RAN, LIVE_NODE, (node(id="other"), LIVE, 2 * MACS)), (node(2),), "a/MatMul", untaken=("other",)
    ),
    Cause.INITIALIZER: aside(INITIALIZER),
    Cause.DUPLICATE_GRAPH: aside(DUPLICATE),
    Cause.INTEGER_OP: Case(profiled(RAN, LIVE_NODE, (COUNTER, LIVE, B)), (node(2), COUNTER), "a/MatMul"),
    Cause.BODY_NOT_ENTERED: Case(
        profiled(RAN, LIVE_NODE, (Op("call", "PartitionedCall", "a", (), (), {}), LIVE, 0)),
        (node(2), node(id="call/MatMul", within=("call",))), "a/MatMul",
    ),
    # The number of rows is unknown to the counter, and it does not count: of the inner axis it knows the size.
    Cause.SHAPE_UNKNOWN: Case(
        profiled(STATIC, (node(rows=None, inputs=(tensor(B, None), tensor(IN, OUT))), LIVE, 0)), (node(),), "a/MatMul",
        lies=(WIDER,),
    ),
    Cause.OP_NOT_COUNTED: Case(by_ops("flop_counter", 0, (MV, LIVE)), (MV,), "mv"),
    Cause.CALL_NOT_SEEN: Case(by_ops("fvcore", 0, (mm("aten.matmul"), DEAD)), (mm(),), "mm"),
    # A node of a static graph stands there once, however often it ran.
    Cause.LOOP_COUNTED_ONCE: Case(
        profiled(STATIC, (node(), LIVE, 2 * MACS)), (node(7),), "a/MatMul", lies=(MISSING, WIDER)
    ),
    Cause.RECOUNTED: Case(thop(2 * MACS, LINEAR, copies=2), (mm(),), "mm"),
    Cause.EXTRAPOLATED: Case(multiplied(), (mm(),), "mm"),
    Cause.NON_MAC_DOUBLED: Case(thop(SOFTMAX_COUNTED, SOFTMAX), (SOFTMAX_RAN,), "s", ALL),
    Cause.FORMULA_DIFFERS: Case(by_ops("flop_counter", 2 * MACS, (ADDMM, LIVE)), (ADDMM,), "mm", ALL),
    Cause.FIRST_ADD: Case(by_ops("flop_counter", 2 * MACS, (mm(), LIVE)), (mm(),), "mm", TEXTBOOK),
    Cause.WEIGHT_DIFFERS: Case(by_ops("flop_counter", 2 * MACS, (mm(), LIVE)), (mm(),), "mm", Convention("heavy", mac=3)),
    Cause.OUTSIDE_CONVENTION: Case(thop(SOFTMAX_COUNTED, SOFTMAX), (SOFTMAX_RAN,), "s"),
    # Run statistics that stopped are a lower bound of the calls.
    Cause.RUN_STATS_TRUNCATED: Case(
        profiled(RAN, (node(2), LIVE, 2 * 2 * MACS), notes=(RUN_STATS_TRUNCATED,)), (node(5),), "a/MatMul",
        lies=(MISSING, WIDER),
    ),
    Cause.FLOAT32_ROUNDING: Case(
        test_float32.ledger({"a": ROUNDED}, [ROUNDING], ROUNDED, test_float32.OLD), (ROUNDING_RAN,), "op:a"
    ),
    Cause.AVERAGED_OVER_BATCH: Case(averaged(), (mm(),), "mm"),
    Cause.REAL_WORK_DIFFERS: Case(
        by_ops("flop_counter", 2 * MACS, (mm(), LIVE), (MV, LIVE)), (mm(), MV), "mm", other=TF_TRACE
    ),
    Cause.IMPLEMENTATION_DIFFERS: Case(
        by_ops("flop_counter", 2 * MACS, (mm(), LIVE), (RELU, LIVE)), (mm(), RELU), "relu", ALL, other=TF_TRACE
    ),
}  # fmt: skip


def find_untested_causes() -> list[str]:
    """Causes without a case here; of those about which no trace can lie here, the ones that no other test names."""
    lied_about = {Setting.MODEL, Setting.TWO_MODELS}
    words = {
        word
        for path in TESTS.rglob("test_*.py")
        if path.parent.name not in {"home", "pages"} and path != Path(__file__)
        for word in re.findall(r"[\w-]+", path.read_text(encoding="utf-8"))
    }
    tested = {c for c in Cause if (c in CASES if c.record.setting in lied_about else {c.name, c.value} & words)}
    return [cause.value for cause in Cause if cause not in tested]


def test_every_cause_has_a_case() -> None:
    assert find_untested_causes() == []


def own(result: Answer, counter: str):
    (statement,) = (s for s in result.statements if s.from_ == counter)
    return statement


@pytest.mark.parametrize("cause", CASES, ids=lambda cause: cause.value)
def test_the_true_trace_is_explained_by_the_cause(cause):
    case = CASES[cause]
    result = case.result(case.ops)
    booked = {line.cause for statement in result.statements for line in statement.adjustments}
    assert cause in booked
    assert [s.reason for s in result.statements if s.residual] == []


@pytest.mark.parametrize("cause", CASES, ids=lambda cause: cause.value)
def test_a_lying_trace_is_unexplained_and_confirms_nothing(cause):
    case = CASES[cause]
    for lie, ops in lying(case):
        result = case.result(ops)
        statement = own(result, case.ledger.counter)
        assert statement.state is State.UNEXPLAINED, lie
        assert {r.layer for r in statement.residuals} == ({"a"} if statement.residual else set()), lie
        assert "the model ran other ops here" in statement.reason or "did not run" in statement.reason, lie
        assert lie != MISSING or Cause.FORMULA_DIFFERS not in statement.by_cause()
        assert result.exit_code == 1, lie
        said = verdict(result)
        assert case.ledger.counter not in said.exact, lie
        named = [f.sentence for f in said.figures if case.ledger.framework in f.frameworks]
        assert named == [], lie


@pytest.mark.parametrize("role", [DEAD, INITIALIZER, DUPLICATE])
def test_a_node_that_ran_is_not_outside_of_the_model(role):
    case = aside(role)
    result = case.result((*case.ops, node(id="other")))
    statement = own(result, RAN)
    assert (statement.state, statement.adjustments) == (State.UNEXPLAINED, ())
    assert f"other ran, but in the counter's graph it is {role}" in statement.reason


def test_a_node_that_the_counter_left_out_is_missed_in_the_trace():
    """Outputs depend on it, it has no rule, and the trace does not have it: both totals are too small by its work."""
    pooled = Op("p", "Tanh", "a", (tensor(B, OUT),), (tensor(B, OUT),), {})
    case = Case(profiled(STATIC, (node(), LIVE, 2 * MACS), (pooled, LIVE, 0)), (node(), pooled), "p", ALL)
    assert own(case.result(case.ops), STATIC).residual == 0
    statement = own(case.result((node(),)), STATIC)
    assert (statement.state, statement.residual) == (State.UNEXPLAINED, -B * OUT)
    assert {c.value: n for c, n in statement.by_cause().items()} == {"op-not-counted": B * OUT}


@pytest.mark.parametrize("convention", [MATMUL, ALL])
def test_a_called_module_of_which_nothing_ran_has_no_formula(convention):
    """Three linear layers on threads that the trace did not follow."""
    modules = [LINEAR._replace(layer=f"layers.{i}") for i in range(3)]
    ledgers = [thop(MACS, module) for module in modules]
    together = ledgers[0]._replace(
        total=3 * MACS,
        entries=tuple(e for led in ledgers for e in led.entries),
        sightings=(ledgers[0].sightings[0], *(led.sightings[1] for led in ledgers)),
    )
    statement = own(Case(together, (), "", convention).result(()), "thop")
    assert statement.adjustments == ()
    assert statement.residual == -2 * 3 * MACS
    assert [r.layer for r in statement.residuals] == ["layers.0", "layers.1", "layers.2"]
    missing = [
        r.reason
        for r in statement.residuals
        if f"at {r.layer}, torch.nn.modules.linear.Linear was called" not in r.reason
    ]
    assert missing == []


def test_a_module_of_which_we_have_no_formula_either():
    """Its weight is not in the record: its work is unknown, and nothing ran."""
    unknown = LINEAR._replace(attrs={**LINEAR.attrs, "weight": None})
    assert own_work(unknown) is None
    case = Case(thop(MACS, unknown), (), "")
    statement = own(case.result(()), "thop")
    assert statement.state is State.UNEXPLAINED
    assert Cause.FORMULA_DIFFERS not in statement.by_cause()
