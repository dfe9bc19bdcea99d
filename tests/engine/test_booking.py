"""The first add of a dot product, which a counter may save (2K - 1 for K terms) and a convention may save: booked once."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.bridge import make_item
from reconcile.core.causes import Cause
from reconcile.core.conventions import ALL, MATMUL, TEXTBOOK, Convention
from reconcile.core.records import FLOP
from reconcile.engine.booking import book, expected_amount
from reconcile.work import Work

M, K, N = 3, 5, 7
RAN = Work(mac=M * K * N, accumulators=M * N)
SAVED = M * N * (2 * K - 1)
WHOLE = M * N * 2 * K


def bookings(counted: Work, seen: int, times: int, convention: Convention) -> dict[Cause, int]:
    item = make_item(None, None, layer="a", op="product", counted=counted, seen=seen, ran=RAN, times=times)
    found = {booking.cause: booking.amount for booking in book(item, FLOP, convention)}
    assert expected_amount(item, FLOP) + sum(found.values()) == convention.flops(RAN) * times  # it always arrives
    return found


def test_a_product_at_2k_less_1_adds_so_much() -> None:
    item = make_item(None, None, layer="a", op="product", counted=RAN, seen=1, ran=RAN, times=1)
    assert expected_amount(item, FLOP) == SAVED


@pytest.mark.parametrize(
    ("counted", "convention", "booked"),
    [
        (RAN, MATMUL, {Cause.FIRST_ADD: WHOLE - SAVED}),
        (RAN, ALL, {Cause.FIRST_ADD: WHOLE - SAVED}),
        (RAN, TEXTBOOK, {}),
        (Work(mac=M * K * N), MATMUL, {}),
        (Work(mac=M * K * N), TEXTBOOK, {Cause.FIRST_ADD: SAVED - WHOLE}),
    ],
)
def test_the_first_add_is_booked_where_one_side_saves_it(
    counted: Work, convention: Convention, booked: dict[Cause, int]
) -> None:
    assert bookings(counted, 1, 1, convention) == booked


def test_what_a_loop_repeats_is_the_loop() -> None:
    """Of 4 steps one is counted: by the textbook both save their first adds, else those of the step are one cause more."""
    assert bookings(RAN, 1, 4, TEXTBOOK) == {Cause.LOOP_COUNTED_ONCE: 3 * SAVED}
    assert bookings(RAN, 1, 4, MATMUL) == {Cause.LOOP_COUNTED_ONCE: 3 * WHOLE, Cause.FIRST_ADD: WHOLE - SAVED}
    assert bookings(RAN, 2, 1, TEXTBOOK) == {Cause.RECOUNTED: -SAVED}
