"""Terms of the published formulas: base counts and assumptions, as integer functions of a model's facts.

A term is the work of one forward pass of the whole batch; a training step has ``passes`` times as much.  It has a base, which is
compared with the products that ran, and assumptions, each of which replaces some facts of the model by others and adds what that
changes, with a cause of its own.

Facts are named as in the literature: h width, L layers, n and k query and key-value heads, d head width (dqk and dv of latent
attention, rq and rkv its ranks), f feed-forward width, m its matrices, V vocabulary, E experts, a active experts, fe and ns
width and number of routed and shared experts, fs the width of all shared ones where it is stated apart, T sequence length, B
sequences, tokens = B T, context the tokens in a cache before the call, window the keys that a token of a layer sees at most (0:
all), lengths the documents that are packed into each sequence, which see only themselves, hi and di heads and width of an
indexer, topk the keys that it chooses, indexed whether a layer has one (megatron.py), nextn the layers of multi-token
prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Facts = dict[str, Any]
Count = Callable[[Facts], int]
Refusal = tuple[Callable[[Facts], Any], str]
"""Which configurations a source does not cover, and the sentence for one, with the names of facts in braces."""

PARAMETER = "parameter"
WEIGHTS = "weights"
ROUTER = "router"
ATTENTION = "attention"
HEAD = "head"
WHOLE = "whole"
LAYER = "layer"
RECOMPUTED = "recomputation"
INDEXER = "indexer"
SCORES = "scores"
KINDS = (RECOMPUTED, PARAMETER, WEIGHTS, ROUTER, INDEXER, SCORES, ATTENTION, HEAD, LAYER, WHOLE)
"""Terms: the recomputation of a layer; one parameter; the weights of one layer; its router; its indexer's weights and scores; its
attention products; the head; and what stands for no product, in each layer and once."""

EXPERT = r"(^|\.)(?!\w*shared)\w*experts?\.(\w*_)?\d+\."
"""In the name of a parameter: an expert of a list of modules, by its number. Shared ones meet every token."""

DIFFERS = "formula-differs"
WIDE = "width-assumed"


class Assumption(NamedTuple):
    """Facts that a formula takes for the model's, the reason in print, and the cause that stands for the difference."""

    name: str
    facts: Callable[[Facts], Facts]
    formula: str
    cause: str = DIFFERS

    def when(self, holds: Callable[[Facts], Any], words: str = "") -> Assumption:
        """The assumption where this holds, and none elsewhere; ``words`` are added to its printed formula and say where."""
        return self._replace(facts=lambda f: self.facts(f) if holds(f) else {}, formula=self.formula + words)


class Term(NamedTuple):
    """One kind of term.

    Attributes:
        kind: What it counts, one of ``KINDS``.
        count: Gives its count from the facts of a place.
        formula: The formula in print.
        source: The lines of the source that state it.
        assumes: What it takes for the model's, each with the cause of the difference.
        passes: How often a forward pass and a training step contain it.
        cause: That of a term which stands for no product that ran, ``LAYER`` and ``WHOLE``.
        plain: Whether it counts single operations, not multiply-adds.
        name: Its name if two are of one kind; '' otherwise.
    """

    kind: str
    count: Count
    formula: str
    source: str = ""
    assumes: tuple[Assumption, ...] = ()
    passes: tuple[int, int] = (1, 3)
    cause: str = DIFFERS
    plain: bool = False
    name: str = ""

    @property
    def title(self) -> str:
        """Its name among the formula's terms."""
        return self.name or self.kind

    def cite(self, source: str, *assumes: Assumption, **more: Any) -> Term:
        """The term as a source states it, with what that assumes."""
        return self._replace(source=source, assumes=assumes, **more)


