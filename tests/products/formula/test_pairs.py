"""Pairs of the zoo: the closed form of each counter's coefficients."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reconcile.launch.request import RunRequest
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.formula.formula import Formula, formula
from reconcile.products.formula.run_points import run_at
from reconcile.products.formula.variables import Template, read_variables


def of_pair(model: str, *ranges: str, counters: tuple[str, ...] = (), **overrides: str) -> Formula:
    request = RunRequest(model=model, counters=counters)
    template = Template(read_variables(ranges), (), overrides)
    return formula(template, lambda points, counting: run_at(request, points, counting=counting))


def slope(counts: Formula, name: str, layer: str) -> Fraction:
    """The coefficient of T in a layer; 0 if the layer counts 0 everywhere."""
    polynomial = counts.polynomials[name].layers.get(layer)
    return polynomial.terms.get((1,), Fraction(0)) if polynomial is not None else Fraction(0)


STEP = 3 * 96 * (127 * 32 + 96)
"""Multiply-adds of one step of the GRU: three gates of 96 units, 127 columns of 32 filters."""


@pytest.mark.slow
def test_the_gru_has_a_coefficient_of_its_steps_per_counter() -> None:
    """Each frame is one more step. A frozen graph's loop is counted once, and so is the body that a function graph holds;
    fvcore counts nothing of it. thop adds 26 FLOPs of pointwise work per unit and step; runmeta, which sees every node that ran,
    14 per unit, and 4 comparisons and additions of integers that keep the loop going."""
    counts = of_pair("gru_demo", "T=10..40", frames="T")
    slopes = {name: slope(counts, name, "gru") for name in counts.polynomials if ":" not in name}
    assert slopes == {
        "trace@tf": 2 * STEP,
        "trace@torch": 2 * STEP,
        "tf.profiler@function": 0,
        "tf.profiler@frozen": 0,
        "tf.profiler@runmeta": 2 * STEP + 14 * 96 + 4,
        "thop": 2 * STEP + 26 * 96,
        "fvcore": 0,
        "flop_counter": 2 * STEP,
    }
    assert slope(counts, "cause:loop-counted-once:tf.profiler@frozen", "gru") == 2 * 3 * 96 * 127 * 32
    assert slope(counts, "cause:op-not-counted:fvcore", "gru") == 2 * STEP
    assert counts.not_polynomial == ()
    assert counts.exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in zoo_names() if name.startswith("family_")])
def test_what_a_family_counts_is_proportional_to_its_batch(family: str) -> None:
    """No sample of a batch shares work with another: whatever is counted, it has the power 1 of the batch and no other."""
    counts = of_pair(family, "B=1..5", counters=("flop_counter",), batch="B")
    totals = {name: counted.total for name, counted in counts.polynomials.items()}
    assert "trace@torch" in totals
    assert {name: total for name, total in totals.items() if total is None or set(total.terms) - {(1,)}} == {}
    assert counts.not_polynomial == ()
