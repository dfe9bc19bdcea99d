"""Runs pl.estimate_cost on the program of a JAX model and returns its ledger: one total, and the equations that it meets.

It goes through the whole program, also what no result depends on.
"""

from __future__ import annotations

from typing import Any

from ....core.records import Ledger
from ...jax.model import Call
from ...shared.refusal import BeyondCounter
from ..roofline.capture import find_sightings, sum_ledger

ENTERED = {"jit": "jaxpr", "pjit": "jaxpr", "custom_vjp_call": "call_jaxpr", "run_state": "jaxpr"}
"""Primitives whose program it enters, and the parameter that holds it (jax/_src/pallas/cost_estimate.py)."""


def program_of(equation: Any) -> Any:
    """The program that pl.estimate_cost goes through in the place of an equation, None for one that it takes as it is."""
    return equation.params.get(ENTERED.get(equation.primitive.name, ""))


def capture(counter: str, call: Call) -> Ledger:
    """The ledger of one call. Raises BeyondCounter for a program that pl.estimate_cost refuses."""
    from jax.experimental import pallas

    try:
        cost = pallas.estimate_cost(call.function, *call.arguments)
    except Exception as error:
        raise BeyondCounter(
            f"pl.estimate_cost cannot count this program ({type(error).__name__}: {str(error)[:200] or 'it says no more'})"
        ) from error
    return sum_ledger(counter, int(cost.flops), find_sightings(call, program_of, with_dead=True))
