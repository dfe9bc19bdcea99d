"""XLA's programs beside the equations of a trace, on records by hand: what is the compiler's, and what stays a residual.

tests/matrix/test_xla_programs.py runs what XLA itself does with loops, routines, experts, complex numbers and steps.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, MATMUL, Convention
from reconcile.core.records import FLOP, LIVE, Entry, Ledger, Op, Shape, Sighting, Tensor
from reconcile.core.results import Statement
from tests.adapters.counters import records_by_hand as by_hand

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
B, IN, OUT = 2, 5, 3
PRODUCT = 2 * B * IN * OUT
SUM = "(sum)"


def op(name: str, inputs: tuple[Shape, ...], output: Shape, layer: str = "a", calls: int = 1, **attrs: Any) -> Op:
    shapes = tuple(Tensor(shape, "float32") for shape in inputs)
    return Op(f"{name} in {layer} {attrs}", name, layer, shapes, (Tensor(output, "float32"),), attrs, calls)


def dot(layer: str = "a", inner: int = IN, before: bool = False) -> Op:
    """An instruction; ``before`` it is compiled."""
    attrs = {"lowered": True} if before else {}
    return op("hlo.dot", ((B, inner), (inner, OUT)), (B, OUT), layer, contracting=[1], primitive="dot_general", **attrs)


def ran(layer: str = "a", calls: int = 1, equations: int = 1) -> Op:
    """A product of the trace."""
    numbers = [[[1], [0]], [[], []]]
    return op(
        "lax.dot_general", ((B, IN), (IN, OUT)), (B, OUT), layer, calls, dimension_numbers=numbers, equations=equations
    )


def single(name: str, layer: str = "a", **attrs: Any) -> Op:
    return op(name, ((B, OUT), (B, OUT)), (B, OUT), layer, **attrs)


_RAN = ran()
CONVOLUTION = {
    "dimension_numbers": [[0, 3, 1, 2], [3, 2, 0, 1], [0, 3, 1, 2]],
    "feature_group_count": 1,
    "batch_group_count": 1,
}


def window(pad: int) -> dict[str, Any]:
    return {
        "size": [3, 3], "stride": [1, 1], "pad": [[pad, pad]] * 2, "lhs_dilate": [1, 1], "rhs_dilate": [1, 1],
    }  # fmt: skip


def convolution(size: int, pad: int, **attrs: Any) -> Op:
    """3 x 3 from 1 channel to 1, 4 x 4 outputs."""
    shapes: tuple[Shape, ...] = ((1, size, size, 1), (3, 3, 1, 1))
    return op("hlo.convolution", shapes, (1, 4, 4, 1), **CONVOLUTION, window=window(pad), **attrs)


PADDED = op(
    "lax.conv_general_dilated", ((1, 6, 6, 1), (3, 3, 1, 1)), (1, 4, 4, 1), dimension_numbers=CONVOLUTION["dimension_numbers"],
    lhs_dilation=[1, 1], rhs_dilation=[1, 1], padding=[[0, 0], [0, 0]], window_strides=[1, 1], feature_group_count=1,
    batch_group_count=1, equations=1,
)  # fmt: skip
DENSE, INSIDE = 2 * (4 * 3) ** 2, 2 * (4 * 3 - 2) ** 2


def statement(
    value: int, program: tuple[Op, ...], trace: tuple[Op, ...], counter: str = "xla@compiled", by: Convention = MATMUL
) -> Statement:
    sightings = tuple(Sighting(one, SUM, LIVE) for one in program)
    ledger = Ledger(
        counter, "jax", FLOP, "cpu", VERSIONS, value, (Entry(SUM, "", "cost_analysis", value, 1),), sightings, {}, ()
    )
    return by_hand.statement(ledger, *trace, by=by)


GROUPS, WHOLE = 3, Tensor((3,), "int32")
RAGGED = op(
    "lax.ragged_dot_general", ((B, IN), (GROUPS, IN, OUT)), (B, OUT), equations=1,
    ragged_dot_dimension_numbers=[[[[1], [1]], [[], []]], [0], [0]],
)  # fmt: skip
RAGGED = RAGGED._replace(inputs=(*RAGGED.inputs, WHOLE))


EXPLAINED: dict[str, tuple[int, tuple[Op, ...], tuple[Op, ...], dict[Cause, int]]] = {
    # name: (counted, program, trace, causes with their FLOPs)
    "the same": (PRODUCT, (dot(), dot(before=True)), (ran(),), {}),
    "its layer's name is lost": (PRODUCT, (dot(layer=""), dot(before=True)), (ran(),), {}),
    "two merged into one": (
        2 * PRODUCT,
        (dot(inner=2 * IN), dot(before=True), dot(before=True)._replace(id="second")),
        (ran(equations=2, calls=2),),
        {Cause.COMPILER_REWROTE: 2 * PRODUCT - 2 * PRODUCT},
    ),
    "two merged into one, in a loop": (
        2 * PRODUCT,
        (dot(inner=2 * IN), dot(before=True), dot(before=True)._replace(id="second")),
        (ran(equations=2, calls=14),),
        {Cause.COMPILER_REWROTE: 0, Cause.LOOP_COUNTED_ONCE: 12 * PRODUCT},
    ),
    "a multiplication in its place": (
        B * OUT,
        (single("hlo.multiply", primitive="dot_general"), dot(before=True)),
        (ran(),),
        {Cause.COMPILER_REWROTE: PRODUCT - B * OUT},
    ),
    "padding folded into the convolution": (
        INSIDE,
        (convolution(4, 1), convolution(6, 0, lowered=True)),
        (PADDED,),
        {Cause.PADDING_NOT_COUNTED: DENSE - INSIDE},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_the_compiler_changed(name: str) -> None:
    counted, program, trace, causes = EXPLAINED[name]
    found = statement(counted, program, trace)
    assert (found.residual, found.state in (State.EQUAL, State.EXPLAINED)) == (0, True), found.reason
    assert {cause: sum(a.amount for a in found.adjustments if a.cause is cause) for cause in causes} == causes
    assert {a.cause for a in found.adjustments if a.amount} <= set(causes)


OPEN: dict[str, tuple[int, tuple[Op, ...], tuple[Op, ...]]] = {
    # The program before compilation does not have the model's product either: it is unknown what the compiler did with it.
    "a product that never was in the program": (0, (), (ran(),)),
    "another product in the program": (2 * B * 4 * OUT, (dot(inner=4), dot(inner=4, before=True)), (ran(),)),
    "groups that are not multiplied": (PRODUCT, (dot(),), (RAGGED,)),
    "a product more than the model has": (2 * PRODUCT, (dot(), dot("b"), dot(before=True), dot("b", before=True)), (ran(),)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_what_nobody_can_say(name: str) -> None:
    counted, program, trace = OPEN[name]
    found = statement(counted, program, trace)
    assert found.residual == PRODUCT * len(trace) - counted
    assert found.state is State.UNEXPLAINED


ADDED = B * OUT
"""FLOPs of one addition."""
ADD, ADD_OF = single("hlo.add", primitive="add"), single("lax.add", equations=2, calls=2)
DROPPED = ADD._replace(id="dropped", attrs={"primitive": "add", "dropped": True})
BEFORE = ADD._replace(id="before", attrs={"primitive": "add", "lowered": True})


def test_an_operation_that_nobody_dropped_is_unexplained() -> None:
    """Neither JAX's text nor the program before compilation has one more of them."""
    counted, ran = PRODUCT + ADDED, (_RAN, ADD_OF)
    found = statement(counted, (dot(), ADD), ran, "xla@lowered", ALL)
    assert (found.residual, found.state) == (ADDED, State.UNEXPLAINED)
    found = statement(counted, (dot(), ADD, dot(before=True), BEFORE), ran, by=ALL)
    assert (found.residual, found.state) == (ADDED, State.UNEXPLAINED)
    found = statement(ADDED, (ADD, DROPPED), ran, "xla@lowered", ALL)
    assert (found.residual, found.state) == (PRODUCT, State.UNEXPLAINED)


