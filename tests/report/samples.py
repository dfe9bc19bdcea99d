"""Results made by hand, of every state: a model of two layers, seen by counters that count it otherwise, and a training step.

`dense` multiplies (B, K) by (K, N) and adds a bias; `loop` multiplies (B, H) by (H, H) in each of T steps, adds a bias, applies
tanh, and in TensorFlow multiplies once more. The training step has two layers, one of them with two groups that a counter counts
twice, and a loss. Every number is derived here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, Convention
from reconcile.core.records import (
    FLOP,
    FORWARD,
    INPUT_GRADIENT,
    LOSS,
    MAC,
    OPTIMIZER,
    WEIGHT_GRADIENT,
    Entry,
    Op,
    Tensor,
)
from reconcile.core.results import (
    Adjustment,
    Evidence,
    LayerRow,
    LedgerResult,
    Mismatch,
    Residual,
    Statement,
    TraceResult,
    TraceRow,
    Unknown,
)
from reconcile.core.work import Work
from reconcile.engine.answer import Answer
from reconcile.engine.statements import reverse_statement

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


MM_DENSE, MM_STEP, BIAS, GATES = 2 * DENSE.mac, 2 * STEP.mac, DENSE.add, STEP.add
WORK = MM_DENSE + T * MM_STEP


FIRST, SECOND = B * K * N, B * N * N
"""Multiply-adds of either layer: (B, K) by (K, N), then (B, N) by (N, N)."""

STEP_WORK = {
    ("first", FORWARD): Work(mac=FIRST, accumulators=B * N, add=B * N),
    ("relu", FORWARD): Work(cmp=B * N),
    ("second", FORWARD): Work(mac=SECOND, accumulators=B * N),
    ("(loss)", LOSS): Work(add=B * N - 1, mul=3 * B * N, div=B * N + 1),
    ("second", INPUT_GRADIENT): Work(mac=SECOND, accumulators=B * N),
    ("second", WEIGHT_GRADIENT): Work(mac=SECOND, accumulators=N * N),
    ("relu", INPUT_GRADIENT): Work(cmp=B * N),
    ("first", WEIGHT_GRADIENT): Work(mac=FIRST, accumulators=K * N, add=(B - 1) * N),
    ("first", OPTIMIZER): Work(mul=K * N + N, add=K * N + N),
    ("second", OPTIMIZER): Work(mul=N * N, add=N * N),
}


def steps() -> TraceResult:
    rows = tuple(
        TraceRow(f"{phase}/{layer}", layer, layer, "op", (tensor(B, K),), (tensor(B, N),), 1, phase, work)
        for (layer, phase), work in STEP_WORK.items()
    )
    total = sum(STEP_WORK.values(), Work())
    return replace(
        trace("torch"),
        rows=rows,
        totals={c.name: c.flops(total) for c in BUILT_IN.values()},
        notes=("one training step",),
    )


def trained(convention: Convention = BUILT_IN["matmul"]) -> Answer:
    """PyTorch alone; flop_counter counts the first weight gradient twice, thop sees nothing."""
    ran = steps()
    total = 2 * (2 * FIRST + 3 * SECOND)
    proof = replace(evidence(Cause.FORMULA_DIFFERS, "first", "flop_counter"), ops=(f"{WEIGHT_GRADIENT}/first",))
    again = replace(line(Cause.FORMULA_DIFFERS, "first", "flop_counter", -2 * FIRST), evidence=(proof,))
    counted = {"first": 6 * FIRST, "second": 6 * SECOND}
    return Answer(
        model="steps",
        pass_="training",
        convention=convention,
        params={},
        environment={},
        description="",
        traces=(ran,),
        ledgers=(
            replace(blank("thop", State.NOT_COMPARABLE, "it sees the forward pass only"), framework="torch"),
            ledger("flop_counter", FLOP, counted),
        ),
        layers=(
            LayerRow(
                "first",
                {"torch": 4 * FIRST},
                {"flop_counter": counted["first"]},
                {"flop_counter": {Cause.FORMULA_DIFFERS: -2 * FIRST}},
                {},
            ),
            LayerRow("second", {"torch": 6 * SECOND}, {"flop_counter": counted["second"]}, {}, {}),
        ),
        statements=(statement("flop_counter", ran.name, sum(counted.values()), total, again),),
        exit_code=0,
    )


def with_a_hole() -> Answer:
    """The same, with an op in the second layer whose work is unknown."""
    result = trained()
    (ran,) = result.traces
    hole = Unknown("second", "aten.gru_backward", "7", "no work formula")
    reason = "the trace is incomplete: aten.gru_backward at layer second: no work formula"
    broken = replace(ran, complete=False, state=State.UNEXPLAINED, reason=reason, unknown=(hole,), totals={})
    return replace(
        result,
        traces=(broken,),
        ledgers=tuple(replace(x, state=State.NOT_COMPARABLE, reason=reason) for x in result.ledgers),
        layers=(result.layers[0], replace(result.layers[1], work={})),
        statements=(
            statement("flop_counter", ran.name, 1, None, state=State.NOT_COMPARABLE, reason=reason, residual=None),
        ),
        exit_code=1,
    )


def full(convention: Convention = BUILT_IN["matmul"]) -> Answer:
    """Under `matmul`, in every state but unexplained: frozen counts the loop once and the bias, thop doubles gates."""
    frozen = {"dense": MM_DENSE + BIAS, "loop": MM_STEP}
    thop = {"dense": DENSE.mac, "loop": T * (STEP.mac + GATES)}
    once = line(Cause.LOOP_COUNTED_ONCE, "loop", FROZEN, (T - 1) * MM_STEP, times=T)
    bias = line(Cause.OUTSIDE_CONVENTION, "dense", FROZEN, -BIAS, "BiasAdd")
    gates = line(Cause.OUTSIDE_CONVENTION, "loop", "thop", -2 * T * GATES, "GRU")
    missed = line(Cause.OP_NOT_COUNTED, "loop", "fvcore", T * MM_STEP, "aten.gru")
    frozen_total, thop_total = sum(frozen.values()), 2 * sum(thop.values())
    to_thop = replace(gates, amount=-gates.amount)
    down = {"state": State.FAILED, "reason": "the worker was killed after 600 s", "residual": None}
    return Answer(
        model="toy",
        pass_="forward",
        convention=convention,
        params={"batch": B, "steps": T, "shape": (K, N)},
        environment={"python": "3.11", "reconcile": "0.1.0"},
        description="Two layers.\n\nTensorFlow multiplies once more per step of `loop`.",
        traces=(trace("tf"), trace("torch")),
        ledgers=(
            blank(FUNCTION, State.FAILED, "the worker was killed after 600 s"),
            ledger(FROZEN, FLOP, frozen, notes=("The graph was frozen.",)),
            blank(RUNMETA, State.SKIPPED, "run statistics need a CPU"),
            ledger("thop", MAC, thop),
            ledger("fvcore", MAC, {"dense": DENSE.mac}, unsupported={"aten::gru": 1, "aten::tanh": T}),
            ledger("flop_counter", FLOP, {"dense": MM_DENSE, "loop": T * MM_STEP}, State.EQUAL),
        ),
        layers=(
            LayerRow(
                "dense",
                {"tf": MM_DENSE, "torch": MM_DENSE},
                {FROZEN: frozen["dense"], "thop": MM_DENSE, "fvcore": MM_DENSE, "flop_counter": MM_DENSE},
                {FROZEN: {Cause.OUTSIDE_CONVENTION: -BIAS}},
                {},
            ),
            LayerRow(
                "loop",
                {"tf": T * MM_STEP, "torch": T * MM_STEP},
                {FROZEN: MM_STEP, "thop": 2 * thop["loop"], "fvcore": 0, "flop_counter": T * MM_STEP},
                {
                    FROZEN: {Cause.LOOP_COUNTED_ONCE: once.amount},
                    "thop": {Cause.OUTSIDE_CONVENTION: gates.amount},
                    "fvcore": {Cause.OP_NOT_COUNTED: missed.amount},
                },
                {},
            ),
        ),
        statements=(
            statement(FUNCTION, TF, None, WORK, **down),
            statement(FROZEN, TF, frozen_total, WORK, once, bias),
            statement(RUNMETA, TF, None, WORK, state=State.SKIPPED, reason="run statistics need a CPU", residual=None),
            statement("thop", TORCH, thop_total, WORK, gates),
            statement("fvcore", TORCH, MM_DENSE, WORK, missed),
            statement("flop_counter", TORCH, WORK, WORK),
            statement(TF, TORCH, WORK, WORK),
            statement(FROZEN, "thop", frozen_total, thop_total, once, bias, to_thop),
            statement(FROZEN, "flop_counter", frozen_total, WORK, once, bias),
        ),
        exit_code=3,
        notes=("`nn.GRU` without `batch_first` reads | the batch as steps.",),
    )


def clean() -> Answer:
    """Only the counters that have totals: exit code 0."""
    result = full()
    keep = [x for x in result.ledgers if x.total is not None]
    names = {x.counter for x in keep} | {TF, TORCH}
    statements = tuple(s for s in result.statements if s.from_ in names and s.to in names)
    return replace(result, ledgers=tuple(keep), statements=statements, exit_code=0)


WRONG = 5


def unexplained() -> Answer:
    """thop reports WRONG MACs more at `loop` than its rule allows."""
    result = clean()
    rest = Residual("loop", -2 * WRONG, "the rule thop.gru does not hold here")
    ledgers = []
    for x in result.ledgers:
        if x.counter == "thop":
            assert x.total is not None
            entries = tuple(e._replace(value=e.value + WRONG) if e.layer == "loop" else e for e in x.entries)
            rule = entries[1].value - WRONG
            broken = Mismatch("e:loop", "loop", "GRU", "thop.gru", "thop/vision/calc_func.py:9", rule, rule + WRONG)
            total = x.total + WRONG
            x = replace(
                x,
                state=State.UNEXPLAINED,
                total=total,
                normalised_total=2 * total,
                entries=entries,
                mismatches=(broken,),
            )
        ledgers.append(x)
    return replace(
        result,
        ledgers=tuple(ledgers),
        layers=(result.layers[0], _off(result.layers[1])),
        statements=tuple(_broken(s, rest) for s in result.statements),
        exit_code=1,
    )


def _off(loop: LayerRow) -> LayerRow:
    counters = dict(loop.counters, thop=loop.counters["thop"] + 2 * WRONG)
    return replace(loop, counters=counters, residuals={"thop": -2 * WRONG})


def _broken(s: Statement, rest: Residual) -> Statement:
    if s.from_ == "thop":
        assert s.from_total is not None
        return replace(
            s, state=State.UNEXPLAINED, from_total=s.from_total + 2 * WRONG, residual=rest.amount, residuals=(rest,)
        )
    if s.to == "thop":
        return reverse_statement(_broken(reverse_statement(s), rest))
    return s


def incomplete() -> Answer:
    """torch runs an op without a formula: its trace has no total, and its counters have nothing to be compared with."""
    result = clean()
    reason = "the trace is incomplete: aten.linalg_solve has no formula"
    hole = Unknown("loop", "aten.linalg_solve", "net.loop/solve:0", "no work formula")
    torch = replace(
        trace("torch"), state=State.NOT_COMPARABLE, reason=reason, complete=False, unknown=(hole,), totals={}
    )
    nothing = {"state": State.NOT_COMPARABLE, "reason": reason, "to_total": None, "residual": None, "adjustments": ()}
    torch_names = {"thop", "fvcore", "flop_counter", TORCH}
    return replace(
        result,
        traces=(trace("tf"), torch),
        ledgers=tuple(
            replace(x, state=State.NOT_COMPARABLE, reason=reason) if x.counter in torch_names else x
            for x in result.ledgers
        ),
        layers=tuple(
            replace(x, work={"tf": x.work["tf"]}, causes={c: v for c, v in x.causes.items() if c == FROZEN})
            for x in result.layers
        ),
        statements=tuple(replace(s, **nothing) if s.to in torch_names else s for s in result.statements),  # type: ignore[arg-type]
        exit_code=1,
    )


def without_tf() -> Answer:
    """TensorFlow is not installed: its trace and counters are skipped, PyTorch's side stands."""
    result = clean()
    reason = "TensorFlow is not installed"
    tf = TraceResult(TF, "tf", State.SKIPPED, reason, False, "", {}, (), (), {}, {}, {}, ())
    nothing: dict[str, object] = {"state": State.SKIPPED, "reason": reason, "residual": None, "adjustments": ()}
    return replace(
        result,
        traces=(tf, result.traces[1]),
        ledgers=(blank(FROZEN, State.SKIPPED, reason), *result.ledgers[1:]),
        layers=tuple(
            replace(
                x,
                work={"torch": x.work["torch"]},
                counters={c: n for c, n in x.counters.items() if c != FROZEN},
                causes={c: n for c, n in x.causes.items() if c != FROZEN},
            )
            for x in result.layers
        ),
        statements=tuple(
            replace(s, **nothing, from_total=None, to_total=None if s.to == TF else s.to_total)  # type: ignore[arg-type]
            if s.from_ in (FROZEN, TF)
            else s
            for s in result.statements
        ),
        exit_code=3,
    )


