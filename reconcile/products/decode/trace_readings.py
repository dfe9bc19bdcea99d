"""Readings of a trace, part of the list in grammar.py: its work by convention, by part and by layer, and its parameters.

``product_layers`` are the layers that multiply matrices, and ``group_layers`` names layers of equal numbers together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ...align.alignment import Alignment
from ...core.conventions import BUILT_IN, Convention
from ...core.number_format import number
from ...core.records import FLOP, FORWARD, MAC, Op, Trace
from ...core.work import MASKED, SINGLE_COMPONENTS
from ...work import COMPONENTS, ZERO, UnknownWork, Work, known_part, numel
from .printed_figure import PARAMETER
from .readings import DERIVED, LAYER, PART, WORK, Candidate, derive, list_names
from .table_readings import of_tables

BIASED = frozenset(
    ["BiasAdd", "aten.linear", "aten.addmm", "aten.baddbmm", "aten.conv1d", "aten.conv2d", "aten.conv3d",
     "aten.convolution", "aten._convolution"]
)  # fmt: skip
"""Ops whose additions are biases. The biases of a fused recurrent op cannot be told from its gates."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Work, and the additions of it that are biases."""

    work: Work = ZERO
    bias: int = 0

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.work + other.work, self.bias + other.bias)

    def __mul__(self, times: int) -> Parts:
        return Parts(self.work * times, self.bias * times)


def of_trace(
    trace: Trace,
    align: Alignment,
    batch: int,
    conventions: Mapping[str, Convention],
    notes: list[str],
    source: str,
) -> Iterator[Candidate]:
    """The readings of one trace. Of an incomplete trace there are readings of the complete layers, and of its totals under the
    conventions under which it is complete; ``notes`` then gets a sentence."""
    assessed = [(op, known_part(op)) for op in trace.ops]
    known = [(op, _parts(op, part.work)) for op, part in assessed]
    unknown = [(op.op, op.layer, part.reason) for op, part in assessed if part.unknown]
    unknown += [(problem.op, problem.layer, problem.reason) for problem in trace.problems]
    gaps = frozenset(COMPONENTS if trace.problems else ()).union(*(part.unknown for _, part in assessed))
    complete = (
        {name: c for name, c in conventions.items() if not c.weighs(gaps)}
        if gaps <= {*SINGLE_COMPONENTS, MASKED}
        else {}
    )
    if unknown:
        if complete:
            yield from _whole(known, batch, complete)
        under = f" but under {list_names(list(complete))}" if complete else ""
        ops = list_names([f"{op} ({why})" for op, why in sorted({op: why for op, _, why in reversed(unknown)}.items())])
        notes.append(
            f"trace@{trace.framework} in {source} is incomplete: the work of {ops} is unknown. Its total cannot be read{under}, "
            "nor can the layers that have such an op; its other layers are read, and so is every counter."
        )
    else:
        yield from _whole(known, batch, conventions)
        yield from of_tables([(op, parts.work) for op, parts in known])
    yield from _parameters(trace)
    open_layers = {align.layer(trace.framework, layer) for _, layer, _ in unknown}
    yield from _layers({k: v for k, v in _by_layer(known, trace, align).items() if k not in open_layers})


def _parts(op: Op, work: Work) -> Parts:
    """The known work of one call, with its biases."""
    return Parts(work, work.add if op.op in BIASED else 0)


