"""The page of ``reconcile llm`` as a Document, text, Markdown and JSON, and the sentence to publish (``cite``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from ...core.number_format import format_signed, number
from ...core.registry import known_counters
from ...report.document import Document, Inline, Items, Span, Text, markdown, strong, tabulate, terminal
from ...report.json_text import fields_of
from .comparison import PREFIX, ROW_RECOMPUTED, Comparison, Quote
from .notes import notes, per_token, ratio

SCHEMA = 1


def choice(found: Comparison) -> str:
    """Which formula to use, in a sentence."""
    if found.exact:
        several = "s give" if len(found.exact) > 1 else " gives"
        return f"Right for this model: {', '.join(found.exact)}. The formula{several} exactly the products that ran."
    near = next((q for q in found.quotes if q.step is not None), None)
    if near is None or near.step is None:
        return "No formula has a number for this model: use the number that ran."
    return f"No formula is exact for this model. The nearest is {near.name}, {ratio(found, near.step)} times what ran."


def numerators(found: Comparison) -> list[str]:
    """The numbers to use, each in a sentence: for MFU and HFU, or of a forward pass."""
    if not found.training:
        return [
            f"Forward: {per_token(found, found.ran_once)} FLOPs per {found.unit}, whole attention.",
            *_describe_unmasked_work(found, "your number"),
        ]
    once, ran = (
        f"{per_token(found, flops)} FLOPs per {found.unit} ({number(flops)} per step)"
        for flops in (found.ran_once, found.ran)
    )
    mfu = f"MFU: {once}, whole attention, as in PaLM's definition."
    hfu = f"HFU: {ran}"
    more = (
        f", of them {per_token(found, found.recomputed)} for activations that are computed again."
        if found.recomputed
        else ""
    )
    return [
        mfu,
        hfu + (more or ", the same: nothing is computed again."),
        *_describe_unmasked_work(found, "your MFU"),
    ]


def _describe_unmasked_work(found: Comparison, yours: str) -> list[str]:
    """The work that no causal mask discards, if that is less or not known."""
    if found.causal is None:
        return [f"Without masked products: not known, {found.causal_note}."]
    if not found.causal_note and found.causal == found.ran_once:
        return []
    kept = per_token(found, found.causal) + found.causal_note
    return [f"If {yours} leaves masked products out, as some trainers do: {kept}. Say so beside it."]


def cite(found: Comparison) -> str:
    """The sentence to publish: FLOPs per token, the step, the convention and the versions."""
    version = ", ".join(f"{name} {number_}" for name, number_ in found.versions.items())
    more = (
        f", without {per_token(found, found.recomputed)} for activations that are computed again"
        if found.recomputed
        else ""
    )
    return (
        f"{found.model} takes {per_token(found, found.ran_once)} FLOPs per {found.unit} of {found.step} (convention matmul: 2 "
        f"per multiply-add of matrix products, whole attention{more}), recorded op by op by reconcile on {version}."
    )


def describe_comparison(found: Comparison, *, brief: bool = False, verbose: bool = False) -> Document:
    """The page: which formula to use, the numbers to use, and every formula beside what ran.

    ``brief`` is for a terminal: of a formula's causes the largest alone, with ``verbose`` each in a row of its own.
    """
    ran = f"{number(found.ran_once)} per {'step' if found.training or not brief else 'call'}"
    rows: list[tuple[Inline, ...]] = [(Span(found.target_row, "emphasis"), per_token(found, found.ran_once), "1", ran)]
    if found.recomputed:
        again = "" if brief else f"{number(found.recomputed)} per step"
        each = per_token(found, found.recomputed), ratio(found, found.recomputed)
        rows.append((Span(ROW_RECOMPUTED, "emphasis"), *each, again))
    unmasked = None if found.causal_note or (found.images_only and found.causal == found.ran_once) else found.causal
    if brief and unmasked is not None:
        rows.append((Span("not masked", "emphasis"), per_token(found, unmasked), ratio(found, unmasked), ""))
    if brief and found.attention:
        alone = per_token(found, found.attention), ratio(found, found.attention), "its two products, on all keys"
        rows.append((Span("attention alone", "emphasis"), *alone))
    for quote in found.quotes:
        if quote.step is not None:
            what = _largest(quote) if brief else _every(quote)
            rows.append((quote.name, per_token(found, quote.step), ratio(found, quote.step), what))
        if quote.step is not None and verbose:
            rows += [("", format_signed(amount), "", f"{name}, per step") for name, amount in _order_causes(quote)]
    columns = "ratio>|why" if brief else "of what ran>|what to add per step to arrive there"
    more = brief and not verbose and any(len(quote.causes) > 1 for quote in found.quotes)
    return Document(
        f"{found.model}, {found.step}",
        choice(found),
        (
            Items((*notes(found), *numerators(found))),
            Text(f"To publish: {cite(found)}") if brief else Text(cite(found), "quote"),
            tabulate(f"formula|FLOPs per {found.unit}>|{columns}", rows),
            *([Text("(+ 2: two more causes; -v shows each with its amount)", "dim")] if more else []),
            *(Items(tuple(f"{quote.name}: {line}." for line in quote.terms)) for quote in found.quotes if quote.terms),
            Items(tuple(f"{', '.join(names)}: {reason}." for reason, names in found.formulas_without_number.items())),
        ),
        found.exit_code == 0,
    )


def _largest(quote: Quote) -> str:
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


def _every(quote: Quote) -> Inline:
    """Every cause, and the residual."""
    residual = ("; ", strong(f"residual {format_signed(quote.residual)}")) if quote.residual else ()
    return (why(quote), *residual)


def to_text(found: Comparison) -> str:
    """The page as a terminal of 80 columns shows it."""
    return terminal.to_text(describe_comparison(found, brief=True))


def to_markdown(found: Comparison) -> str:
    """The page as Markdown, with the amount of every cause."""
    return markdown.to_markdown(describe_comparison(found))


def data(found: Comparison) -> str:
    """The page as JSON: FLOPs of one step, exact integers."""
    content = {
        "schema": SCHEMA,
        "model": found.model,
        "pass": "training" if found.training else "forward",
        **fields_of(
            found,
            "batch seq lengths images image_tokens dropped parameters trained recurrent topk indexer attention ran",
        ),
        "sides": found.encoder_decoder,
        "per": found.unit,
        "text": found.text_tokens,
        "image_size": list(found.pixels),
        "expert_capacity": found.capacity,
        "further": found.configured_mtp_layers,
        "chosen_keys": found.with_chosen_keys if found.topk and found.attention else None,
        "recomputation": found.recomputed,
        "not_masked": found.causal,
        "masks_not_seen": found.causal_note.lstrip(", "),
        "mfu_per_step": found.ran_once if found.training else None,
        "hfu_per_step": found.ran if found.training else None,
        "cite": cite(found),
        "versions": dict(found.versions),
        "formulas": [
            {
                "name": PREFIX + q.name if q.terms is None else q.name,
                "formula": known_counters()[PREFIX + q.name].summary if q.terms is None else "",
                "terms": list(q.terms or ()),
                **fields_of(q, "step causes residual reason"),
            }
            for q in found.quotes
        ],
    }
    return json.dumps(content, indent=1) + "\n"


FORMATS: Mapping[str, Callable[[Comparison], str]] = {"text": to_text, "md": to_markdown, "json": data}