class Formula(NamedTuple):
    """One formula.

    Attributes:
        summary: What it counts, in a line.
        terms: Its terms, whose sum it is.
        forward: Whether it counts a forward pass by itself; False if its source states a training step only.
        cache: Whether it counts the keys of a cache.
        packed: Whether it is given the lengths of packed documents.
        frozen: How many passes of a training step it charges a frozen parameter.
        refusals: The configurations that its source does not cover.
    """

    summary: str
    terms: tuple[Term, ...]
    forward: bool = False
    cache: bool = False
    packed: bool = False
    frozen: int = 3
    refusals: Sequence[Refusal] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The facts of the configuration that it needs: a formula of parameters alone needs none."""
        kinds = {term.kind: term.assumes for term in self.terms}
        if WEIGHTS in kinds:
            return ("L", "h", "n", "d", "k", "f", "V", "m")
        width = () if WIDE in (assumption.cause for assumption in kinds.get(ATTENTION, ())) else ("d",)
        return ("L", "h", "n", *width) if ATTENTION in kinds else ()

    def refuses(self, facts: Facts) -> str:
        """The sentence for a configuration that its source does not cover, '' for one that it does."""
        return next((sentence.format_map(facts) for holds, sentence in self.refusals if holds(facts)), "")


def formula(summary: str, *terms: Term, packed: bool = False, **more: Any) -> Formula:
    """The formula that is the sum of these terms. One that is not given the lengths of ``packed`` documents takes a sequence for
    one."""
    unpacked = [
        term if packed or term.kind not in (ATTENTION, SCORES) else term._replace(assumes=(ONE_SEQUENCE, *term.assumes))
        for term in terms
    ]
    return Formula(summary, tuple(unpacked), packed=packed, **more)


def count_whole(term: Term, facts: Facts, number: int | None = None) -> int:
    """What a term counts in one pass, with its first ``number`` assumptions, or with all of them."""
    for assumption in term.assumes[:number]:
        facts = dict(facts, **assumption.facts(facts))
    return term.count(facts)


def count_of(term: Term, index: int | None, facts: Facts) -> int:
    """What a part counts in one pass: the base of a term (``index`` None), or the difference that an assumption makes after those
    before it."""
    before = count_whole(term, facts, index or 0)
    return before if index is None else count_whole(term, facts, index + 1) - before


# parameters


def count_parameter(facts: Facts) -> int:
    """A parameter's elements once per token; of routed experts a / E of them, unless ``a`` is assumed to be all of them."""
    count = int(facts["numel"]) * int(facts["tokens"])
    return count * int(facts["a"]) // int(facts["E"]) if facts["routed"] else count


def is_untied(facts: Facts) -> bool:
    """Whether a parameter is a table of nn.Embedding that is not the head's weight as well."""
    return bool(facts["embedding"]) and len(facts["owners"]) == 1


def parameters(words: str, unless: Callable[[Facts], Any]) -> Term:
    """The term of all parameters but some; ``words`` are what its printed formula says of them."""
    return Term(PARAMETER, lambda f: 0 if unless(f) else count_parameter(f), "numel B T" + words)


EVERY_PARAMETER = parameters("", lambda f: False)
WITHOUT_TABLES = parameters("; 0 for a weight of nn.Embedding", lambda f: f["embedding"])

# products


def _mlp_width(facts: Facts) -> int:
    """The width of a layer's feed-forward for one token, over all its active experts."""
    if not facts["moe"]:
        return int(facts["f"])
    routed, shared = int(facts["fe"]) * int(facts["a"]), int(facts["fe"]) * int(facts.get("ns", 0))
    return routed + (int(facts.get("fs") or 0) or shared)


def projections(facts: Facts) -> Fraction | int:
    """The weights of a layer's attention: h (q + 2 k d) + q h, or those of latent attention. A fraction where d is one."""
    h, n = int(facts["h"]), int(facts["n"])
    if facts.get("rkv"):
        rq, rkv, rope, dv, dqk = [int(facts.get(name) or 0) for name in ("rq", "rkv", "drope", "dv", "dqk")]
        query = rq * (h + n * dqk) if rq else h * n * dqk
        return query + h * (rkv + rope) + rkv * n * (dqk - rope + dv) + n * dv * h
    d = facts["d"]
    return h * (n * d + 2 * int(facts["k"]) * d) + n * d * h


def weights(facts: Facts) -> int:
    """Projections and the feed-forward's m matrices, of the active and the shared experts where there are any."""
    return int((projections(facts) + int(facts["h"]) * int(facts["m"]) * _mlp_width(facts)) * int(facts["tokens"]))


def count_twice_pairs(facts: Facts, twice: Callable[[int, int], int] = lambda n, keys: 2 * n * keys) -> Facts:
    """The fact ``twice_pairs``: twice the pairs of a query and a key in a sequence, an integer where a formula halves them.

    It is the sum of ``twice(length, keys)`` over the documents of the sequence (itself, if none are packed), where ``keys`` are
    those that a document's last token sees: those in the cache and in the document, or those of them in the layer's window; all
    pairs of a query and one of as many keys, unless ``twice`` is given."""
    cached = int(facts.get("context") or 0)
    lengths = [int(n) for n in facts.get("lengths") or [facts["T"]]]
    return {"twice_pairs": sum(twice(n, min(int(facts.get("window") or n + cached), n + cached)) for n in lengths)}


def with_window(facts: Facts, window: int) -> Facts:
    """The facts of attention where a token sees ``window`` keys at most; all of them if it is 0."""
    return {"window": window, **count_twice_pairs(dict(facts, window=window))}


def attention(facts: Facts) -> int:
    """Both products of attention, on all T (context + T) pairs of each document or on half of ``twice_pairs``."""
    widths = facts["dqk"] + facts["dv"]
    if "twice_pairs" not in facts:
        facts = {**facts, **with_window(facts, 0)}
    return int(facts["B"]) * int(facts["n"]) * widths * int(facts["twice_pairs"]) // 2


def count_full_attention(facts: Facts) -> int:
    """Both products of attention, of a layer that has no linear attention in its place."""
    return 0 if facts.get("linear") else attention(facts)