def everything() -> Answer:
    """Under `all`, the two models differ really: TensorFlow multiplies once more per step."""
    result = clean()
    convention = BUILT_IN["all"]
    first, second = (t.totals["all"] for t in result.traces)
    extra = line(Cause.IMPLEMENTATION_DIFFERS, "loop", "", -T * EXTRA.mul, "Mul", component="mul")
    work = {
        name: {t.framework: sum(convention.flops(r.work) for r in t.rows if r.layer == name) for t in result.traces}
        for name in ("dense", "loop")
    }
    layers = tuple(LayerRow(name, work[name], {}, {}, {}) for name in work)
    return replace(
        result,
        convention=convention,
        ledgers=(),
        layers=layers,
        statements=(statement(TF, TORCH, first, second, extra),),
    )


def empty() -> Answer:
    """A run that found nothing at all."""
    none: dict[str, tuple[()]] = dict.fromkeys(("traces", "ledgers", "layers", "statements", "notes"), ())
    return replace(full(), description="", exit_code=3, **none)  # type: ignore[arg-type]


PAIRED = (full, clean, unexplained, incomplete, without_tf)
SAMPLES = (*PAIRED, everything, empty, trained, with_a_hole)

NASTY = "<script>alert(1)</script>|a\n`b` *c* __d__ [e](f) \u202eevil\x1b[31m $x$"


