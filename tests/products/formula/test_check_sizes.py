"""A polynomial is printed only if every size of its range has its count, and so is a pattern: branches on a size are found."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import pytest

from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import MAC, Entry, Ledger, Op, Tensor, Trace
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.launch.request import Point
from reconcile.products.formula.check_sizes import MOST, points, size
from reconcile.products.formula.fit import Take
from reconcile.products.formula.formula import Formula, formula
from reconcile.products.formula.report import describe_checks, describe_formula
from reconcile.products.formula.variables import Template, read_variables
from reconcile.work import load
from tests.products.decode.data import META

Rows = Callable[[int], int]
"""The rows of a product with a weight of 4 x 5 at a size."""


def of_rows(rows: Rows, rests: Rows | None = None, reported: Rows | None = None) -> tuple[Take, list[bool]]:
    """Runs a layer ``a`` with ``rows`` rows, a transposition for each of ``rests``, and a counter with its own total; and a list
    that says of each run whether the counter ran."""
    load()
    counted = []

    def product(n: int) -> list[Op]:
        def tensor(*shape: int) -> Tensor:
            return Tensor(shape, "float32")

        views = rests(n) if rests else 0
        idle = [Op("t", "aten.t", "a", (tensor(4, 5),), (tensor(5, 4),), {}, views)] if views else []
        product = Op("mm", "aten.mm", "a", (tensor(rows(n), 4), tensor(4, 5)), (tensor(rows(n), 5),), {})
        return [*idle, product]

    def run(point: Point, counting: bool) -> tuple[Collected, Answer]:
        counted.append(counting)
        n = math.prod(point.inputs[0].shape[:-1])
        trace = Trace("torch", {"torch": "2.13.0"}, "meta", tuple(product(n)), (), (), ("a",), ())
        value = (reported or (lambda n: 20 * rows(n)))(n)
        entries = (Entry("a", "a", "Linear", value, 1),)
        ledger = Ledger("thop", "torch", MAC, "cpu", {"torch": "2.13.0"}, value, entries, (), {}, ())
        collected = Collected({**META, "params": {}}, (trace,), (ledger,) if counting else ())
        return collected, settle(collected, Conventions(BUILT_IN["matmul"]))

    def take(given: Sequence[Point], counting: bool) -> list[tuple[Collected, Answer]]:
        return [run(point, counting) for point in given]

    return take, counted


def found(take: Take, *ranges: str) -> Formula:
    names = [each.partition("=")[0] for each in ranges]
    return formula(Template(read_variables(ranges), (f"{','.join(names)},4",), {}), take)


BRANCHES: dict[str, Rows] = {
    "none": lambda n: 3 * n + 1,
    "above 77": lambda n: 2 * n if n > 77 else n,
    "at 77": lambda n: 2 * n if n == 77 else n,
    "by 10": lambda n: n if n % 10 else 2 * n,
    "5 by 32": lambda n: 2 * n if n % 32 == 5 else n,
    "padded to 8": lambda n: -(-n // 8) * 8,
    "at most 95": lambda n: min(n, 95),
    "two windows": lambda n: n * min(n, 64) + n // 3,
}
WHOLE = range(16, 97)
SUGGESTED = re.compile(r"give --at n=(\d+)\.\.(\d+)(?:/(\d+))?")


def on_a_parabola(rows: Rows, sizes: Sequence[int]) -> bool:
    """Whether the third differences of equally spaced counts are 0."""
    counts = [rows(n) for n in sizes]
    return not any(
        d - 3 * c + 3 * b - a for a, b, c, d in zip(counts, counts[1:], counts[2:], counts[3:], strict=False)
    )


@pytest.mark.parametrize("branch", BRANCHES)
def test_what_is_printed_of_a_range_is_true_at_each_of_its_sizes(branch: str) -> None:
    rows = BRANCHES[branch]
    counts = found(of_rows(rows)[0], "n=16..96")
    wrong = {
        (name, n)
        for name in ("trace@torch", "thop")
        for polynomials in [counts.polynomials.get(name)]
        if polynomials is not None
        for polynomial in (polynomials.total, *polynomials.layers.values())
        for n in WHOLE
        if polynomial is not None and polynomial.at((n,)) != 40 * rows(n)
    }
    assert wrong == set()
    assert counts.polynomials.keys() & {"trace@torch", "thop"} == (
        {"trace@torch", "thop"} if branch == "none" else set()
    )
    assert sorted(counts.ran) == [(n,) for n in WHOLE]
    for reason in (none.reason for none in counts.not_polynomial):
        for low, high, step in SUGGESTED.findall(reason):
            given = range(int(low), int(high) + 1, int(step or 1))
            assert on_a_parabola(rows, given), reason
        repeats = re.search(r"every (\d+) sizes", reason)
        classes = [WHOLE[k :: int(repeats[1])] for k in range(int(repeats[1]))] if repeats else []
        assert [each for each in classes if not on_a_parabola(rows, each)] == [], reason


@pytest.mark.parametrize(
    ("branch", "says"),
    [
        ("above 77", "up to n=77 it lies on one polynomial: give --at n=16..77"),
        ("at 77", "gives 3,080 at n=77, where it is 6,160; up to n=76 it lies on one polynomial: give --at n=16..76"),
        ("by 10", "it repeats a pattern every 10 sizes of n; at n = 16, 26, 36, ... it lies on one polynomial"),
    ],
)
def test_where_it_is_one_polynomial_is_named(branch: str, says: str) -> None:
    reasons = [none.reason for none in found(of_rows(BRANCHES[branch])[0], "n=16..96").not_polynomial if none.layer]
    assert reasons
    assert [reason for reason in reasons if says not in reason] == []


def test_a_branch_in_the_middle_of_two_ranges_is_found() -> None:
    """Only one of 64 points has another count."""
    counts = found(of_rows(lambda n: n + (n == 3 * 17))[0], "B=1..4", "T=8..23")
    assert size(counts.variables) == 4 * 16 == counts.points == len(counts.ran)
    assert counts.polynomials.keys() & {"trace@torch", "thop"} == set()
    reasons = [none.reason for none in counts.not_polynomial]
    assert [reason for reason in reasons if "at B=3, T=17, where it is 2,080" in reason], reasons


def test_a_counter_runs_where_an_idle_op_ran_more_often() -> None:
    """It reports 9 more there, and the work that ran is the same."""
    take, _ = of_rows(lambda n: n, lambda n: 1 + (n == 61), lambda n: 20 * n + 9 * (n == 61))
    counts = found(take, "n=16..96")
    trace = counts.polynomials["trace@torch"].total
    assert trace is not None
    assert trace.terms == {(1,): 40}
    assert "thop" not in counts.polynomials
    reasons = [none.reason for none in counts.not_polynomial if none.of == "thop"]
    assert [reason for reason in reasons if "at n=61, where it is 2,458" in reason], reasons


def test_counters_run_at_few_points_where_nothing_branches() -> None:
    take, counted = of_rows(lambda n: n)
    counts = found(take, "n=16..96")
    assert sum(counted) == len(counts.fitted) + counts.checked < 10
    assert len(counted) == len(WHOLE)
    said = describe_checks(counts)
    assert "The work that ran was checked at all 81 points of the ranges." in said
    assert f"The counters ran at {sum(counted)} of these; at the others, every op" in said


def test_of_more_points_the_number_that_ran_is_part_of_the_range() -> None:
    counts = found(of_rows(lambda n: n)[0], "n=1..100000")
    assert len(counts.ran) <= MOST + 16
    assert set(counts.ran) >= {(1,), (100_000,)}
    ran = f"({len(counts.ran)} of these 100,000 points)"
    assert str(describe_formula(counts).title).endswith(f"for n = 1..100000 {ran}")
    assert "and nothing is known of the others" in describe_checks(counts)


@pytest.mark.parametrize("ranges", [["B=1..9", "T=4..900"], ["A=1..40", "B=1..40", "C=1,2,4,8"], ["T=7..5000/3"]])
def test_points_are_of_the_ranges_and_as_many_as_allowed(ranges: list[str]) -> None:
    variables = read_variables(ranges)
    chosen = points(variables, [])
    assert MOST // 2 < len(set(chosen)) == len(chosen) <= MOST
    assert [at for at in chosen if any(x not in v.values for x, v in zip(at, variables, strict=True))] == []
    assert chosen == points(variables, [])
