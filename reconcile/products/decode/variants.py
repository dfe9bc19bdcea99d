"""Variants of a network, run where no reading has the number: another input size, another setting, the fused form.

A variant is no reading of the model. It is looked at only where no reading has the number, and it explains nothing: decode and
audit say what ran in it, and how often a random number would agree with one of all variants that ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.registry import frameworks, known_counters
from ...engine.settle import Collected
from ...launch.request import Point, RunRequest
from ...launch.runner import CollectAt, collect_at
from ...launch.user_models import text_of
from ...launch.workers.supervisor import Event
from ...model_zoo.loading import load_pair, pair_path, resolve
from ...model_zoo.pair import Input, PairError, Params
from .false_positives import by_chance
from .grammar import Source, candidates
from .printed_figure import PrintedFigure
from .readings import LAYER, WORK, Candidate
from .search import select_comparable

SIDES = (128, 160, 192, 224, 240, 256, 288, 299, 320, 384, 448, 480, 512, 640)
"""The sides of images for which networks are published."""
LENGTHS = (64, 128, 256, 384, 512, 1024, 2048, 4096)
"""Lengths of sequences."""
LEAST = 16
"""A shorter axis is no side of an image and no length of a sequence: it is channels, or a patch."""
FACTORS = ((1, 2), (2, 1))
"""Divisor and multiplier of each other value of a setting that is no side and no length: twice it, half of it."""
FUSED = "in its fused (deploy) form"
"""How a fused variant is called."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the network otherwise: in words, the ``words`` of a command line that ask for it, and its point."""

    what: str
    words: tuple[str, ...]
    point: Point


