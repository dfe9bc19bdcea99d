"""ultralytics-thop itself, in the environment that it needs: small networks, each with its number and the reason for it."""

from __future__ import annotations

import pytest

import reconcile
from reconcile.core.causes import Cause, State
from reconcile.core.results import Statement
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from tests.adapters.counters.in_environment import settled

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

NETS = "tests.adapters.counters.ultralytics_nets"
STEP = 3 * 4 * (3 + 4)  # multiply-adds of one step of a GRU from 3 to 4
GATES = 7 * 4
HEADS = 2 * (4 * 5 * 8 * 8 + 2 * 5 * 5 * 8)  # four projections and two products of 5 positions of width 8, twice
SOFTMAX = 2 * 4 * 5 * (3 * 5 - 1)

CASES = {
    # name: (MACs that it reports, multiply-adds that ran, causes beside those of a convention)
    "twice": (2 * 2 * 3 * 4, 2 * 2 * 3 * 4, set()),
    "transposed": (4 * 25 * 3 * 9, 4 * 25 * 3 * 9, set()),
    "products": (2 * 2 * 3 * 5, 3 * 2 * 3 * 5 + 2 * 5, {Cause.CALL_NOT_SEEN}),
    "named": (10 * (STEP + GATES), 10 * STEP, set()),
    "packed": ((5 + 3 + 1) * (STEP + GATES), (5 + 3 + 1) * STEP, set()),
    "doubled": (2 * 3 * 4, 2 * 2 * 3 * 4 + 2 * 4 * 4, {Cause.FORMULA_DIFFERS}),
    "attention": (HEADS + SOFTMAX, HEADS, set()),
    "attention_function": (HEADS + SOFTMAX, HEADS, set()),
    "mixed": (2 * 2 * 3 * 5, 2 * 2 * 3 * 5, set()),
    "integers": (2 * 3 * 5, 2 * 3 * 5, set()),
    "gelu": (2 * 3 * 4, 2 * 3 * 4, set()),
}


def explained(counter: str, name: str, reported: int, ran: int) -> Statement:
    """The statement without a residual of a counter that reports so many MACs, as its rules say."""
    ledger, statement = settled("ultralytics-thop", counter, f"{NETS}:{name}")
    assert (ledger.total, ledger.mismatches, ledger.unchecked) == (reported, (), 0), ledger.reason
    assert (statement.from_total, statement.to_total, statement.residual) == (2 * reported, 2 * ran, 0)
    return statement


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    reported, ran, causes = CASES[name]
    statement = explained("ultralytics-thop", name, reported, ran)
    assert {line.cause for line in statement.adjustments} - {Cause.OUTSIDE_CONVENTION} == causes


@pytest.mark.parametrize("convention", ["all", "textbook"])
@pytest.mark.parametrize("name", ["products", "attention_function"])
def test_it_closes_under_every_convention(name: str, convention: str) -> None:
    python = str(ensure(load()["ultralytics-thop"]))
    run = reconcile.run(torch=f"{NETS}:{name}", python=python, counters=("ultralytics-thop",), convention=convention)
    assert [statement.residual for statement in run.result.statements] == [0]


AREA = 64 * 128
CONV = AREA // 4 * 4 * 3 * 3 * 3  # half as high and half as wide: 4 channels of 3 x 3 x 3 products each
GET_FLOPS = {
    # An image of 32 x 32 and 8 times its count, with the last layer's 4 x 5 products 8 times.
    "classifier": (CONV + 8 * 4 * 5, CONV + 4 * 5, {Cause.EXTRAPOLATED: -2 * 7 * 4 * 5}),
    # An image of 64 x 64, the largest stride, and twice its count.
    "with_stride": (CONV + 2 * 4 * 5, CONV + 4 * 5, {Cause.EXTRAPOLATED: -2 * 4 * 5}),
    # 16 positions at 32 x 32, and 64 at 64 x 64.
    "pixels": (
        64 * 4 * 192 + 4 * 16 * 16 * 4,
        64 * 4 * 192 + 64 * 64 * 4,
        {Cause.EXTRAPOLATED: 2 * 4 * (64 * 64 - 4 * 16 * 16)},
    ),
    "one_size": (64 * 4 * 192 + 256 * 5, 64 * 4 * 192 + 256 * 5, {}),
}


@pytest.mark.parametrize("name", GET_FLOPS)
def test_get_flops_multiplies_by_the_area(name: str) -> None:
    reported, ran, causes = GET_FLOPS[name]
    statement = explained("ultralytics-thop@get_flops", name, reported, ran)
    assert {line.cause: line.amount for line in statement.adjustments} == causes


@pytest.mark.parametrize(
    ("name", "reason"), [("uneven", "not a whole number"), ("two_images", "one image"), ("twice", "one image")]
)
def test_get_flops_refuses_other_inputs(name: str, reason: str) -> None:
    ledger, _ = settled("ultralytics-thop", "ultralytics-thop@get_flops", f"{NETS}:{name}")
    assert ledger.state is State.NOT_COMPARABLE
    assert reason in ledger.reason