def renamed(result: Answer, old: str, new: str) -> Answer:
    """The same result with another layer name."""

    def swap(record: object) -> object:
        if record.layer != old:  # type: ignore[attr-defined]
            return record
        return record._replace(layer=new) if isinstance(record, Entry) else replace(record, layer=new)  # type: ignore[type-var]

    def all_of(records: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(swap(r) for r in records)

    return replace(
        result,
        traces=tuple(replace(t, rows=all_of(t.rows)) for t in result.traces),  # type: ignore[arg-type]
        ledgers=tuple(replace(x, entries=all_of(x.entries)) for x in result.ledgers),  # type: ignore[arg-type]
        layers=all_of(result.layers),  # type: ignore[arg-type]
        statements=tuple(
            replace(s, adjustments=all_of(s.adjustments), residuals=all_of(s.residuals))
            for s in result.statements  # type: ignore[arg-type]
        ),
    )


def letters(number: int) -> str:
    """A name of a layer without a number in it."""
    return "block_" + "".join("abcdefghij"[int(digit)] for digit in str(number))


def grown(layers: int, name: Callable[[int], str] = "block{}".format) -> Answer:
    """One counter that misses the bias in each of many layers."""
    result = clean()
    names = [name(i) for i in range(layers)]
    lines = [line(Cause.OUTSIDE_CONVENTION, name, FROZEN, -BIAS, "BiasAdd") for name in names]
    start, end = layers * (MM_DENSE + BIAS), layers * MM_DENSE
    rows = tuple(
        LayerRow(
            n,
            {"tf": MM_DENSE, "torch": MM_DENSE},
            {FROZEN: MM_DENSE + BIAS},
            {FROZEN: {Cause.OUTSIDE_CONVENTION: -BIAS}},
            {},
        )
        for n in names
    )
    held = (ledger(FROZEN, FLOP, dict.fromkeys(names, MM_DENSE + BIAS)),)
    return replace(result, ledgers=held, layers=rows, statements=(statement(FROZEN, TF, start, end, *lines),))
