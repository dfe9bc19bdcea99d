"""pl.estimate_cost by hand, from jax/_src/pallas/cost_estimate.py of JAX 0.10.2 and 0.12.0.1: 2 for a multiply-add, 1 for another
element."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.work import Work
from tests.adapters.counters.cases import Case
from tests.adapters.counters.roofline_cases import BOTH, RELEASES, O, X, case, products


def _estimate() -> Iterator[Case]:
    for name, work in BOTH.items():
        yield case(name, [X, X], [X], work)
    for power, squared_or_multiplied in ((0, 0), (1, 0), (2, 1 + 1), (5, 2 + 2), (7, 2 + 3)):
        yield case("integer_pow", [X], [X], Work(mul=O * squared_or_multiplied), y=power)
        if power > 1:  # 0.10.2 stops on the reciprocal's power
            yield case("integer_pow", [X], [X], Work(mul=O * squared_or_multiplied, div=O), y=-power)
    yield from products()


FAMILIES = {"estimate_cost": (RELEASES, list(_estimate()))}
