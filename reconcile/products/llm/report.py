"""The page of ``reconcile llm`` as text for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping

from ...core.registry import known_counters
from ...core.text import format_signed, number
from .comparison import AGAIN, PREFIX, Page, Quote
from .notes import notes, per_token, ratio

SCHEMA = 1
WIDTH = 79


def _round_flops(page: Page, flops: int) -> str:
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
        return [
            f"Forward: {per_token(page, page.once)} FLOPs per {page.unit}, whole attention.",
            *_describe_unmasked_work(page, "your number"),
        ]
    once, ran = (
        f"{per_token(page, flops)} FLOPs per {page.unit} ({number(flops)} per step)" for flops in (page.once, page.ran)
    )
    mfu = f"MFU: {once}, whole attention, as in PaLM's definition."
    hfu = f"HFU: {ran}"
    more = f", of them {per_token(page, page.again)} for activations that are computed again." if page.again else ""
    return [mfu, hfu + (more or ", the same: nothing is computed again."), *_describe_unmasked_work(page, "your MFU")]


def _describe_unmasked_work(page: Page, yours: str) -> list[str]:
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
        f"{page.model} takes {per_token(page, page.once)} FLOPs per {page.unit} of {page.step} (convention matmul: 2 per "
        f"multiply-add of matrix products, whole attention{more}), recorded op by op by reconcile on {version}."
    )


def text(page: Page, *, verbose: bool = False) -> str:
    """The page for a terminal of 80 columns; ``verbose`` opens every cause of every formula, in FLOPs per step."""
    wide = max(len(page.row), *(len(q.name) for q in page.quotes))
    lines = [
        _wrap_line(f"{page.model}: {page.step}, FLOPs per {page.unit}"),
        "",
        f"{'':{wide}}  {'per ' + page.unit:>17}  {'of it':>7}  why",
        f"{page.row:{wide}}  {per_token(page, page.once):>17}  {'1':>7}",
    ]
    if page.again:
        lines.append(f"{AGAIN:{wide}}  {per_token(page, page.again):>17}  {_round_flops(page, page.again):>7}")
    if page.causal is not None and not page.unseen and not (page.pictures and page.causal == page.once):
        lines.append(f"{'not masked':{wide}}  {per_token(page, page.causal):>17}  {_round_flops(page, page.causal):>7}")
    lines.append("")
    for quote in page.quotes:
        if quote.step is not None:
            why = _largest(page, quote)
            lines.append(
                f"{quote.name:{wide}}  {per_token(page, quote.step):>17}  {_round_flops(page, quote.step):>7}  {why}"
            )
            if verbose:
                lines += [
                    f"{'':{wide}}  {format_signed(amount):>17}           {name}, per step"
                    for name, amount in _order_causes(quote)
                ]
    if not verbose and any(len(quote.causes) > 1 for quote in page.quotes):
        lines += ["", "(+ 2: two more causes; -v shows each with its amount)"]
    lines += ["", *(_wrap_line(f"{', '.join(names)}: {reason}") for reason, names in page.refused.items())]
    sentences = [
        "",
        choice(page),
        "",
        *notes(page),
        *numerators(page),
        "",
        f"To publish: {cite(page)}",
    ]
    return "\n".join([*lines, *map(_wrap_line, sentences)]) + "\n"


def _largest(page: Page, quote: Quote) -> str:
    """The residual, or ``exact``, or the cause of the largest amount and how many more there are."""
    if quote.residual:
        return f"residual {format_signed(quote.residual)}"
    if not quote.causes:
        return "exact"
    (largest, _), *others = _order_causes(quote)
    return largest + (f" + {len(others)}" if others else "")


def _order_causes(quote: Quote) -> list[tuple[str, int]]:
    """The causes with their amounts, the largest first."""
    return sorted(quote.causes.items(), key=lambda item: -abs(item[1]))


def why(quote: Quote) -> str:
    """What to add per step to arrive at what ran, by cause; ``exact``; or why the formula has no number."""
    if quote.step is None:
        return quote.reason
    return "; ".join(f"{name} {format_signed(amount)}" for name, amount in quote.causes.items()) or "exact"


def _wrap_line(line: str) -> str:
    return textwrap.fill(line, WIDTH, break_on_hyphens=False)


def markdown(page: Page) -> str:
    """The page as a section of Markdown, with the amount of every cause."""
    lines = [
        f"## {page.model}, {page.step}",
        "",
        choice(page),
        "",
        *(f"- {line}" for line in (*notes(page), *numerators(page))),
        "",
        f"> {cite(page)}",
        "",
        f"| formula | FLOPs per {page.unit} | of what ran | what to add per step to arrive there |",
        "|:--|--:|--:|:--|",
        f"| *{page.row}* | {per_token(page, page.once)} | 1 | {number(page.once)} per step |",
    ]
    if page.again:
        again = f"{per_token(page, page.again)} | {ratio(page, page.again)} | {number(page.again)} per step"
        lines.append(f"| *{AGAIN}* | {again} |")
    for quote in page.quotes:
        if quote.step is None:
            continue
        causes = why(quote) + (f"; **residual {format_signed(quote.residual)}**" if quote.residual else "")
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
        "lengths": list(page.lengths),
        "sides": page.sides,
        "per": page.unit,
        "text": page.text,
        "images": page.images,
        "image_tokens": page.taken,
        "image_size": list(page.pixels),
        "expert_capacity": page.capacity,
        "dropped": page.dropped,
        "parameters": page.parameters,
        "trained": page.trained,
        "recurrent": page.recurrent,
        "further": page.further,
        "topk": page.topk,
        "indexer": page.indexer,
        "attention": page.attention,
        "chosen_keys": page.chosen if page.topk and page.attention else None,
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


FORMATS: Mapping[str, Callable[[Page], str]] = {"text": text, "md": markdown, "json": data}