def _whole(known: list[tuple[Op, Parts]], batch: int, conventions: Mapping[str, Convention]) -> Iterator[Candidate]:
    total = _sum(known)
    yield from _conventional(total, conventions, WORK, "the work that ran")
    yield from _unconventional(total, conventions)
    if batch > 1:
        for whole in _conventional(total, conventions, WORK, "the work that ran"):
            if whole.value % batch == 0:
                terms = f"{number(whole.value)} / {batch}"
                yield derive(whole.value // batch, DERIVED, whole.unit, f"{whole.what}, per sample", terms)
    phases = list(dict.fromkeys(op.phase for op, _ in known))
    for phase in phases if len(phases) > 1 else ():
        part = _sum([(op, parts) for op, parts in known if op.phase == phase])
        rank = WORK if phase == FORWARD else PART
        yield from _conventional(part, conventions, rank, f"the {phase} work that ran")
    steps = [(op._replace(calls=1), parts) for op, parts in known if op.calls > 1 and parts.work]
    if steps:
        once = _sum(steps) + _sum([(op, parts) for op, parts in known if op.calls <= 1])
        yield from _conventional(once, conventions, DERIVED, "the work that ran, every loop body once")
        yield from _conventional(_sum(steps), conventions, DERIVED, "one step: the loop bodies, once")


def _sum(ops: list[tuple[Op, Parts]]) -> Parts:
    total = Parts()
    for op, parts in ops:
        total = total + parts * op.calls
    return total


def _conventional(parts: Parts, conventions: Mapping[str, Convention], rank: int, what: str) -> Iterator[Candidate]:
    """The MACs, and the FLOPs under every convention."""
    macs = parts.work.mac
    if macs:
        yield derive(macs, rank, MAC, f"{what}, in MACs (half of matmul)", f"{number(2 * macs)} / 2")
    for name, convention in conventions.items():
        value = convention.flops(parts.work)
        if value > 0:
            how = spell_work(parts.work, convention)
            yield Candidate(value, rank, FLOP, f"{what}, in FLOPs by the convention {name}", how)


def _unconventional(parts: Parts, conventions: Mapping[str, Convention]) -> Iterator[Candidate]:
    """With or without biases, with or without the first add of a dot product, doubled, halved."""
    macs, dots, bias = parts.work.mac, parts.work.accumulators, parts.bias
    products, b = "the products that ran", number(bias)
    if macs:
        m, first, counted = f"2 × {number(macs)}", 2 * macs - dots, macs + bias
        less, both = f"{m} − {number(dots)}", f"{number(macs)} + {b}"
        yield derive(4 * macs, PART, FLOP, f"{products}, FLOPs doubled as if they were MACs", f"2 × {m}")
        yield derive(first, PART, FLOP, f"{products} at 2K − 1 per dot product", less)
        if bias:
            yield derive(2 * macs + bias, PART, FLOP, f"{products}, and their biases", f"{m} + {b}")
            at_first = f"{products} at 2K − 1 per dot product, and their biases"
            yield derive(first + bias, PART, FLOP, at_first, f"{less} + {b}")
            yield derive(counted, PART, MAC, f"{products} in MACs, a bias counted as a MAC", both)
            twice = f"{products} in MACs × 2, a bias counted as a MAC"
            yield derive(2 * counted, PART, FLOP, twice, f"2 × ({both})")
    for name in (name for name in ("all", "textbook") if name in conventions):
        value = BUILT_IN[name].flops(parts.work)
        if value <= 0 or value == 2 * macs:
            continue
        what, v = f"the work that ran by the convention {name}", number(value)
        yield derive(2 * value, DERIVED, FLOP, f"{what}, doubled", f"2 × {v}")
        if value % 2 == 0:
            yield derive(value // 2, DERIVED, MAC, f"{what}, halved", f"{v} / 2")
        if bias:
            yield derive(value - bias, DERIVED, FLOP, f"{what}, without biases", f"{v} − {b}")


def spell_work(work: Work, convention: Convention) -> str:
    """The arithmetic of work under a convention: ``2 × 3,600 MACs + 144 add = 7,344``."""
    text = ""
    for name, count in work.items():
        weight = convention.weight(name)
        if not weight or not count:
            continue
        label = {"mac": "MACs", "accumulators": "first adds"}.get(name, name)
        times = "" if abs(weight) == 1 else f"{abs(weight)} × "
        sign = (" + " if weight > 0 else " − ") if text else ("" if weight > 0 else "−")
        text += f"{sign}{times}{number(count)} {label}"
    return f"{text} = {number(convention.flops(work))}"


def _parameters(trace: Trace) -> Iterator[Candidate]:
    """The elements of the parameters that the trace names; else of all variables that a TensorFlow function reads, if a node
    named after it reads each one."""
    handles = {op.id for op in trace.ops if op.op == "Placeholder" and op.outputs[0].dtype == "resource"}
    reads = [op for op in trace.ops if op.op == "ReadVariableOp" and f"{op.id}/resource" in handles]
    count = sum(trace.parameters.values())
    if handles and len(reads) == len(handles) and not count:
        with suppress(UnknownWork):
            count = sum(numel(op.outputs[0].shape) for op in reads)
    if count:
        yield Candidate(count, WORK, PARAMETER, "the number of parameters")


def _by_layer(known: list[tuple[Op, Parts]], trace: Trace, align: Alignment) -> dict[str, Work]:
    sums: dict[str, Work] = {}
    for op, parts in known:
        if parts.work:
            layer = align.layer(trace.framework, op.layer)
            sums[layer] = sums.get(layer, ZERO) + parts.work * op.calls
    return sums


def _layers(table: Mapping[str, Work]) -> Iterator[Candidate]:
    """Single layers: in MACs, and under the conventions matmul and all."""
    if len(table) < 2:
        return
    for value, names in group_layers({layer: work.mac for layer, work in table.items()}).items():
        yield Candidate(value, LAYER, MAC, f"{names}, in MACs")
        yield derive(2 * value, LAYER, FLOP, f"{names}, in FLOPs by the convention matmul", f"2 × {number(value)}")
    for value, names in group_layers({layer: BUILT_IN["all"].flops(work) for layer, work in table.items()}).items():
        yield Candidate(value, LAYER, FLOP, f"{names}, in FLOPs by the convention all")


def group_layers(sums: Mapping[str, int]) -> dict[int, str]:
    """``layer a`` or ``each of 3 layers: a, b, c``, by value; layers without work are left out."""
    groups: dict[int, list[str]] = {}
    for layer, value in sums.items():
        if value > 0:
            groups.setdefault(value, []).append(layer)
    return {
        value: f"layer {names[0]}" if len(names) == 1 else f"each of {len(names)} layers: {list_names(names)}"
        for value, names in groups.items()
    }


def product_layers(trace: Trace, align: Alignment) -> tuple[str, ...]:
    """Layers with multiply-adds, in the order of the pair."""
    known = [(op, _parts(op, known_part(op).work)) for op in trace.ops]
    return align.order(layer for layer, work in _by_layer(known, trace, align).items() if work.mac)
