"""What a bridge takes as evidence that a counter and the trace looked at the same run: hand-made records, no framework."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.module_work import own_work
from reconcile.adapters.counters.thop.rules import BOOK
from reconcile.core.causes import Cause
from reconcile.core.conventions import ALL
from reconcile.core.records import FLOP, LIVE, MAC, Entry, Ledger, Op, Sighting
from reconcile.work import Work, work_of
from tests.adapters.counters.records_by_hand import causes, reconciled, tensor

VERSIONS = {"torch": "2.13.0", "fvcore": "0.1.5.post20221221", "thop": "0.1.1.post2209072238"}
B, IN, OUT = 2, 5, 3
OTHER = "the model ran other ops here under "


def product(layer: str, calls: int = 1, name: str = "aten.mm", rows: int = B) -> Op:
    return Op(f"{layer}:{name}", name, layer, (tensor(rows, IN), tensor(IN, OUT)), (tensor(rows, OUT),), {}, calls)


def relu(layer: str, calls: int = 1) -> Op:
    return Op(f"{layer}:relu", "aten.relu", layer, (tensor(B, OUT),), (tensor(B, OUT),), {}, calls)


def linear(calls: int = 1, rows: int = B, **attrs: object) -> Op:
    said = {"in_features": IN, "out_features": OUT, "weight": [OUT, IN], "bias": None, "bases": [], "packed_batch": 0}
    name = "torch.nn.modules.linear.Linear"
    return Op("m", name, "m", (tensor(rows, IN),), (tensor(rows, OUT),), {**said, **attrs}, calls)


def root() -> Sighting:
    return Sighting(Op("r", "models.Net", "", (tensor(B, IN),), (tensor(B, OUT),), {"bases": []}), "(root)")


def by_ops(counter: str, *sighted: Sighting, **values: int) -> Ledger:
    """A ledger whose entries are layers, one op each."""
    unit = FLOP if counter == "flop_counter" else MAC
    entries = tuple(Entry(f"{layer}|mm", layer, "aten.mm", value, 1) for layer, value in values.items())
    return Ledger(counter, "torch", unit, "cpu", VERSIONS, sum(values.values()), entries, sighted, {}, ())


def met(op: Op, role: str = LIVE) -> Sighting:
    return Sighting(op, f"{op.layer}|{op.op.partition('.')[2]}", role)


def thop(value: int, *sighted: Op, **versions: str) -> Ledger:
    entry = Entry("m", "m", "torch.nn.modules.linear.Linear", value, sum(op.calls for op in sighted))
    sightings = (root(), *(Sighting(op, "m") for op in sighted))
    return Ledger(
        "thop", "torch", MAC, "cpu", {**VERSIONS, **versions}, value, (entry,) if value else (), sightings, {}, ()
    )


ONE = B * IN * OUT


# Counters of ops.


@pytest.mark.parametrize("counter", ["flop_counter", "fvcore"])
def test_an_op_with_a_rule_that_was_not_met_is_unexplained(counter: str) -> None:
    found = reconciled(by_ops(counter), product("a"))
    assert found.adjustments == ()
    (residual,) = found.residuals
    assert (residual.layer, residual.amount) == ("a", 2 * ONE)
    assert residual.reason.startswith(OTHER + counter)
    assert "at a, aten.mm (2, 5) x (5, 3) is in the trace" in residual.reason


def test_an_op_that_was_not_met_is_unexplained_where_it_counts() -> None:
    """fvcore has no rule for a product by a vector, and one for the matmul it would have met: no rule is no evidence."""
    op = Op("a:mv", "aten.mv", "a", (tensor(OUT, IN), tensor(IN)), (tensor(OUT),), {})
    (residual,) = reconciled(by_ops("fvcore"), op).residuals
    assert residual.amount == 2 * IN * OUT
    assert not reconciled(by_ops("fvcore"), relu("a")).residuals  # nothing of it counts
    assert reconciled(by_ops("fvcore"), relu("a"), convention=ALL).residuals


def test_the_same_work_in_other_ops_is_met() -> None:
    """A linear layer as one node: what the counter counts of it and what ran are both at hand."""
    weight = tensor(OUT, IN)
    node = Op("n", "aten.linear", "a", (tensor(B, IN), weight), (tensor(B, OUT),), {"bias": None})
    ledger = by_ops("fvcore", met(node))
    entry = Entry("a|linear", "a", "linear", ONE, 1)
    assert causes(reconciled(ledger._replace(entries=(entry,), total=ONE), product("a"))) == {}


def test_one_op_holds_modules_if_it_does_as_many_products() -> None:
    """A fused op without a rule stands for the modules below it: as many multiply-adds, or they ran otherwise."""
    fused = Op("f", "aten._addmm_activation", "", (tensor(OUT), tensor(B, IN), tensor(IN, OUT)), (tensor(B, OUT),), {})
    assert work_of(fused).mac == ONE
    ledger = by_ops("flop_counter", met(fused))
    found = reconciled(ledger, product("a"))
    assert causes(found) == {Cause.OP_NOT_COUNTED: 2 * ONE}
    (evidence,) = found.adjustments[0].evidence
    assert evidence.formula.startswith("ran inside of aten._addmm_activation: ")
    assert reconciled(ledger, product("a", 2)).residuals
    assert reconciled(ledger, product("a"), product("b")).residuals


def test_code_of_pythons_own_holds_what_ran_in_it() -> None:
    node = Op("p", "prim.PythonOp.Mine", "", (tensor(B, IN),), (tensor(B, OUT),), {})
    assert causes(reconciled(by_ops("fvcore", met(node)), product("a"))) == {Cause.OP_NOT_COUNTED: 2 * ONE}
    unknown = node._replace(op="aten.nobody_knows")  # an operator calls no module
    assert reconciled(by_ops("fvcore", met(unknown)), product("a")).residuals


# thop.


def test_a_module_that_was_not_called_is_no_functional_call() -> None:
    (residual,) = reconciled(thop(0), product("m")).residuals
    assert residual.reason.startswith(OTHER + "thop")
    assert causes(reconciled(thop(0), product(""))) == {Cause.CALL_NOT_SEEN: 2 * ONE}  # the root's own forward was seen
    assert causes(reconciled(thop(0, keras="3.15.0"), product("m"))) == {Cause.CALL_NOT_SEEN: 2 * ONE}


def test_the_work_of_a_hook_is_told_apart_from_the_module() -> None:
    more = product("m", name="aten.matmul")
    found = reconciled(thop(ONE, linear(hooks=1)), product("m"), more)
    assert causes(found) == {Cause.CALL_NOT_SEEN: 2 * ONE}
    (evidence,) = found.adjustments[0].evidence
    assert evidence.formula == "a functional call in a hook of torch.nn.modules.linear.Linear: thop hooks modules only"


def test_below_a_module_that_thop_counts_it_does_not_look() -> None:
    assert causes(reconciled(thop(ONE, linear()), product("m"), product("m.inner"))) == {Cause.CALL_NOT_SEEN: 2 * ONE}


def test_every_module_that_thop_counts_has_a_formula_of_ours() -> None:
    x = tensor(2, 4, 6, 6)
    attrs = {"weight": None, "bias": None, "kernel_size": 2, "dim": 1, "normalized_shape": [6], "groups": 1}
    rest = {"track_running_stats": True, "mode": "bilinear", "nonlinearity": "tanh", "input_size": 6, "hidden_size": 6}
    deep = {"num_layers": 1, "bidirectional": False, "batch_first": False, "in_channels": 4, "in_features": 6}
    for rule in BOOK.rules():
        if rule.formula == "0" or rule.op == "thop.float32":
            continue
        weight = [4, 4, 2, 2] if "Conv" in rule.op else [5, 6] if "Linear" in rule.op else None
        pooled = tensor(*x.shape[:2], 3, 3)
        one = x if not rule.op.endswith("1d") else tensor(2, 4, 6)
        op = Op("m", rule.op, "m", (one,), (pooled if one is x else tensor(2, 4, 3),), {**attrs, **rest, **deep})
        op = op._replace(attrs={**op.attrs, "weight": weight})
        assert own_work(op), rule.id


@pytest.mark.parametrize(
    ("name", "settings", "x", "out", "macs"),
    [
        # T 5, B 2, I 4, H 3: three gates of inputs and state; two directions; the second layer takes both.
        ("rnn.GRU", {"num_layers": 1}, (5, 2, 4), (5, 2, 3), 5 * 2 * 3 * 3 * (4 + 3)),
        ("rnn.GRU", {"num_layers": 2, "bidirectional": True}, (5, 2, 4), (5, 2, 6), 10 * 18 * (4 + 3 + 6 + 3)),
        # With a projection to 2, the state has 2, and each step 3 x 2 products more.
        ("rnn.LSTM", {"num_layers": 1, "proj_size": 2}, (5, 2, 4), (5, 2, 2), 10 * (12 * (4 + 2) + 3 * 2)),
        ("rnn.RNN", {"num_layers": 1}, (5, 2, 4), (5, 2, 3), 5 * 2 * 3 * (4 + 3)),
        ("rnn.LSTMCell", {}, (2, 4), (2, 3), 2 * 12 * (4 + 3)),
        # One image without a batch, 4 -> 6 channels by 3 x 3 in two groups; transposed: every input meets the kernel.
        ("conv.Conv2d", {"weight": [6, 2, 3, 3]}, (4, 9, 7), (6, 7, 5), 6 * 7 * 5 * 2 * 9),
        ("conv.ConvTranspose2d", {"weight": [4, 6, 3, 3]}, (2, 4, 5, 5), (2, 6, 7, 7), 2 * 4 * 25 * 6 * 9),
        ("linear.Linear", {"weight": [3, 5]}, (2, 7, 5), (2, 7, 3), 2 * 7 * 5 * 3),
    ],
)
def test_own_work_of_a_module(name, settings, x, out, macs) -> None:
    plain = {"input_size": 4, "hidden_size": 3, "bias": None, "bidirectional": False, "nonlinearity": "tanh"}
    attrs = {**plain, "batch_first": False, "packed_batch": 0, **settings}
    work = own_work(Op("m", f"torch.nn.modules.{name}", "m", (tensor(*x),), (tensor(*out),), attrs))
    assert isinstance(work, Work)
    assert work.mac == macs


def test_own_work_of_another_class_or_without_its_input_is_not_known() -> None:
    assert own_work(root().op) is None
    assert own_work(linear()._replace(inputs=())) is None
    assert own_work(linear()) is not None
