"""The JSON of a claim: exact numbers as strings, from which the claim is recomputed."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from reconcile.products.mfu.printed_number import claim
from reconcile.products.mfu.report import data
from reconcile.products.mfu.search import search
from reconcile.products.mfu.setup import Setup
from tests.products.mfu.setups import rated


def of(claimed: str, setup: Setup) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data(search(claim(claimed), setup)))
    return found


def test_the_json_is_the_statement() -> None:
    found = of("156.18%", rated("1545.38T", devices=8, recompute="full"))
    assert (found["claimed"], found["state"]) == ("156.18%", "explained")
    factors = [(factor["factor"], factor["reading"]) for factor in found["factors"]]
    assert factors == [("8", "devices counted as 1")]
    assert found["mfu"] == str(Fraction(154538, 100) / (8 * Fraction(1979, 2)))
    assert Fraction(found["hfu"]) / Fraction(found["mfu"]) == Fraction(4, 3)
    product = Fraction(found["stated"])
    for factor, _ in factors:
        product *= Fraction(factor)
    assert abs(product - Fraction(15618, 10000)) <= Fraction(5, 100000)


def test_without_a_peak_there_is_no_mfu() -> None:
    from reconcile.products.mfu.setup import setup_of

    setup = setup_of({"flops_per_second": "800T", "devices": 2}, peaked=False)
    found = of("400TFLOP/s", setup)
    assert (found["state"], found["mfu"], found["hfu"], found["peak"]) == ("explained", None, None, None)
