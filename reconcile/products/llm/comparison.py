"""``Comparison``: a language model's published FLOP formulas beside the work that ran, and the numerators of MFU and HFU.

``facts_of`` reads what the formulas know of the model, and ``compare_formulas`` builds the comparison from it and a run. It
covers models of images alone, documents packed into a sequence, experts with a capacity, and an indexer of sparse attention.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.causes import ORDER, Cause
from ...core.conventions import CAUSAL, Convention
from ...core.number_format import number
from ...core.records import FORWARD, RECOMPUTATION, Ledger, Op, Trace
from ...core.results import TraceResult
from ...engine.answer import Answer
from ...engine.citation import masks
from ...engine.settle import Collected

PREFIX = "formula:"
MAX_LENGTHS_LISTED = 3
"""Lengths of documents that a sentence names one by one."""
ROW_ALL, ROW_WITHOUT_RECOMPUTATION, ROW_RECOMPUTED = "what ran", "what ran once", "computed again"
"""Rows of the table: the work that ran and, where activations are recomputed, that without recomputation, and recomputation."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A formula on this model: FLOPs of one step, and the amounts by cause that lead to the work that ran once, MFU's numerator;
    or why it has none. ``terms`` are the differences of a function of one's own, each in a sentence; None for a built-in one."""

    name: str
    step: int | None
    causes: Mapping[str, int]
    residual: int | None
    reason: str = ""
    terms: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """FLOPs of one step of a pass of a language model, or of a model that reads images.

    Attributes:
        model: The model's name.
        training: Whether the pass is a training step, and not a call.
        batch: The sequences of the step, or the images if it is ``images_only``.
        seq: The tokens of each.
        lengths: The lengths of the documents that are packed into each sequence; () for none.
        encoder_decoder: Whether an encoder and a decoder have as many tokens each.
        parameters: The model's parameters.
        trained: Those that are not frozen.
        recurrent: The work inside layers that reads no weight and is not attention's, as that of a scan.
        configured_mtp_layers: Layers of multi-token prediction that stand in the configuration alone.
        topk: The keys that an indexer chooses for a token; 0 if there is none.
        indexer: The work of the indexer.
        attention: The work of attention if it ran on all keys; otherwise 0.
        ran: All work that ran.
        causal: The work that ran once and that no causal mask discards; None if the trace does not show that.
        causal_note: Why ``causal`` is None; otherwise the products whose masks the trace does not show, '' for none.
        recomputed: The part of ``ran`` for recomputed activations.
        versions: Versions by package.
        quotes: What each formula says of the model, the nearest to the work that ran once first.
        exit_code: That of the run.
        images_only: Whether it is a model of images, without a language model.
        text_tokens: The tokens of a text beside each image of such a model; 0 for none.
        images: The images in each sequence of a language model; 0 for none.
        image_tokens: The tokens of each sequence that the images take.
        pixels: The height and width of an image; () where they were not given.
        capacity: The most tokens of a sequence that one expert takes; 0 for all.
        dropped: The tokens that the experts leave because of it.
    """

    model: str
    training: bool
    batch: int
    seq: int
    lengths: tuple[int, ...]
    encoder_decoder: bool
    parameters: int
    trained: int
    recurrent: int
    configured_mtp_layers: int
    topk: int
    indexer: int
    attention: int
    ran: int
    causal: int | None
    causal_note: str
    recomputed: int
    versions: Mapping[str, str]
    quotes: tuple[Quote, ...]
    exit_code: int
    images_only: bool = False
    text_tokens: int = 0
    images: int = 0
    image_tokens: int = 0
    pixels: tuple[int, ...] = ()
    capacity: int = 0
    dropped: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.seq

    @property
    def unit(self) -> str:
        """What the numbers of the page are of: a token, or an image."""
        return "image" if self.images_only else "token"

    @property
    def units(self) -> int:
        """How many of them a step has."""
        return self.batch if self.images_only else self.tokens

    @property
    def step(self) -> str:
        """``a training step of 1 x 8,192 tokens in documents of 4 x 2,048``, ``a training step of 1 image of 196 tokens``."""
        many = f"{_images(self.batch)} of" if self.images_only else f"{self.batch} x"
        step = f"a {'training step' if self.training else 'forward pass'} of {many} {number(self.seq)} tokens"
        step += f" with {number(self.text_tokens)} of a text" if self.text_tokens else ""
        step += f", {number(self.image_tokens)} of them of {_images(self.images)}" if self.images else ""
        step += f" of {number(self.pixels[0])} x {number(self.pixels[1])} pixels" if self.pixels else ""
        step += (
            f" in documents of {self.documents}" if self.lengths else " on each side" if self.encoder_decoder else ""
        )
        frozen = self.training and self.trained < self.parameters
        return f"{step} that trains {number(self.trained)} of {number(self.parameters)} parameters" if frozen else step

    @property
    def documents(self) -> str:
        """The documents of a sequence, ``4 x 2,048``, or ``37 of 12 to 4,096`` if they have many lengths; '' for a whole one."""
        lengths = Counter(self.lengths)
        if len(lengths) > MAX_LENGTHS_LISTED:
            return f"{len(self.lengths)} of {number(min(lengths))} to {number(max(lengths))}"
        return " + ".join(f"{times} x {number(length)}" for length, times in lengths.items())

    @property
    def ran_once(self) -> int:
        """FLOPs of a step if nothing is recomputed: the numerator of MFU."""
        return self.ran - self.recomputed

    @property
    def with_chosen_keys(self) -> int:
        """FLOPs of a step if attention were on the chosen keys alone, with nothing recomputed."""
        lengths = self.lengths or (self.seq,)
        pairs = sum(length * min(length, self.topk) for length in lengths)
        on_chosen = self.attention * pairs // sum(length**2 for length in lengths)
        return self.ran_once - self.attention + on_chosen

    @property
    def target_row(self) -> str:
        """The name of the row to which the causes of each formula lead."""
        return ROW_WITHOUT_RECOMPUTATION if self.recomputed else ROW_ALL

    @property
    def exact(self) -> tuple[str, ...]:
        """The formulas that give exactly the work that ran once. One whose causes cancel out is right by accident and left
        out."""
        return tuple(q.name for q in self.quotes if q.step == self.ran_once and not q.causes)

    @property
    def formulas_without_number(self) -> dict[str, list[str]]:
        """The formulas that have no number, by the reason."""
        reasons: dict[str, list[str]] = {}
        for quote in self.quotes:
            if quote.step is None:
                reasons.setdefault(quote.reason, []).append(quote.name)
        return reasons


