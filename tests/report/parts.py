"""What the sample results are made of: a model of two layers and its numbers, and records with most fields filled in.

`dense` multiplies (B, K) by (K, N) and adds a bias; `loop` multiplies (B, H) by (H, H) in each of T steps, adds a bias,
applies tanh, and in TensorFlow multiplies once more. Every number is derived here.
"""

from __future__ import annotations

from dataclasses import replace

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FLOP, MAC, Entry, Op, Tensor
from reconcile.core.results import Adjustment, Evidence, LedgerResult, Statement, TraceResult, TraceRow
from reconcile.core.work import Work

B, K, N, H, T = 2, 3, 4, 4, 5
DENSE = Work(mac=B * K * N, accumulators=B * N, add=B * N)
STEP = Work(mac=B * H * H, accumulators=B * H, add=B * H, special=B * H)
EXTRA = Work(mul=B * H)
F32 = "float32"
FROZEN, FUNCTION, RUNMETA = "tf.profiler@frozen", "tf.profiler@function", "tf.profiler@runmeta"
TF, TORCH = "trace@tf", "trace@torch"


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, F32)


def matmul(layer: str, calls: int = 1) -> Op:
    inputs = (tensor(B, K), tensor(K, N)) if layer == "dense" else (tensor(B, H), tensor(H, H))
    return Op(f"{layer}/MatMul", "MatMul", layer, inputs, (tensor(B, N),), {"transpose_a": False}, calls)


def row(framework: str, layer: str, op: str, work: Work, calls: int = 1) -> TraceRow:
    path = f"functional/{layer}" if framework == "tf" else f"net.{layer}"
    return TraceRow(
        f"{path}/{op}", layer, path, op, matmul(layer).inputs, (tensor(B, N),), calls, "forward", work * calls
    )


def trace(framework: str) -> TraceResult:
    rows = [row(framework, "dense", "linear", DENSE), row(framework, "loop", "cell", STEP, T)]
    if framework == "tf":
        rows.append(row(framework, "loop", "Mul", EXTRA, T))
    total = sum((r.work for r in rows), Work())
    return TraceResult(
        name=f"trace@{framework}",
        framework=framework,
        state=State.EQUAL,
        reason="",
        complete=True,
        device="cpu",
        versions={framework: "2.0"},
        rows=tuple(rows),
        unknown=(),
        no_arithmetic={"Reshape": 2, "Identity": 7} if framework == "tf" else {"aten.view": 1},
        integer_ops={"AddV2": 3} if framework == "tf" else {},
        totals={c.name: c.flops(total) for c in BUILT_IN.values()},
        notes=(),
    )


def evidence(cause: Cause, layer: str, counter: str, times: int = 1, component: str = "") -> Evidence:
    seen = (matmul(layer),)
    ids = (f"functional/{layer}/linear",)
    return Evidence("from", counter, "thop.linear", "thop/x.py:12", cause, None, seen, ids, 1, times, layer, component)


def line(cause: Cause, layer: str, counter: str, amount: int, op: str = "MatMul", **more: int | str) -> Adjustment:
    return Adjustment(cause, layer, op, counter, amount, (evidence(cause, layer, counter, **more),))  # type: ignore[arg-type]


def ledger(
    counter: str, unit: str, values: dict[str, int], state: State = State.EXPLAINED, **more: object
) -> LedgerResult:
    total = sum(values.values())
    made = LedgerResult(
        counter=counter,
        framework="tf" if counter.startswith("tf") else "torch",
        state=state,
        reason="",
        unit=unit,
        device="cpu",
        versions={"thop": "0.1"} if counter == "thop" else {},
        total=total,
        normalised_total=total * (2 if unit == MAC else 1),
        entries=tuple(Entry(f"e:{k}", k, "Linear", v, 1) for k, v in values.items()),
        checked=len(values),
        unchecked=0,
        mismatches=(),
        unsupported={},
        notes=(),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def blank(counter: str, state: State, reason: str) -> LedgerResult:
    return ledger(counter, FLOP, {}, state, total=None, normalised_total=None, reason=reason)


def statement(from_: str, to: str, start: int | None, end: int | None, *lines: Adjustment, **more: object) -> Statement:
    state = State.EXPLAINED if lines else State.EQUAL
    made = Statement(from_, to, state, "", start, end, lines, None if start is None else 0, ())
    return replace(made, **more)  # type: ignore[arg-type]


def reverse(made: Statement) -> Statement:
    lines = tuple(replace(a, amount=-a.amount) for a in made.adjustments)
    rest = tuple(replace(r, amount=-r.amount) for r in made.residuals)
    residual = None if made.residual is None else -made.residual
    return replace(
        made, from_=made.to, to=made.from_, from_total=made.to_total, to_total=made.from_total, adjustments=lines,
        residual=residual, residuals=rest,
    )  # fmt: skip


MM_DENSE, MM_STEP, BIAS, GATES = 2 * DENSE.mac, 2 * STEP.mac, DENSE.add, STEP.add
WORK = MM_DENSE + T * MM_STEP
