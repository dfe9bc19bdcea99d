"""XLA's programs beside the equations of a trace, on records by hand: what is the compiler's, and what stays a residual."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, BUILT_IN, MATMUL, Convention
from reconcile.core.records import FLOP, LIVE, Entry, Ledger, Op, Shape, Sighting, Tensor, Trace
from reconcile.core.results import Statement
from reconcile.engine.settle import Collected, settle

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
META = {"name": "m", "doc": "", "params": {}, "notes": (), "layers": (), "inputs": ()}
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
    taken = Trace("jax", VERSIONS, "cpu", trace, (), (), tuple(dict.fromkeys(one.layer for one in trace)), ())
    (found,) = settle(Collected(META, (taken,), (ledger,)), by, BUILT_IN).statements
    return found


EXPLAINED: dict[str, tuple[int, tuple[Op, ...], tuple[Op, ...], dict[Cause, int]]] = {
    # name: (counted, program, trace, causes with their FLOPs)
    "the same": (PRODUCT, (dot(), dot(before=True)), (ran(),), {}),
    "its layer's name is lost": (PRODUCT, (dot(layer=""), dot(before=True)), (ran(),), {}),
    "a loop's body": (PRODUCT, (dot(), dot(before=True)), (ran(calls=7),), {Cause.LOOP_COUNTED_ONCE: 6 * PRODUCT}),
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
    # The program before compilation has not the model's product either: nobody knows what the compiler did with it.
    "a product that never was in the program": (0, (), (ran(),)),
    "another product in the program": (2 * B * 4 * OUT, (dot(inner=4), dot(inner=4, before=True)), (ran(),)),
    "a product more than the model has": (2 * PRODUCT, (dot(), dot("b"), dot(before=True), dot("b", before=True)), (ran(),)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_what_nobody_can_say(name: str) -> None:
    counted, program, trace = OPEN[name]
    found = statement(counted, program, trace)
    assert found.residual == PRODUCT * len(trace) - counted
    assert found.state is State.UNEXPLAINED


def test_a_program_before_compilation_may_lack_single_operations_and_no_products() -> None:
    """x + 0 is dropped where JAX hands the program over."""
    added = single("lax.add", equations=1)
    found = statement(PRODUCT, (dot(),), (ran(), added), "xla@lowered", ALL)
    assert (found.residual, found.by_cause()[Cause.COMPILER_REWROTE]) == (0, B * OUT)
    found = statement(B * OUT, (single("hlo.add", primitive="add"),), (ran(), added), "xla@lowered", ALL)
    assert (found.residual, found.state) == (PRODUCT, State.UNEXPLAINED)


def test_parts_of_an_expanded_function_are_no_other_operation() -> None:
    """XLA has erfc in parts, multiplications among them: they are not taken for the model's own."""
    own = single("lax.mul", equations=1)
    erfc = op("lax.erfc", ((B, OUT),), (B, OUT), equations=1)
    parts = tuple(single("hlo.multiply", primitive="erfc")._replace(id=f"part{index}") for index in range(4))
    found = statement(5 * B * OUT, (single("hlo.multiply", primitive="mul"), *parts), (own, erfc), "xla@lowered", ALL)
    assert found.residual == 0
    assert Cause.COMPILER_REWROTE not in found.by_cause()
