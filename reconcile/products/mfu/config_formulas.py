"""``reconcile mfu --config``: FLOPs per token of a config.json's model by every published formula (``formulas``).

Each formula is the work that ran in a training step, plus or minus an amount per cause.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from ...core.conventions import MATMUL, NAMED, Conventions
from ...core.errors import UsageError, unknown
from ...core.registry import known_counters
from ...engine.settle import settle
from ..llm import comparison as report
from ..llm.config import read_configuration
from .closed_forms import Numerator
from .setup import first

RAN, KEPT = "ran", "ran-causal"
KNOWN = ("palm", "nanogpt", "6n", "torchtitan", "megatron", RAN, KEPT)
"""The formulas that most published utilisations use; the others cost more."""
FAR = 2


def formulas(config: Path, seq: int, stated: str) -> tuple[Numerator, ...]:
    """FLOPs per token by formula, the stated one first; ``ran`` is what the step takes, and ``ran-causal`` the part of it that no
    causal mask discards. Raises UsageError for a formula that has no number for this model."""
    request, name, take = read_configuration(config, 1, seq)
    collected = take(request, lambda _event: None)
    result = settle(collected, Conventions(MATMUL, NAMED))
    (trace,) = result.traces
    facts = report.facts_of(collected)
    if MATMUL.name not in trace.totals or facts is None:
        why = trace.reason if MATMUL.name not in trace.totals else result.ledgers[0].reason
        raise UsageError(f"{name} has no FLOPs per token: {why}.")
    made = numerators(report.page(result, facts, name))
    names = [one.name for one in made]
    if stated not in names:
        raise unknown("formula", stated, names)
    return first(stated, made)


def numerators(page: report.Page) -> list[Numerator]:
    """The formulas of a page that have a number, each as what ran and the causes by which it differs."""
    each = page.tokens
    found = [Numerator(RAN, "what ran", "recorded op by op", {"what ran": Fraction(page.once, each)})]
    if page.causal is not None and not page.unseen:
        found.append(
            _make_numerator(
                page, KEPT, "what ran, without masked products", "recorded op by op", {"mask": page.once - page.causal}
            )
        )
    for quote in page.quotes:
        if quote.step is not None:
            causes = {**quote.causes, "residual": quote.residual or 0}
            source = known_counters()[report.PREFIX + quote.name].summary
            made = _make_numerator(page, quote.name, quote.name, source, causes)
            over = Fraction(quote.step, each) - made.total  # recomputed activations, if the trace has them
            found.append(
                made
                if not over
                else _make_numerator(
                    page, quote.name, quote.name, source, {**causes, "recomputation": int(-over * each)}
                )
            )
    return found


def _make_numerator(page: report.Page, name: str, title: str, source: str, causes: dict[str, int]) -> Numerator:
    parts = {cause: Fraction(-amount, page.tokens) for cause, amount in causes.items() if amount}
    cost = 0 if name in KNOWN else FAR
    return Numerator(name, title, source, {"what ran": Fraction(page.once, page.tokens), **parts}, cost)
