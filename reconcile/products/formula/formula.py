"""``formula``: the counts of a model as polynomials of its sizes, and the reasons why some are not polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, UsageError
from ...engine.answer import Answer
from .check_sizes import scan, size
from .counts_table import Key
from .fit import Fit, Runs, Take, fit
from .polynomial import Polynomial
from .reasons import Reasons
from .variables import At, Template, Variable


@dataclass(frozen=True, slots=True)
class Polynomials:
    """The polynomial of a total, None if it has none, and those of its layers; layers in which it is always 0 are left out."""

    total: Polynomial | None
    layers: Mapping[str, Polynomial]


@dataclass(frozen=True, slots=True)
class NotPolynomial:
    """A count that is not a polynomial in the given ranges: ``of`` is what was counted, at ``layer`` by ``op`` ('' for all)."""

    of: str
    layer: str
    op: str
    reason: str


@dataclass(frozen=True, slots=True)
class Formula:
    """The exact counts of a model under one convention, as polynomials of its variables.

    Attributes:
        model: The model's name.
        pass_: What ran, as in ``engine.answer.Answer``.
        convention: The convention's name.
        variables: The sizes that vary, with their ranges.
        fitted: The points that the polynomials were fitted to.
        held_out: Some that they were not.
        checked: The number of all points that they were not fitted to and at which the counters ran.
        polynomials: The polynomials of each total and its layers, by its name.
        not_polynomial: The counts that have none, with the reason.
        exit_code: 1 if a point is unexplained or a count has no polynomial, 3 if a counter failed, 0 otherwise.
        ran: All points at which the model ran: at those without a counter, the work that ran was checked.
        points: The number of points that the ranges have.
    """

    model: str
    pass_: str
    convention: str
    variables: tuple[Variable, ...]
    fitted: tuple[At, ...]
    held_out: tuple[At, ...]
    checked: int
    polynomials: Mapping[str, Polynomials]
    not_polynomial: tuple[NotPolynomial, ...]
    exit_code: int
    ran: tuple[At, ...] = ()
    points: int = 0

    def at(self, **sizes: int) -> dict[str, int | Fraction]:
        """Every total that has a polynomial, at these sizes; a fraction only at sizes that no count can have.

        Raises UsageError unless each variable has a size.
        """
        names = [variable.name for variable in self.variables]
        if sizes.keys() != set(names):
            raise UsageError(f"at() takes a size of each variable, and nothing else: {', '.join(names)}.")
        values = [sizes[name] for name in names]
        totals = {name: each.total.at(values) for name, each in self.polynomials.items() if each.total is not None}
        return {name: total.numerator if total.denominator == 1 else total for name, total in totals.items()}


def formula(template: Template, take: Take) -> Formula:
    """The polynomials of a model. Raises UsageError if it does not run at a point, and for ranges with too few points."""
    runs = Runs(template, take)
    done = scan(runs, fit(runs))
    refused = _list_refused(runs, done)
    by_name = {}
    for name in done.table.names:
        layers = {
            key.layer: found for key, found in done.polynomials.items() if key.of == name and key.layer is not None
        }
        kept = {layer: found for layer, found in layers.items() if found is not None and found.terms}
        by_name[name] = Polynomials(done.polynomials[Key(name)], kept)
    first: Answer = next(iter(runs.by_point.values()))[1]
    return Formula(
        model=first.model,
        pass_=first.pass_,
        convention=first.convention.name,
        variables=template.variables,
        fitted=tuple(done.fitted.values()),
        held_out=done.held_out,
        checked=len(done.table.points) - len(done.fitted),
        polynomials={name: found for name, found in by_name.items() if found.total is not None or found.layers},
        not_polynomial=tuple(refused),
        exit_code=_exit_code([result for _, result in runs.by_point.values()], refused),
        ran=done.ran.points,
        points=size(template.variables),
    )


def _exit_code(results: list[Answer], refused: list[NotPolynomial]) -> int:
    codes = {result.exit_code for result in results}
    if EXIT_UNEXPLAINED in codes or (refused and EXIT_FAILED not in codes):
        return EXIT_UNEXPLAINED
    return EXIT_FAILED if EXIT_FAILED in codes else EXIT_OK


def _list_refused(runs: Runs, done: Fit) -> list[NotPolynomial]:
    """Every count without a polynomial, with the reason."""
    keys = [key for key, found in done.polynomials.items() if found is None and any(done.table.values(key).values())]
    keys += [key for key in done.polynomials if key.layer is None and done.table.reason(key.of)]
    reasons = Reasons(runs, done, [key for key in keys if key.layer is not None])
    return [
        NotPolynomial(key.of, key.layer or "", op, reason)
        for key in dict.fromkeys(keys)
        for op, reason in reasons.of(key)
    ]