def _images(number_: int) -> str:
    return f"{number_} image" + ("s" if number_ > 1 else "")


def facts_of(collected: Collected) -> Mapping[str, Any] | None:
    """B, T and the lengths of packed documents, as the formulas read them; the numbers of ``parameters`` and of those that are
    ``trained``; and the FLOPs that are ``recurrent``, those of an ``indexer``, and those of ``attention`` on all keys. None if no
    formula could read the model."""
    from ...adapters.counters.formulas.parameter_products import copies_of, in_indexer
    from ...adapters.counters.formulas.terms import attention
    from ...adapters.counters.formulas.trace_products import read_trace

    ledgers = (ledger for ledger in collected.ledgers if isinstance(ledger, Ledger) and ledger.sightings)
    read = [sighting.op.attrs for sighting in next((ledger.sightings for ledger in ledgers), ())]
    if not read:
        return None
    facts, layers = read[0], read[0]["layers"]
    weights = {held["name"]: held for held in read if "numel" in held}.values()
    counts = {"parameters": weights, "trained": [held for held in weights if held["trainable"]]}
    (trace,) = (t for t in collected.traces if isinstance(t, Trace))
    ran = read_trace(trace, list(weights), layers)
    inside = [op for op in ran.products if ran.layer[op.id] and not in_indexer(op)]
    scores = [op for op in inside if ran.attends(op)]
    whole = {"n", "dqk", "dv"} <= set(facts) and _flops(scores, FORWARD) == 2 * facts["all_layers"] * attention(
        dict(facts, window=0)
    )
    return {
        **facts,
        "recurrent": _flops(op for op in inside if op.id not in ran.read and not ran.attends(op)),
        "indexer": _flops(op for op in ran.products if in_indexer(op)),
        "attention": _flops(scores) if whole else 0,
        **{name: sum(held["numel"] * copies_of(held) for held in of) for name, of in counts.items()},
    }