def count_state(facts: Facts) -> int:
    """The elements of the state of a layer's linear attention, once per token; 0 for another recurrence, such as Mamba's."""
    if not (facts.get("linear") and facts.get("lkd")):
        return 0
    return int(facts["lkd"]) * int(facts["lvd"]) * int(facts["lv"]) * int(facts["tokens"])


def lookup(facts: Facts) -> int:
    """A product of every token with the table of tokens."""
    return int(facts["h"]) * int(facts["V"]) * int(facts["tokens"])


LAYER_PRODUCTS = Term(WEIGHTS, weights, "(h (q + 2 k d) + q h + h m f) B T")
ROUTER_PRODUCT = Term(ROUTER, lambda f: f["h"] * f["E"] * f["tokens"] if f["moe"] else 0, "h E B T")
"""The product that chooses the experts, in a layer that has some."""
ATTENTION_PRODUCTS = Term(ATTENTION, attention, "B n (d_qk + d_v) T^2")
HEAD_PRODUCT = Term(HEAD, lambda f: lookup(f) * int(f.get("quarters", 4)) // 4, "h V B T")
"""``quarters`` of it are counted."""
LOOKUP_PRODUCT = Term(WHOLE, lookup, "h V B T", cause="lookup-as-product", name="lookup")
SOFTMAX = Term(LAYER, lambda f: 3 * f["B"] * f["n"] * f["T"] ** 2, "3 B n T^2", plain=True, name="softmax")
"""Three operations for every head and pair."""

# assumptions


def halve(twice: Callable[[int, int], int], words: str, name: str = "T^2/2") -> Assumption:
    """Attention on half of these pairs of a document (``count_twice_pairs``), in print ``words``."""
    return Assumption(name, lambda f: count_twice_pairs(f, twice), "attention on " + words, "attention-halved")


HALF = halve(lambda n, keys: n * n, "T^2 / 2 of the T^2 pairs, without half the diagonal")
LOCAL_HALF = halve(lambda n, keys: keys * (2 * n - keys), "T^2 / 2 of the T^2 pairs; with a window of w, T w - w^2 / 2")
EXACT_HALF = halve(
    lambda n, keys: keys * (2 * n + 1 - keys),
    "T (T + 1) / 2 of the T^2 pairs; with a window of w, w (w + 1) / 2 + (T - w) w",
    "T(T+1)/2",
)
WINDOW = Assumption(
    "window", count_twice_pairs, "min(window, keys) keys for every token of a layer with a window", "attention-windowed"
).when(lambda f: f.get("window"))
ONE_SEQUENCE = Assumption(
    "one document",
    lambda f: {"lengths": [f["T"]]},
    "all T^2 pairs of a sequence, also those of two documents in it",
    "attention-across-documents",
).when(lambda f: f.get("lengths"))
ONE_WIDTH = Assumption(
    "width",
    lambda f: dict.fromkeys(("d", "dqk", "dv"), int(f["h"]) // int(f["n"])),
    "heads of h // n, whatever the configuration says",
    WIDE,
)
EVEN_WIDTH = ONE_WIDTH._replace(
    facts=lambda f: dict.fromkeys(("d", "dqk", "dv"), Fraction(int(f["h"]), int(f["n"]))),
    formula="heads of h / n, whatever the configuration says",
)
"""n of them are h wide, also where n does not divide h. A fraction of a multiply-add in a layer is left out."""
ALL_EXPERTS = Assumption(
    "all experts", lambda f: {"a": f["E"]}, "all E experts for a token, not a of them", "all-experts-counted"
)
ALL_KEYS = Assumption("key heads", lambda f: {"k": f["n"]}, "as many key and value heads as query heads")
TWO = Assumption("two matrices", lambda f: {"m": 2}, "a feed-forward of two matrices")
THREE = Assumption("three matrices", lambda f: {"m": 3}, "a feed-forward of three matrices")
FOUR_WIDE = Assumption("feed-forward", lambda f: {"f": 4 * int(f["h"])}, "a feed-forward of 4 h")
PADDED = Assumption(
    "padding",
    lambda f: {"V": -(-int(f["V"]) // 128) * 128},
    "V rounded up to a multiple of 128 (one tensor-parallel rank)",
)
ALL_ROUTED = Assumption(
    "every layer", lambda f: {"moe": bool(f.get("E"))}, "experts in every layer, whatever the configuration says"
)
NO_SHARED = Assumption("no shared expert", lambda f: {"ns": 0, "fs": 0}, "no shared expert")

# refusals

NO_LATENT: Refusal = (
    lambda f: f.get("rkv"),
    "its source has one width of a head, and this model's attention is latent (kv_lora_rank)",
)
NO_EXPERTS: Refusal = (lambda f: f.get("E"), "its source has no term for experts, and this model has {E}")
NO_LINEAR: Refusal = (
    lambda f: f.get("lk"),
    "its source counts linear attention by terms of its own, which are not written here",
)
WINDOWLESS: Refusal = (
    lambda f: f["windowless"],
    "its source reads the width of a sliding window, and this model's config states none",
)
PLAIN_ONLY = (NO_EXPERTS, NO_LATENT)