def test_an_operation_that_the_compiler_removed_or_made() -> None:
    """One of two is left, the model's own: the other is the compiler's. Of three one is the compiler's."""
    before = (dot(before=True), BEFORE, BEFORE._replace(id="another"))
    found = statement(PRODUCT + ADDED, (dot(), ADD, *before), (_RAN, ADD_OF), by=ALL)
    assert (found.residual, found.by_cause()) == (0, {Cause.COMPILER_REWROTE: ADDED})
    three = tuple(ADD._replace(id=f"add{index}") for index in range(3))
    found = statement(PRODUCT + 3 * ADDED, (dot(), *three, *before), (_RAN, ADD_OF))
    assert found.by_cause() == {Cause.OUTSIDE_CONVENTION: -2 * ADDED, Cause.COMPILER_REWROTE: -ADDED}
    assert found.residual == 0


def test_parts_of_an_expanded_function_are_no_other_operation() -> None:
    """XLA has erfc in parts, multiplications among them: they are not taken for the model's own."""
    own = single("lax.mul", equations=1)
    erfc = op("lax.erfc", ((B, OUT),), (B, OUT), equations=1)
    parts = tuple(single("hlo.multiply", primitive="erfc")._replace(id=f"part{index}") for index in range(4))
    found = statement(5 * B * OUT, (single("hlo.multiply", primitive="mul"), *parts), (own, erfc), "xla@lowered", ALL)
    assert found.residual == 0
    assert Cause.COMPILER_REWROTE not in found.by_cause()


