"""The statement from the GPU's count to the products of the trace, kernel by kernel, for ``reconcile run --ncu``.

A kernel belongs to the outermost operator around it that the trace has with the same sizes.  Calls of an operator with equal
sizes belong to its layers in order.  What a kernel does beyond the operator's products (or less) is predicted from its name, its
grid and the sizes (rules.py), never from what was counted; what is left is the residual.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...core.causes import ORDER, Cause, State
from ...core.conventions import MATMUL
from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED
from ...core.records import FORWARD, INFERENCE, LOSS, OPTIMIZER, RECOMPUTATION
from ...core.results import Adjustment, Evidence, Residual, Statement, TraceResult, TraceRow
from ...engine.statements import close_statement
from . import rules
from .ncu import Counted
from .tiles import Case

GPU, TRACE = "the GPU's kernels", "products of the trace"
COUNTER = "ncu"
FOREIGN = "(not in the trace)"
_APART = (FORWARD, LOSS, INFERENCE, OPTIMIZER, RECOMPUTATION)
"""Phases whose calls are calls of their own; the parts of a gradient are one call."""

Key = tuple[str, tuple[tuple[int, ...], ...]]
"""An operator and the sizes of its tensors."""


@dataclass(frozen=True, slots=True)
class Row:
    """An operator at a layer: what the GPU counted for it beside what the trace has.

    Attributes:
        layer: The layer; several with commas if the operator did not run as often as in the trace.
        op: The operator.
        calls: How often it runs in the trace; of an operator that the trace has not, the number of its kernels.
        gpu: FLOPs of products that the GPU counted.
        trace: FLOPs of the trace, under ``matmul``.
        kernels: The names of the kernels that computed them; () if none ran.
        lines: The difference by cause: the cause, FLOPs to add to ``gpu``, and why.
        residual: The FLOPs between them that no line explains.
        reason: Why there is a residual; '' without one.
    """

    layer: str
    op: str
    calls: int
    gpu: int
    trace: int
    kernels: tuple[str, ...]
    lines: tuple[tuple[Cause, int, str], ...]
    residual: int
    reason: str

    @property
    def is_witnessed(self) -> bool:
        """Whether the GPU's count leads to the trace's without a residual."""
        return self.residual == 0 and bool(self.kernels)


@dataclass(frozen=True, slots=True)
class Witness:
    """What the GPU says of a trace. ``kernels`` is how many launches the file has, ``foreign`` what ran outside the trace."""

    trace: TraceResult
    kernels: int
    rows: tuple[Row, ...]
    foreign: tuple[Row, ...]
    statement: Statement

    @property
    def witnessed_flops(self) -> int:
        """FLOPs of the trace whose rows are witnessed."""
        return sum(row.trace for row in self.rows if row.is_witnessed)

    @property
    def exit_code(self) -> int:
        return EXIT_OK if self.statement.state in (State.EQUAL, State.EXPLAINED) else EXIT_UNEXPLAINED


@dataclass(slots=True)
class _Group:
    """Rows of the trace that are one operator of a layer: the parts of a gradient stand together."""

    rows: list[TraceRow]

    @property
    def calls(self) -> int:
        return max(row.calls for row in self.rows)

    @property
    def flops(self) -> int:
        return sum(MATMUL.flops(row.work) for row in self.rows)


def witness(trace: TraceResult, counted: Sequence[Counted]) -> Witness:
    """Match the kernels with the products of a trace, and state the difference."""
    groups = _groups(trace)
    calls, foreign = _calls(counted, groups)
    rows: list[Row] = []
    for key, of_key in groups.items():
        ran = calls.get(key, {})
        wanted = sum(group.calls for group in of_key)
        if ran and len(ran) != wanted:
            rows.append(_miscounted_row(key, of_key, ran, wanted))
            continue
        left = [ran[number] for number in sorted(ran)]
        for group in of_key:
            taken, left = left[: group.calls], left[group.calls :]
            rows.append(_row(key, group, taken))
    strange = tuple(_foreign(foreign))
    order = {row.layer: i for i, row in reversed(list(enumerate(trace.rows)))}
    rows.sort(key=lambda row: order.get(row.layer, len(order)))
    return Witness(trace, len(counted), tuple(rows), strange, _statement(rows, strange))


def _groups(trace: TraceResult) -> dict[Key, list[_Group]]:
    products = [row for row in trace.rows if row.work.mac]
    found: dict[Key, dict[tuple[str, str], _Group]] = defaultdict(dict)
    for row in products:
        place = (row.layer, row.phase if row.phase in _APART else "")
        found[_key(row)].setdefault(place, _Group([])).rows.append(row)
    return {key: list(groups.values()) for key, groups in found.items()}


def _key(row: TraceRow) -> Key:
    return row.op, tuple(tuple(d or 0 for d in t.shape) for t in row.inputs if t.shape)


def _calls(
    counted: Iterable[Counted], groups: dict[Key, list[_Group]]
) -> tuple[dict[Key, dict[int, list[Counted]]], list[Counted]]:
    """Kernels by operator and call, and the products of kernels that are in no operator of the trace."""
    calls: dict[Key, dict[int, list[Counted]]] = defaultdict(dict)
    foreign = []
    for one in counted:
        around = next((each for each in one.launch.ranges if (each.op, each.sizes) in groups), None)
        if around is not None:
            calls[around.op, around.sizes].setdefault(around.call, []).append(one)
        elif _flops(one):
            foreign.append(one)
    return calls, foreign


def _flops(one: Counted) -> int:
    """FLOPs of products: those of tensor cores, else the threads' multiply-adds in a kernel that is made for products."""
    if one.tensor:
        return one.tensor
    return 2 * one.fma if rules.MATRIX_KERNELS.search(one.launch.short) else 0


