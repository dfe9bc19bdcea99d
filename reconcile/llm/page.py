"""The page of a language model's FLOPs: every published formula beside the work that ran, and the numbers for MFU and HFU."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..core.causes import ORDER, Cause
from ..core.conventions import CAUSAL, Convention
from ..core.records import RECOMPUTATION, Ledger
from ..core.registry import known_counters
from ..core.results import TraceResult
from ..core.text import multiple, number, signed
from ..engine.answer import Answer
from ..engine.citation import masks
from ..engine.settle import Collected

SCHEMA = 1
PREFIX = "formula:"
WIDTH = 79
ALL, ONCE, AGAIN = "what ran", "what ran once", "computed again"
"""Rows of the table: the work that ran, or, where activations are recomputed, that without them, and theirs."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A formula on this model: FLOPs of one step, and the amounts by cause that lead to the work that ran once, MFU's numerator;
    or why it has none."""

    name: str
    step: int | None
    causes: Mapping[str, int]
    residual: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """FLOPs of one step of a pass on ``batch`` sequences of ``seq`` tokens.

    ``ran`` is all work that ran, and ``again`` the part of it for recomputed activations.  ``causal`` is the work that ran once
    and that no causal mask discards: None, and ``unseen`` says why, if the trace does not show that; otherwise ``unseen``
    names the products whose masks it does not show.
    """

    model: str
    training: bool
    batch: int
    seq: int
    ran: int
    causal: int | None
    unseen: str
    again: int
    versions: Mapping[str, str]
    quotes: tuple[Quote, ...]

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.seq

    @property
    def step(self) -> str:
        """``a training step of 1 x 2,048 tokens``."""
        return f"a {'training step' if self.training else 'forward pass'} of {self.batch} x {number(self.seq)} tokens"

    @property
    def once(self) -> int:
        """FLOPs of a step if nothing is recomputed: the numerator of MFU."""
        return self.ran - self.again

    @property
    def row(self) -> str:
        """The name of the row to which the causes of each formula lead."""
        return ONCE if self.again else ALL

    @property
    def exact(self) -> tuple[str, ...]:
        """The formulas that give exactly the work that ran once."""
        return tuple(q.name for q in self.quotes if q.step == self.once)

    @property
    def refused(self) -> dict[str, list[str]]:
        """The formulas that have no number, by the reason."""
        reasons: dict[str, list[str]] = {}
        for quote in self.quotes:
            if quote.step is None:
                reasons.setdefault(quote.reason, []).append(quote.name)
        return reasons


def size_of(collected: Collected) -> tuple[int, int] | None:
    """B and T of the step, as the formulas read them; None if no formula could read the model."""
    ledgers = (ledger for ledger in collected.ledgers if isinstance(ledger, Ledger))
    facts = next((sighting.op.attrs for ledger in ledgers for sighting in ledger.sightings), None)
    return None if facts is None else (facts["B"], facts["T"])


def page(result: Answer, size: tuple[int, int], name: str) -> Page:
    """The page of a run with formulas on a batch of ``size``; the result has the totals of the convention causal."""
    (trace,) = result.traces
    batch, seq = size
    convention = result.convention
    statements = {s.from_: s for s in result.statements if s.to == trace.name}
    ran, again = trace.totals[convention.name], _again(trace, convention)
    quotes = []
    for ledger in result.ledgers:
        statement = statements.get(ledger.counter)
        causes = _once(statement.by_cause(), again) if statement is not None else {}
        residual = statement.residual if statement is not None else None
        short = ledger.counter.removeprefix(PREFIX)
        quotes.append(Quote(short, ledger.normalised_total, causes, residual, ledger.reason))
    kept = trace.totals.get(CAUSAL.name)
    gap = next(iter(trace.gaps(CAUSAL)), None)
    return Page(
        model=name,
        training=result.pass_ != "forward",
        batch=batch,
        seq=seq,
        ran=ran,
        causal=None if kept is None else kept - _again(trace, CAUSAL),
        unseen=gap.reason if gap is not None else masks(CAUSAL, result.traces),
        again=again,
        versions=trace.versions,
        quotes=tuple(sorted(quotes, key=lambda q: (q.step is None, abs((q.step or 0) - ran + again), q.name))),
    )


def _once(causes: Mapping[Cause, int], again: int) -> dict[str, int]:
    """The amounts that lead to the work that ran once, MFU's numerator: all of a statement's, which lead to the work that ran,
    less the ``again`` of recomputed activations. A formula of HFU has those, so its page takes them off."""
    less = {**causes, Cause.RECOMPUTED: causes.get(Cause.RECOMPUTED, 0) - again}
    return {cause.value: less[cause] for cause in sorted(less, key=ORDER.__getitem__) if less[cause]}


def _again(trace: TraceResult, convention: Convention) -> int:
    return sum(convention.flops(row.work) for row in trace.rows if row.phase == RECOMPUTATION)


def per_token(page: Page, flops: int) -> str:
    """``57,912,852,480``, or with two decimals if the step does not divide."""
    whole = Fraction(flops, page.tokens)
    return number(int(whole)) if whole.denominator == 1 else f"{float(whole):,.2f}"


def ratio(page: Page, flops: int) -> str:
    """``1.0545``: the ratio to the work that ran once. A ratio that only rounds to 1 adds the difference in FLOPs."""
    return multiple(flops, page.once)


def _rounded(page: Page, flops: int) -> str:
    """The same without the FLOPs, for a narrow column."""
    return ratio(page, flops).partition(" ")[0]


def choice(page: Page) -> str:
    """Which formula to use, in a sentence."""
    if page.exact:
        several = "s give" if len(page.exact) > 1 else " gives"
        return f"Right for this model: {', '.join(page.exact)}. The formula{several} exactly the products that ran."
    near = next((q for q in page.quotes if q.step is not None), None)
    if near is None or near.step is None:
        return "No formula has a number for this model: use the number that ran."
    return f"No formula is exact for this model. The nearest is {near.name}, {ratio(page, near.step)} times what ran."


def numerators(page: Page) -> list[str]:
    """The numbers to use, each in a sentence: for MFU and HFU, or of a forward pass."""
    if not page.training:
        return [f"Forward: {per_token(page, page.once)} FLOPs per token, whole attention.", *_kept(page, "your number")]
    once, ran = (
        f"{per_token(page, flops)} FLOPs per token ({number(flops)} per step)" for flops in (page.once, page.ran)
    )
    mfu = f"MFU: {once}, whole attention, as in PaLM's definition."
    hfu = f"HFU: {ran}"
    more = f", of them {per_token(page, page.again)} for activations that are computed again." if page.again else ""
    return [mfu, hfu + (more or ", the same: nothing is computed again."), *_kept(page, "your MFU")]


def _kept(page: Page, yours: str) -> list[str]:
    """The work that no causal mask discards, if that is less or not known."""
    if page.causal is None:
        return [f"Without masked products: not known, {page.unseen}."]
    if not page.unseen and page.causal == page.once:
        return []
    kept = per_token(page, page.causal) + page.unseen
    return [f"If {yours} leaves masked products out, as some trainers do: {kept}. Say so beside it."]


def cite(page: Page) -> str:
    """One sentence to publish."""
    version = ", ".join(f"{name} {number_}" for name, number_ in page.versions.items())
    more = f", without {per_token(page, page.again)} for activations that are computed again" if page.again else ""
    return (
        f"{page.model} takes {per_token(page, page.once)} FLOPs per token of {page.step} (convention matmul: 2 per multiply-add "
        f"of matrix products, whole attention{more}), recorded op by op by reconcile on {version}."
    )


def text(page: Page, *, verbose: bool = False) -> str:
    """The page for a terminal of 80 columns; ``verbose`` opens every cause of every formula, in FLOPs per step."""
    wide = max(len(page.row), *(len(q.name) for q in page.quotes))
    lines = [
        f"{page.model}: {page.step}, FLOPs per token",
        "",
        f"{'':{wide}}  {'per token':>17}  {'of it':>7}  why",
        f"{page.row:{wide}}  {per_token(page, page.once):>17}  {'1':>7}",
    ]
    if page.again:
        lines.append(f"{AGAIN:{wide}}  {per_token(page, page.again):>17}  {_rounded(page, page.again):>7}")
    if page.causal is not None and not page.unseen:
        lines.append(f"{'not masked':{wide}}  {per_token(page, page.causal):>17}  {_rounded(page, page.causal):>7}")
    lines.append("")
    for quote in page.quotes:
        if quote.step is not None:
            why = _largest(page, quote)
            lines.append(
                f"{quote.name:{wide}}  {per_token(page, quote.step):>17}  {_rounded(page, quote.step):>7}  {why}"
            )
            if verbose and quote.step != page.once:
                lines += [
                    f"{'':{wide}}  {signed(amount):>17}           {name}, per step" for name, amount in _ordered(quote)
                ]
    if not verbose and any(len(quote.causes) > 1 for quote in page.quotes):
        lines += ["", "(+ 2: two more causes; -v shows each with its amount)"]
    lines += ["", *(_wrapped(f"{', '.join(names)}: {reason}") for reason, names in page.refused.items())]
    sentences = ["", choice(page), "", *numerators(page), "", f"To publish: {cite(page)}"]
    return "\n".join([*lines, *map(_wrapped, sentences)]) + "\n"


def _largest(page: Page, quote: Quote) -> str:
    """The residual, or ``exact``, or the cause of the largest amount and how many more there are."""
    if quote.residual:
        return f"residual {signed(quote.residual)}"
    if quote.step == page.once:
        return "exact"
    (largest, _), *others = _ordered(quote)
    return largest + (f" + {len(others)}" if others else "")


def _ordered(quote: Quote) -> list[tuple[str, int]]:
    """The causes with their amounts, the largest first."""
    return sorted(quote.causes.items(), key=lambda item: -abs(item[1]))


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, break_on_hyphens=False)


def markdown(page: Page) -> str:
    """The page as a section of Markdown, with the amount of every cause."""
    lines = [
        f"## {page.model}, {page.step}",
        "",
        choice(page),
        "",
        *(f"- {line}" for line in numerators(page)),
        "",
        f"> {cite(page)}",
        "",
        "| formula | FLOPs per token | of what ran | what to add per step to arrive there |",
        "|:--|--:|--:|:--|",
        f"| *{page.row}* | {per_token(page, page.once)} | 1 | {number(page.once)} per step |",
    ]
    if page.again:
        again = f"{per_token(page, page.again)} | {ratio(page, page.again)} | {number(page.again)} per step"
        lines.append(f"| *{AGAIN}* | {again} |")
    for quote in page.quotes:
        if quote.step is None:
            continue
        causes = "; ".join(f"{name} {signed(amount)}" for name, amount in quote.causes.items()) or "exact"
        causes += f"; **residual {signed(quote.residual)}**" if quote.residual else ""
        lines.append(f"| {quote.name} | {per_token(page, quote.step)} | {ratio(page, quote.step)} | {causes} |")
    lines += ["", *(f"- {', '.join(names)}: {reason}." for reason, names in page.refused.items())]
    return "\n".join(lines) + "\n"


def data(page: Page) -> str:
    """The page as JSON: FLOPs of one step, exact integers."""
    content = {
        "schema": SCHEMA,
        "model": page.model,
        "pass": "training" if page.training else "forward",
        "batch": page.batch,
        "seq": page.seq,
        "ran": page.ran,
        "recomputation": page.again,
        "not_masked": page.causal,
        "masks_not_seen": page.unseen.lstrip(", "),
        "mfu_per_step": page.once if page.training else None,
        "hfu_per_step": page.ran if page.training else None,
        "cite": cite(page),
        "versions": dict(page.versions),
        "formulas": [
            {
                "name": PREFIX + q.name,
                "formula": known_counters()[PREFIX + q.name].summary,
                "step": q.step,
                "causes": dict(q.causes),
                "residual": q.residual,
                "reason": q.reason,
            }
            for q in page.quotes
        ],
    }
    return json.dumps(content, indent=1) + "\n"
