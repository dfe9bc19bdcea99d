"""``reconcile mfu --config``: FLOPs per token of a config.json's model, as they ran and by every published formula.

``formulas`` records a training step of the model. Each formula is the work that ran in it, plus or minus an amount per cause.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from ...core.errors import check_names
from ...core.registry import known_counters
from ..llm.comparison import PREFIX, Comparison
from ..llm.request import make_comparison, read_request
from .closed_forms import Numerator, put_first

RAN, KEPT = "ran", "ran-causal"
KNOWN = ("palm", "nanogpt", "6n", "torchtitan", "megatron", RAN, KEPT)
"""The formulas that most published utilisations use; the others cost more."""
FAR = 2


def formulas(config: Path, seq: int, stated: str) -> tuple[Numerator, ...]:
    """FLOPs per token by formula, the stated one first; ``ran`` is what the step takes, and ``ran-causal`` the part of it that no
    causal mask discards. Raises UsageError for a formula that has no number for this model, and as ``make_comparison`` does."""
    made = numerators(make_comparison(*read_request(config, seq=seq), lambda _event: None))
    check_names("formula", (stated,), [one.name for one in made])
    return put_first(stated, made)


def numerators(compared: Comparison) -> list[Numerator]:
    """The formulas of a comparison that have a number, each as what ran and the causes by which it differs."""
    each = compared.tokens
    found = [Numerator(RAN, "what ran", "recorded op by op", {"what ran": Fraction(compared.ran_once, each)})]
    if compared.causal is not None and not compared.causal_note:
        mask = {"mask": compared.ran_once - compared.causal}
        title = "what ran, without masked products"
        found.append(_make_numerator(compared, KEPT, title, "recorded op by op", mask))
    for quote in compared.quotes:
        if quote.step is not None:
            causes = {**quote.causes, "residual": quote.residual or 0}
            source = known_counters()[PREFIX + quote.name].summary
            made = _make_numerator(compared, quote.name, quote.name, source, causes)
            over = Fraction(quote.step, each) - made.total  # recomputed activations, if the trace has them
            if over:
                causes["recomputation"] = int(-over * each)
                made = _make_numerator(compared, quote.name, quote.name, source, causes)
            found.append(made)
    return found


def _make_numerator(compared: Comparison, name: str, title: str, source: str, causes: dict[str, int]) -> Numerator:
    parts = {cause: Fraction(-amount, compared.tokens) for cause, amount in causes.items() if amount}
    cost = 0 if name in KNOWN else FAR
    return Numerator(name, title, source, {"what ran": Fraction(compared.ran_once, compared.tokens), **parts}, cost)