def _add_flops(kernels: Iterable[Counted]) -> tuple[int, tuple[str, ...]]:
    """FLOPs of products of these kernels, and the names of those that have some."""
    made = [(one.launch.short, flops) for one in kernels if (flops := _flops(one))]
    return sum(flops for _, flops in made), tuple(dict.fromkeys(name for name, _ in made))


def _row(key: Key, group: _Group, calls: Sequence[Sequence[Counted]]) -> Row:
    first = group.rows[0]
    gpu, names = _add_flops(one for call in calls for one in call)
    if not names:
        reason = "no kernel of the file ran for it: it is not witnessed"
        return Row(first.layer, first.op, group.calls, 0, group.flops, (), (), group.flops, reason)
    said = [_apply_rules(call, key, group) for call in calls]
    lines: Counter[tuple[Cause, str]] = Counter()
    for each in said:
        for cause, amount, why in each if not isinstance(each, str) else ():
            lines[cause, why] -= 2 * amount
    kept = tuple((cause, amount, why) for (cause, why), amount in lines.items() if amount)
    residual = group.flops - gpu - sum(amount for _, amount, _ in kept)
    reason = next(
        (each for each in said if isinstance(each, str)), "the kernel counts another number than its tiles give"
    )
    return Row(first.layer, first.op, group.calls, gpu, group.flops, names, kept, residual, reason if residual else "")


def _apply_rules(call: Sequence[Counted], key: Key, group: _Group) -> list[tuple[Cause, int, str]] | str:
    """What the rules say of the kernels of one call, in multiply-adds by cause; a sentence if they say nothing."""
    row, times = group.rows[0], group.calls
    macs, masked = (sum(getattr(r.work, part) for r in group.rows) // times for part in ("mac", "masked"))
    outputs = tuple(tuple(d or 0 for d in t.shape) for t in row.outputs if t.shape)
    seen: Counter[int] = Counter()
    more: list[tuple[Cause, int, str]] = []
    share = 0
    for one in call:
        if not _flops(one):
            continue
        kind = rules.rule_number(one.launch)
        product = rules.predict(one.launch, Case(key[0], key[1], outputs, macs, masked, seen[kind]))
        seen[kind] += 1
        if product is None and "winograd" in one.launch.short:
            return f"{one.launch.short} is Winograd's algorithm, whose products are others than the operator's"
        if product is None:
            return f"no rule says what {one.launch.short} multiplies"
        share += product.share
        more += product.more
    return more if share == macs else "its kernels, taken together, are not the products of this operator"


def _miscounted_row(key: Key, groups: Sequence[_Group], ran: dict[int, list[Counted]], wanted: int) -> Row:
    """An operator that did not run as often as in the trace: one row for all its layers."""
    reason = f"{key[0]} on these sizes ran {len(ran)} times on the GPU and {wanted} times in the trace"
    gpu, kernels = _add_flops(one for call in ran.values() for one in call)
    trace = sum(group.flops for group in groups)
    layers = ", ".join(dict.fromkeys(group.rows[0].layer or "(model)" for group in groups))
    return Row(layers, key[0], wanted, gpu, trace, kernels, (), trace - gpu, reason)


def _foreign(kernels: Sequence[Counted]) -> Iterable[Row]:
    """Products that no operator of the trace has, by operator."""

    def operator(one: Counted) -> str:
        return one.launch.ranges[-1].op if one.launch.ranges else "(no range)"

    for op, some in groupby(sorted(kernels, key=operator), operator):
        ran = list(some)
        gpu, names = _add_flops(ran)
        yield Row(FOREIGN, op, len(ran), gpu, 0, names, (), -gpu, "the trace has no such operator on these sizes")


def _statement(rows: Iterable[Row], foreign: Iterable[Row]) -> Statement:
    every = [*rows, *foreign]
    lines = [
        Adjustment(cause, row.layer, row.op, COUNTER, amount, (_evidence(cause, row, why),))
        for row in every
        for cause, amount, why in row.lines
    ]
    lines.sort(key=lambda line: ORDER[line.cause])
    residuals = [Residual(row.layer, row.residual, f"{row.op}: {row.reason}") for row in every if row.residual]
    totals = (sum(row.gpu for row in every), sum(row.trace for row in every))
    return close_statement(GPU, TRACE, totals, lines, residuals)


def _evidence(cause: Cause, row: Row, why: str) -> Evidence:
    kernel = ", ".join(row.kernels)
    return Evidence(
        "from",
        COUNTER,
        kernel,
        "reconcile/products/kernels/rules.py",
        cause,
        None,
        (),
        (),
        1,
        row.calls,
        row.layer,
        formula=why,
    )
