"""Runs jax.experimental.roofline on the program of a JAX model: one total, and the equations that it meets.

Nothing is computed: it goes through the jaxpr, each equation once, also in the programs inside that it enters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax

from ....core.records import DEAD, FLOP, LIVE, TRACED_ONLY, Entry, Ledger, Op, Sighting
from ...jax.model import Call, versions
from ...jax.phases import mark_optimizer
from ...jax.records import is_program
from ...jax.trace import ENTERED, ONCE, WITH_A_STEP, Runs, Walk, has_no_result, live
from ...shared.refusal import BeyondCounter
from .. import SUM
from . import NOT_ENTERED, PRODUCTS_ONLY

Inside = Callable[[Any], Any]
"""Gives the program inside an equation that a counter goes through in its place, None where it counts the equation itself."""


class MetWalk(Walk):
    """Records what a counter meets: every equation once, in whichever loop it is; without ``empty`` not in loops of no turn."""

    def __init__(self, root: str, inside: Inside, empty: bool = True) -> None:
        super().__init__(root)
        self.inside = inside
        self.empty = empty

    def _equation(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        inner = self.inside(equation)
        if inner is not None:
            if self.empty or equation.params.get("length") != 0:
                self.through(inner, runs, names)
        elif not has_no_result(equation):
            self._record(equation, runs, names)


class EnteredWalk(MetWalk):
    """Records what ran, but for what ran in programs that the counter does not enter."""

    def fresh(self) -> Walk:
        """See Walk.fresh."""
        return EnteredWalk(self.root, self.inside)

    def _equation(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        name = equation.primitive.name
        holds = any(map(is_program, equation.params.values())) and not name.startswith(WITH_A_STEP)
        if self.inside(equation) is not None or not (holds or name in ENTERED):
            Walk._equation(self, equation, runs, names)


def find_sightings(call: Call, inside: Inside, *, with_dead: bool = False) -> list[Sighting]:
    """The equations that a counter meets which goes through the programs ``inside`` some, and what ran where it does not look.
    ``with_dead`` it meets what no result needs as well."""
    whole = jax.make_jaxpr(call.function)(*call.arguments)
    needed = live(whole)
    ran, entered = Walk(call.root), EnteredWalk(call.root, inside)
    for walk in (ran, entered):
        walk.enter(mark_optimizer(needed), call.values)

    def meet(closed: Any, empty: bool) -> dict[Any, Op]:
        walk = MetWalk(call.root, inside, empty)
        walk.through(mark_optimizer(closed), ONCE, ())
        return walk.ops

    def calls_of(key: Any, ops: dict[Any, Op]) -> int:
        return ops[key].calls if key in ops else 0

    met, alive, taken = meet(whole if with_dead else needed, True), meet(needed, True), meet(needed, False)
    found = []
    for key, op in met.items():
        used, looped = calls_of(key, alive), calls_of(key, taken)
        for role, calls in ((LIVE, looped), (TRACED_ONLY, used - looped), (DEAD, op.calls - used)):
            if calls:
                found.append(Sighting(op._replace(calls=calls), SUM, role))
    for key, op in ran.ops.items():
        if rest := op.calls - calls_of(key, entered.ops):
            found.append(Sighting(op._replace(calls=rest, attrs={**op.attrs, NOT_ENTERED: True}), SUM, LIVE))
    return found


def program_of(equation: Any) -> Any:
    """The program that roofline goes through (_roofline_interpreter of jax/experimental/roofline). Raises BeyondCounter for
    what it takes a part of, or counts by a program that no record holds."""
    if equation.primitive.name == "shard_map":
        raise BeyondCounter(
            "roofline counts one device of a program that is mapped over several: leave this counter out"
        )
    if equation.primitive.name == "scatter" and equation.params.get("update_jaxpr") is not None:
        raise BeyondCounter("roofline counts the function that a scatter applies, which is not recorded: leave it out")
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))


def capture(counter: str, call: Call) -> Ledger:
    """The ledger of one call. Raises BeyondCounter for a program that roofline refuses, or of which it takes a part."""
    from jax.experimental import roofline

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it prints each equation that it has no rule for
    try:
        _, found = roofline.roofline(call.function)(*call.arguments)
    except Exception as error:
        raise BeyondCounter(
            f"roofline cannot count this program ({type(error).__name__}: {str(error)[:200] or 'it says no more'})"
        ) from error
    finally:
        logging.disable(before)
    total = int(found.flops if counter == PRODUCTS_ONLY else found.unfused_flops)
    return sum_ledger(counter, total, find_sightings(call, program_of))


def sum_ledger(counter: str, total: int, sightings: list[Sighting]) -> Ledger:
    """The ledger of a counter that reports one number for a program."""
    entries = (Entry(SUM, "", counter, total, 1),) if total else ()
    return Ledger(counter, "jax", FLOP, jax.default_backend(), versions(), total, tuple(entries), tuple(sightings))