def test_a_custom_call_that_only_places_an_array() -> None:
    """XLA counts -1 for any custom call. What another one computes, nobody can say."""
    call = op("hlo.custom-call", ((B, OUT),), (B, OUT), target="Sharding")
    found = statement(PRODUCT - 2, (dot(), call, call._replace(id="other")), (ran(),), "xla@lowered")
    assert (found.residual, found.by_cause()) == (0, {Cause.FORMULA_DIFFERS: 2})
    found = statement(PRODUCT - 1, (dot(), call._replace(attrs={"target": "my_kernel"})), (ran(),), "xla@lowered")
    assert (found.residual, found.state) == (1, State.UNEXPLAINED)


def copies(count: int, before: bool = False) -> tuple[Op, ...]:
    return tuple(dot(before=before)._replace(id=f"copy{index}{before}") for index in range(count))


def routine() -> Op:
    """A factorisation whose single operations are unknown."""
    return op("lax.qr", ((B, OUT),), (B, OUT), equations=1)


def parts_of_a_routine() -> tuple[Op, ...]:
    """A call of a library, which XLA counts as -1, and a choice: JAX gives them names of their own."""
    called = single("hlo.custom-call", primitive="geqrf")
    return called, single("hlo.select", primitive="select_n")


def test_the_parts_of_a_library_s_routine() -> None:
    """They are weighed by no convention under which the trace is complete, and no product is among them."""
    trace, counted = (ran(), routine()), PRODUCT - 1 + B * OUT
    found = statement(counted, (dot(), *parts_of_a_routine()), trace, "xla@lowered")
    assert (found.residual, found.by_cause()) == (0, {Cause.OUTSIDE_CONVENTION: 1 - B * OUT})
    more = statement(counted + PRODUCT, (dot(), *parts_of_a_routine(), *copies(1)), trace, "xla@lowered")
    assert (more.residual, more.state) == (-PRODUCT, State.UNEXPLAINED)
    assert "reconcile does not know" in more.reason
    elsewhere = statement(
        counted, (dot(), *parts_of_a_routine()), (ran(), routine()._replace(layer="b")), "xla@lowered"
    )
    assert (elsewhere.residual, elsewhere.state) == (1 - B * OUT, State.UNEXPLAINED)
    whole = statement(counted, (dot(), *parts_of_a_routine()), trace, "xla@lowered", ALL)
    assert whole.state is State.NOT_COMPARABLE


def test_a_window_over_the_edge_is_whole_to_xla() -> None:
    """Windows of 3 at 4 places, padded by 1: they read 10 elements, and XLA counts 4 * 3 of them."""
    sides = {"window_strides": [1], "padding": [[1, 1]], "window_dilation": [1], "base_dilation": [1]}
    ran = op("lax.reduce_window_max", ((4,),), (4,), window_dimensions=[3], equations=1, **sides)
    met = op(
        "hlo.reduce-window", ((4,), ()), (4,), to_apply=["maximum"], primitive="reduce_window_max",
        window={"size": [3], "stride": [1], "pad": [[1, 1]]},
    )  # fmt: skip
    found = statement(4 * 2, (met,), (ran,), "xla@lowered", ALL)
    assert (found.residual, found.by_cause()) == (0, {Cause.FORMULA_DIFFERS: (10 - 4) - 4 * 2})