@dataclass(frozen=True, slots=True)
class Ran:
    """A variant that ran, and its readings: of a fused one those of a whole model, of others what ran, in MACs and in FLOPs."""

    variant: Variant
    readings: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A variant that has the figure, and the reading of it that is the figure."""

    variant: Variant
    reading: Candidate


def of_pair(model: str, overrides: Mapping[str, str]) -> list[Variant]:
    """The variants of a pair: one parameter each is another. What is 1 in a batch is no variant (per sample is a reading)."""
    try:
        pair = load_pair(pair_path(model))
        held = resolve(pair, dict(overrides))
    except (PairError, OSError):
        return []
    found = []
    for name, value in held.items():
        for other in _others(value, _axes(pair, held, name)):
            words = ("--set", f"{name}={str(other).lower() if isinstance(other, bool) else other}")
            point = Point({**overrides, name: words[1].partition("=")[2]})
            found.append(Variant(f"with {words[1]}", words, point))
    return found


def _axes(pair: Any, held: Mapping[str, Any], name: str) -> list[tuple[int, ...]]:
    """Which axes of each input change with a parameter, [] if it cannot be told."""
    if type(held[name]) is not int:
        return []
    try:
        before, after = (pair.inputs(Params({**held, name: value})) for value in (held[name], held[name] + LEAST))
    except Exception:  # a pair's own code, which may refuse that value
        return []
    return [
        tuple(axis for axis, (a, b) in enumerate(zip(one.shape, other.shape, strict=False)) if a != b)
        for one, other in zip(before, after, strict=False)
    ]


def _others(value: Any, axes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The other values of a parameter: of a side, of a length, or half and twice that of a whole number."""
    if isinstance(value, bool):
        return [not value]
    if not isinstance(value, int):
        return []
    moved = [axis for axis in axes if axis]
    if moved and all(axis == (0,) for axis in moved):
        return []
    if moved and value >= LEAST:
        return [other for other in (SIDES if any(len(a) > 1 for a in moved) else LENGTHS) if other != value]
    return [value * up // down for down, up in FACTORS if value * up >= down and value * up // down != value]


def of_inputs(inputs: Sequence[Input]) -> list[Variant]:
    """The variants of a model of the user's own: its inputs with other sides of pictures or other lengths, and its fused form."""
    found = []
    for held, others in _sizes(inputs):
        for other in others:
            sizes = ([other if n > 0 and size == held else size for n, size in enumerate(i.shape)] for i in inputs)
            changed = tuple(i._replace(shape=tuple(shape)) for i, shape in zip(inputs, sizes, strict=True))
            words = tuple(word for given in changed for word in ("--input", text_of(given)))
            found.append(Variant(f"at {other} in place of {held}", words, Point({}, changed)))
    return [Variant(FUSED, (), Point({}, tuple(inputs), fused=True)), *found]


def _sizes(inputs: Sequence[Input]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Every size that stands for a side (an input has it twice, one after the other) or for a length, with its other values."""
    sides = {a for i in inputs for a, b in zip(i.shape[1:], i.shape[2:], strict=False) if a == b >= LEAST}
    lengths = {i.shape[1] for i in inputs if len(i.shape) == 2 and i.shape[1] >= LEAST}
    for held in sorted(sides):
        yield held, tuple(side for side in SIDES if side != held)
    for held in sorted(lengths - sides):
        yield held, tuple(length for length in LENGTHS if length != held)


def run_variants(
    request: RunRequest, variants: Sequence[Variant], there: CollectAt | None, progress: Callable[[Event], None]
) -> tuple[Collected, list[Ran]]:
    """Run the variants beside one framework, on meta; those that the model refuses are left out, and so is every number that the
    network itself has as a whole. The network as it is runs first, as a worker gives up where its first point is refused, and is
    returned with them. Raises UsageError as a run does."""

    def tell(event: Event) -> None:
        """A form that the network does not have, such as a fused one, is left out and no failure."""
        progress(replace(event, phase="done") if event.phase == "failed" else event)

    asked = replace(request, device="meta", counters=_counters_on_meta(request), training="", context=None)
    points = [Point(request.overrides, request.inputs), *(variant.point for variant in variants)]
    first, *collected = (there or collect_at)(asked, points, tell, False)
    own = {c.value for c in candidates([Source("", first)])[0] if c.rank <= WORK}
    ran = [
        Ran(variant, found)
        for variant, at in zip(variants, collected, strict=True)
        if (found := tuple(c for c in _readings(at, variant.point.fused) if c.value not in own))
    ]
    return first, ran


def _counters_on_meta(request: RunRequest) -> tuple[str, ...]:
    """A counter of one framework that makes tensors without memory, so that no other framework runs; () for a model that is the
    user's own, whose framework is named, and where the pair has no such side."""
    if request.factories:
        return ()
    sides = load_pair(pair_path(request.model)).frameworks(tuple(frameworks()))
    first = (n for n, c in known_counters().items() if c.default and c.framework in sides)
    return tuple(name for name in first if frameworks()[known_counters()[name].framework].placed)[:1]


def _readings(collected: Collected, fused: bool) -> Iterator[Candidate]:
    table, _ = candidates([Source("", collected)])
    for c in table:
        if c.plain or c.doubled or (fused and c.rank < LAYER):
            yield c


def hits(ran: Sequence[Ran], wanted: PrintedFigure) -> list[Hit]:
    """The variants that have the figure, each with its simplest reading that is; those in the figure's unit first, then those
    nearest to it."""
    found = []
    for one in ran:
        agreeing = [c for c in select_comparable(one.readings, wanted) if wanted.holds(c.value)]
        if agreeing:
            found.append(Hit(one.variant, min(agreeing, key=lambda c: (c.unit != (wanted.counts or c.unit), c.rank))))
    return sorted(
        found,
        key=lambda hit: (
            not hit.variant.point.fused,
            hit.reading.unit != (wanted.counts or hit.reading.unit),
            abs(hit.reading.value - wanted.value),
        ),
    )


def chance(ran: Sequence[Ran], wanted: PrintedFigure, macs: int) -> float | None:
    """The share of random figures of as many digits that one of these variants has (false_positives.by_chance), around the
    ``macs`` of the network as it is; None for an exact one."""
    return by_chance([c for one in ran for c in select_comparable(one.readings, wanted)], wanted, macs)


def list_variants(request: RunRequest) -> list[Variant]:
    """The variants of a request's model; none of a model that is a file, whose sizes were chosen when it was written."""
    if request.files:
        return []
    if request.factories:
        return of_inputs(request.inputs) if request.inputs else [Variant(FUSED, (), Point({}, (), fused=True))]
    return of_pair(request.model, request.overrides)
