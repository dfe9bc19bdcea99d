"""Bridge from a formula's terms to the PyTorch trace: each term beside the products that it stands for, phase by phase.

A parameter stands for the products that read it (parameter_products.py), the weights of a layer for the products in it that read
a parameter, its router for the one that reads h x E of them, attention for the products of a layer that read none, the head for
the products outside of the layers that read one; an indexer's products are separate.  A product that no term stands for is booked
as it ran.  A parameter that no op of the trace read has a cause if the trace proves that, and is a residual if not.

A term's base is compared with these products.  If the forward pass of both is equal, or is with the first assumptions, or if
the products are those of windows of keys, each remaining assumption has a cause and an amount of its own; if not, it is
unknown whether the assumption is the reason, and the term differs as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from ....core.causes import CAUSES, Cause
from ....core.records import RECOMPUTATION, Op, Sighting, Trace
from ....work import COMPONENTS, MASKED, ZERO, Work
from ..bridge import Bridge, Item, View, make_item, unmet
from .parameter_products import (
    Facts,
    as_unsharded,
    cause_of,
    in_image_encoder,
    in_indexer,
    output_mixed_with_queries,
    passes_of,
    was_read,
)
from .rules import BOOK
from .table import parts
from .terms import ATTENTION, HEAD, KINDS, LAYER, PARAMETER, RECOMPUTED, WEIGHTS, WHOLE, WINDOW, Term
from .trace_products import PRODUCTS_ONLY, read_trace

REST = tuple(name for name in COMPONENTS if name not in ("mac", "accumulators"))
COUNTED = ("mac", MASKED)
"""What a term is compared with: all products, and those among them that a causal mask discards."""
PARAMETER_NOT_READ = (
    "no op of the trace read this parameter: the formula counts it, and nothing shows which work it stands for"
)
ONCE = (Cause.RECOMPUTED, "the formula has no term for activations that are computed again")
Parts = list[tuple[Sighting, Cause]]
"""The base of a term and its assumptions, each with its cause; that of a base is for a term that stands for no product."""


def bridge(view: View, trace: Trace) -> Bridge:
    """Items for every term, then for every op that no term stands for."""
    return Bridge(tuple(_Terms(view, trace).items()))


class _Terms:
    """The sightings of one formula beside one trace."""

    def __init__(self, view: View, trace: Trace) -> None:
        self.view = view
        name = view.counter.partition(":")[2]
        self.parts = parts(name)
        self.terms: dict[tuple[str, str], tuple[Term, Parts]] = {}
        for sighting in view.sightings:
            self._sort(sighting)
        weights: list[Facts] = [s.op.attrs for s in view.sightings if s.op.op == f"{name}/{PARAMETER}"]
        layers: list[str] = list(view.sightings[0].op.attrs["layers"]) if view.sightings else []
        self.of = read_trace(trace, weights, layers)
        self.claimed = set[str]()
        self._counted: dict[str, Work] = {}

    def _sort(self, sighting: Sighting) -> None:
        """Put a sighting to its term: the parameter's name or the layer, and the term."""
        if sighting.op.op not in self.parts:
            return
        term, index = self.parts[sighting.op.op]
        key = (str(sighting.op.attrs.get("name", sighting.op.layer)), term.title)
        named = term.cause if index is None else term.assumes[index].cause
        self.terms.setdefault(key, (term, []))[1].append((sighting, CAUSES[named]))

    def items(self) -> list[Item]:
        """All items."""
        made: list[Item] = []
        for kind in KINDS:
            for term, term_parts in self.terms.values():
                if term.kind == kind:
                    made += self._term(term, term_parts)
        for op, rest in self.of.rest:
            made += self._list_unclaimed(op) if rest is None else rest
        return made

    def _count_by_rule(self, sighting: Sighting) -> Work:
        op = sighting.op
        if op.id not in self._counted:
            rule = BOOK.of(op, self.view.versions)
            self._counted[op.id] = rule.compute(op) * sighting.copies if rule is not None else ZERO
        return self._counted[op.id]

    def _whole(self, sighting: Sighting) -> Work:
        """What it would count of a parameter if this rank had all of it."""
        op = sighting.op
        facts = as_unsharded(op.attrs)
        if facts == op.attrs:
            return self._count_by_rule(sighting)
        return self._count_by_rule(sighting._replace(op=op._replace(id=f"{op.id}/whole", attrs=dict(facts))))

    def _term(self, term: Term, term_parts: Parts) -> list[Item]:
        base, cause = term_parts[0]
        facts, passes = base.op.attrs, int(base.op.attrs["passes"])
        if term.kind == RECOMPUTED:
            return self._again(base, passes) if passes and self._count_by_rule(base) else []
        if term.kind in (LAYER, WHOLE):
            return [self._make_item([base], passes, (), cause)] if self._count_by_rule(base) else []
        if not any(self._whole(sighting) for sighting, _ in term_parts):
            return []
        if facts.get("padding"):
            return [self._make_item([base], passes, (), Cause.PADDED_SHARD)]
        everything = [sighting for sighting, _ in term_parts]
        ops = self._ops(term.kind, base.op)
        frozen = [op for op in ops if op.id in self.of.frozen]
        if (
            term.kind == WEIGHTS
            and not self._count_parts(everything, self.of.forward(ops))
            and self._count_parts(everything, self.of.forward(frozen))
        ):
            ops = frozen  # the weights that are trained beside them, such as adapters, are no weights of the formula
        self.claimed.update(op.id for op in ops)
        if term.kind == PARAMETER and not ops:
            return self._compare_unmultiplied(term_parts, passes)
        forward = self.of.forward(ops)
        taken = self._count_parts(everything, forward)
        within_windows = (
            term.count(dict(facts, **WINDOW.facts(facts))) * base.copies if term.kind == ATTENTION else None
        )
        windowed = not taken and forward == within_windows
        if windowed or (term.kind == PARAMETER and facts["name"] in self.of.balanced_experts):
            taken = 1
        holds = taken > 0
        sightings = everything[: taken or len(everything)]
        more = term_parts[len(sightings) :]
        covered = {phase for _, phases in passes_of(term.kind, passes) for phase in phases}
        halved = [s for s, why in more if holds and why is Cause.ATTENTION_HALVED and self._count_by_rule(s)]
        only = COUNTED[:1] if halved else COUNTED
        items: list[Item] = []
        for seen, phases in passes_of(term.kind, passes):
            part = [op for op in ops if op.phase in phases]
            why = self._why_differs(term.kind, sightings, seen, part, ops)
            why = Cause.ATTENTION_WINDOWED if windowed and why is Cause.FORMULA_DIFFERS else why
            items.append(self._make_item(sightings, seen, part, why, only=only))
        if holds:
            items += [
                self._make_item([s], passes, (), why) for s, why in more if self._count_by_rule(s) and s not in halved
            ]
        for sighting in halved:
            masked = [op for op in ops if op.phase in covered and self.of.sum([op]).masked]
            items.append(self._make_item([sighting], passes, masked, Cause.ATTENTION_HALVED, only=(MASKED,)))
        for op in ops:
            if op.phase not in covered:
                items.append(self._make_uncounted(op, "of a phase that the formula leaves out"))
        return items

    def _compare_unmultiplied(self, term_parts: Parts, passes: int) -> list[Item]:
        """A parameter that no product reads, with the reason why the formula counts it."""
        (base, _), *assumed = term_parts
        facts, gap = base.op.attrs, ""
        if facts["name"] in self.of.balanced_experts:  # an expert that no token chose
            why = cause_of(facts, self._count_by_rule(base).mac, 0, self.of.balanced_experts, self.of.partial_experts)
            parts = [(base, why), *assumed]
            return [self._make_item([part], passes, (), cause) for part, cause in parts if self._count_by_rule(part)]
        if facts["name"] in self.of.partial_experts:
            cause: Cause | None = Cause.ALL_EXPERTS_COUNTED
        elif not was_read(facts, self.of.ran):
            cause = Cause.PARAMETERS_NOT_READ if facts["name"] in self.of.unread else None
            gap = "" if cause else PARAMETER_NOT_READ
        elif output_mixed_with_queries(facts, self.of.tied):
            cause = Cause.TOKENS_ASSUMED
        else:
            cause = Cause.LOOKUP_AS_PRODUCT if facts["embedding"] else Cause.PARAMETERS_AS_PRODUCTS
        everything = [sighting for sighting, _ in term_parts]
        counts = any(self._count_by_rule(sighting) for sighting in everything)
        return [self._make_item(everything, passes, (), cause, gap=gap)] if counts else []

    def _again(self, term: Sighting, passes: int) -> list[Item]:
        """A forward pass that the formula assumes to be recomputed, beside the products that were recomputed."""
        ops = [op for op in self.of.inside.get(term.op.layer, ()) if op.phase == RECOMPUTATION]
        self.claimed.update(op.id for op in ops)
        same = self.of.sum(ops).mac == self._count_by_rule(term).mac * passes
        cause = None if same else Cause.FORMULA_DIFFERS if ops else Cause.RECOMPUTATION_ASSUMED
        return [self._make_item([term], passes, ops, cause)]

    def _count_parts(self, parts: list[Sighting], forward: int) -> int:
        """How many parts, from the base on, are together the multiply-adds of the forward pass; 0 if none are."""
        counts = accumulate(self._whole(part).mac for part in parts)
        return next((number for number, count in enumerate(counts, 1) if count == forward), 0)

    def _make_uncounted(self, op: Op, reason: str) -> Item:
        cause, reason = ONCE if op.phase == RECOMPUTATION else (Cause.OP_NOT_COUNTED, reason)
        return unmet(op, self.of.sum([op._replace(calls=1)]).only(COUNTED), cause, reason, only=COUNTED)

    def _ops(self, kind: str, term: Op) -> list[Op]:
        """The products that a term stands for."""
        if kind == PARAMETER:
            return self.of.tied[term.attrs["name"]]
        own = self.of.inside.get("" if kind == HEAD else term.layer, ())
        free = [op for op in own if op.id not in self.claimed]
        if kind == HEAD:
            return [op for op in free if op.id in self.of.read and not in_image_encoder(op, term.attrs)]
        return [op for op in free if self.of.kind_of(op) == kind]

    def _why_differs(
        self, kind: str, sightings: list[Sighting], seen: int, part: list[Op], ops: list[Op]
    ) -> Cause | None:
        """Why a term is not the products of some phases, ``part`` of all that it stands for; None if it is."""
        counted, ran = sum((self._count_by_rule(s).mac for s in sightings), 0) * seen, self.of.sum(part).mac
        if counted == ran:
            return None
        whole = sum(self._whole(s).mac for s in sightings) * seen
        frozen = [op for op in ops if op.id in self.of.frozen]
        left = self.of.forward(frozen) - self.of.sum([op for op in part if op.id in self.of.frozen]).mac
        if part and whole == ran:
            return Cause.LOCAL_PARAMETERS
        if ops and whole - ran == left:
            return Cause.FROZEN_NOT_DISCOUNTED
        if not part and ops:
            return Cause.BACKWARD_ASSUMED
        if kind == PARAMETER:
            return cause_of(sightings[0].op.attrs, counted, ran, self.of.balanced_experts, self.of.partial_experts)
        return Cause.FORMULA_DIFFERS

    def _make_item(
        self,
        sightings: list[Sighting],
        seen: int,
        part: Iterable[Op],
        cause: Cause | None,
        gap: str = "",
        only: tuple[str, ...] = COUNTED,
    ) -> Item:
        part, term = list(part), sightings[0].op
        times = (seen if cause is None else 1) if part else 0
        ran = self.of.sum(part)
        only = tuple(name for name in only if name != MASKED or ran.masked) or only
        return make_item(
            term,
            BOOK.of(term, self.view.versions),
            met=(s.op._replace(calls=s.copies) for s in sightings),
            counted=sum((self._count_by_rule(s) for s in sightings), ZERO),
            seen=seen,
            ran=ran.only(only) // times if times else ZERO,
            times=times,
            cause=cause,
            entry=sightings[0].entry,
            ops=tuple(op.id for op in part),
            gap=gap,
            only=only,
            unknown=self.of.unknown(part),
        )

    def _list_unclaimed(self, op: Op) -> list[Item]:
        """The work of a product that no term stands for; of one that a term stands for, all but its multiply-adds."""
        work = self.of.known[op.id].work
        if op.id not in self.claimed:
            return [unmet(op, work, *self._why(op))]
        first = Work(accumulators=work.accumulators)
        rest = work.only(REST)
        items = [unmet(op, first, None, "", only=("accumulators",))] if first else []
        items += [unmet(op, rest, Cause.OP_NOT_COUNTED, PRODUCTS_ONLY, only=REST)] if rest else []
        return items

    def _why(self, op: Op) -> tuple[Cause, str]:
        """Why the formula has no term for a product: the first of these that holds."""
        if op.phase == RECOMPUTATION:
            return ONCE
        of, missed = self.of, Cause.OP_NOT_COUNTED
        in_encoder, reads = bool(of.weights) and in_image_encoder(op, of.weights[0]), op.id in of.read
        outside = reads and not of.layer[op.id] and not of.pictures
        reasons = (
            (in_encoder, Cause.VISION_LEFT_OUT, "this product of the encoder of images"),
            (in_indexer(op), Cause.INDEXER_LEFT_OUT, "this product of the indexer"),
            (op.id in of.routers, missed, "the router"),
            (outside, Cause.HEAD_LEFT_OUT, "the weight of this product, which is outside of the layers"),
            (reads, missed, "the weight of this product"),
            (of.attends(op), Cause.ATTENTION_LEFT_OUT, "products that read no weight"),
            (True, missed, "a product without a weight that is not attention's"),
        )
        return next((cause, f"the formula has no term for {what}") for holds, cause, what in reasons if holds)