def _flops(ops: Iterable[Op], phase: str = "") -> int:
    """FLOPs of products, without recomputed ones, or of one phase."""
    from ...adapters.counters.bridge import sum_of

    return 2 * sum_of([op for op in ops if op.phase == phase or (not phase and op.phase != RECOMPUTATION)]).mac


def compare_formulas(result: Answer, facts: Mapping[str, Any], name: str) -> Comparison:
    """The comparison of a run with formulas that read these facts; the result has the totals of the convention causal."""
    (trace,) = result.traces
    convention = result.convention
    statements = {s.from_: s for s in result.statements if s.to == trace.name}
    ran, recomputed = trace.totals[convention.name], sum_recomputed(trace, convention)
    quotes = []
    for ledger in result.ledgers:
        statement = statements.get(ledger.counter)
        causes = _causes_without_recomputation(statement.by_cause(), recomputed) if statement is not None else {}
        residual = statement.residual if statement is not None else None
        short = ledger.counter.removeprefix(PREFIX)
        quotes.append(Quote(short, ledger.normalised_total, causes, residual, ledger.reason))
    kept = trace.totals.get(CAUSAL.name)
    gap = next(iter(trace.gaps(CAUSAL)), None)
    capacity = facts.get("capacity", 0) if facts.get("evenly") else 0
    return Comparison(
        model=name,
        training=result.pass_ != "forward",
        batch=facts["B"],
        seq=facts["T"],
        lengths=tuple(facts.get("lengths") or ()),
        encoder_decoder=bool(facts.get("sides")),
        parameters=facts["parameters"],
        trained=facts["trained"],
        recurrent=facts["recurrent"],
        configured_mtp_layers=0 if facts.get("beyond") else facts.get("nextn", 0),
        topk=facts.get("topk", 0) if facts.get("indexer") else 0,
        indexer=facts.get("indexer", 0),
        attention=facts.get("attention", 0),
        ran=ran,
        causal=None if kept is None else kept - sum_recomputed(trace, CAUSAL),
        causal_note=gap.reason if gap is not None else masks(CAUSAL, result.traces),
        recomputed=recomputed,
        versions=trace.versions,
        quotes=tuple(sorted(quotes, key=lambda q: (q.step is None, abs((q.step or 0) - ran + recomputed), q.name))),
        exit_code=result.exit_code,
        images_only=bool(facts.get("pictures")),
        text_tokens=facts.get("text", 0),
        images=facts.get("images", 0),
        image_tokens=facts.get("taken", 0),
        pixels=tuple(facts.get("pixels") or ()),
        capacity=capacity,
        dropped=max(facts["T"] - capacity * facts["E"], 0) if capacity else 0,
    )


def _causes_without_recomputation(causes: Mapping[Cause, int], recomputed: int) -> dict[str, int]:
    """The amounts that lead to the work that ran once, MFU's numerator: all of a statement's, which lead to the work that ran,
    minus the recomputed work; formulas for HFU include it."""
    less = {**causes, Cause.RECOMPUTED: causes.get(Cause.RECOMPUTED, 0) - recomputed}
    return {cause.value: less[cause] for cause in sorted(less, key=ORDER.__getitem__) if less[cause]}


def sum_recomputed(trace: TraceResult, convention: Convention) -> int:
    """FLOPs of activations that are computed again in a step."""
    return sum(convention.flops(row.work) for row in trace.rows if row.phase == RECOMPUTATION)
