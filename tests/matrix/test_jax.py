"""JAX in an environment of its own: traces of every kind of program against closed forms, and `reconcile run --jax`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from reconcile.core.records import UNENTERED, Trace, from_json
from reconcile.work import UnknownWork, Work, work_of
from tests.matrix.reports import found_in, python_of, run_here

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ENVIRONMENTS = Path(__file__).with_name("jax.toml")
NAMES = ("jax", "jax-0.12")
MODELS = Path(__file__).with_name("jax_models.py")
ROWS, WIDTH = 5, 6
PRODUCT = Work(mac=ROWS * WIDTH * WIDTH, accumulators=ROWS * WIDTH)
EACH = ROWS * WIDTH


@pytest.fixture(scope="module", params=NAMES)
def traces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    found = found_in(python_of(request.param, ENVIRONMENTS), MODELS, tmp_path_factory.mktemp("jax"))
    return {name: from_json(text) for name, text in found.items()}


def by_layer(trace: Trace) -> dict[str, Work]:
    found: dict[str, Work] = {}
    for op in trace.ops:
        work = work_of(op) * op.calls
        if work:
            found[op.layer] = found.get(op.layer, Work()) + work
    return found


def lu_and_two_triangles(n: int, k: int) -> Work:
    """Counted one by one: pivot, column and rest per step; then two triangles, the first with a unit diagonal."""
    rest = sum((n - 1 - j) ** 2 for j in range(n))
    below = n * (n - 1) // 2
    return Work(add=rest + 2 * k * below, mul=rest + below + 2 * k * below, div=n + k * n, cmp=below)


WHOLE = {
    "dead": PRODUCT * (2 * 3),
    "remat": PRODUCT + Work(special=EACH),
    "custom": PRODUCT + Work(mul=EACH),
    "branches_in_loops": PRODUCT * (3 + 0 + 1 + 4 * 2),
    "loops_of_rows": PRODUCT * 4,
    "cond_alike": PRODUCT + Work(cmp=1),
    "sharded": PRODUCT + Work(add=(ROWS - 1) * WIDTH),
    "sharded_by_5": PRODUCT + Work(add=(ROWS - 1) * WIDTH),
    "reported": PRODUCT * 3,
    "reduced": Work(add=2 * ROWS * (WIDTH - 1)),
    "solved": lu_and_two_triangles(WIDTH, ROWS),
}


@pytest.mark.parametrize("name", list(WHOLE))
def test_a_function_is_traced_whole(traces: dict[str, Trace], name: str) -> None:
    assert traces[name].problems == ()
    assert by_layer(traces[name]) == {"": WHOLE[name]}


def test_layers_are_scopes_and_modules(traces: dict[str, Trace]) -> None:
    assert by_layer(traces["scopes"]) == {"first": PRODUCT, "second.inner": PRODUCT + Work(special=EACH)}
    pixels, rows = 2 * 8 * 8, 2
    assert by_layer(traces["with_nnx"]) == {
        "conv": Work(mac=pixels * 4 * 27, accumulators=pixels * 4, add=pixels * 4),
        "": Work(cmp=pixels * 4, add=pixels * 4 - rows * 4, div=rows * 4),
        "blocks.0": Work(mac=rows * 16, accumulators=rows * 4, add=rows * 4) * 2,
        "blocks.1": Work(mac=rows * 8, accumulators=rows * 2, add=rows * 2),
    }
    found = by_layer(traces["with_linen"])
    steps, batch, width, hidden = 4, 2, 5, 7
    gates = {layer.rpartition(".")[2]: work.mac for layer, work in found.items() if layer.startswith("rnn.GRUCell_0.")}
    units = steps * batch * hidden
    assert gates == {f"{kind}{gate}": units * (width if kind == "i" else hidden) for kind in "ih" for gate in "rzn"}
    # r, z: sigmoids; n: tanh; r * hn, (1 - z) * n, z * h; three sums before the activations, 1 - z, and the new state's
    assert found["rnn.GRUCell_0"] == Work(add=5, mul=3, special=3) * units


def test_nothing_is_allocated(traces: dict[str, Trace]) -> None:
    assert by_layer(traces["huge"]) == {"wide": Work(mac=10**12, accumulators=10**6)}


def products(trace: Trace) -> int:
    """Multiply-adds."""
    return sum(work_of(op).mac * op.calls for op in trace.ops)


def test_what_values_decide_is_counted_in_a_call(traces: dict[str, Trace]) -> None:
    """From 8 by halves below 1 in 4 turns, of a product of 6 x 6 weights each; what constants decide needs no value."""
    trace = traces["by_values"]
    assert not trace.problems
    assert products(trace) == 4 * WIDTH**3 + 3 * ROWS * WIDTH * WIDTH
    assert [note for note in trace.notes if note.startswith("2 loop counts")]
    assert [name for name in WHOLE if any("loop counts" in note for note in traces[name].notes)] == []


def test_a_loop_in_a_condition_is_counted(traces: dict[str, Trace]) -> None:
    assert not traces["loop_in_a_condition"].problems
    assert products(traces["loop_in_a_condition"]) == (0 + 1 + 2 + 3) * ROWS * WIDTH * WIDTH


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("while_of_data", "lax.while"),
        ("while_of_an_argument", "lax.while"),
        ("as_a_mutable_array_says", "lax.while"),
        ("cond_of_data", "lax.cond"),
    ],
)
def test_what_depends_on_data_is_incomplete_by_name(traces: dict[str, Trace], name: str, op: str) -> None:
    (reason,) = (found.attrs[UNENTERED] for found in traces[name].ops if found.op == op)
    assert "depends on data" in reason


def test_a_callback_is_unknown_by_name(traces: dict[str, Trace]) -> None:
    (op,) = (op for op in traces["callback"].ops if op.op == "lax.pure_callback")
    with pytest.raises(UnknownWork, match=r"lax\.pure_callback"):
        work_of(op)


def test_what_is_added_in_place_is_a_sum(traces: dict[str, Trace]) -> None:
    assert by_layer(traces["added_in_place"]) == {"": PRODUCT + Work(add=EACH)}


def by_phase(trace: Trace) -> dict[str, int]:
    """Multiply-adds."""
    found: dict[str, int] = {}
    for op in trace.ops:
        found[op.phase] = found.get(op.phase, 0) + work_of(op).mac * op.calls
    return {phase: macs for phase, macs in found.items() if macs}


ONE = ROWS * WIDTH * WIDTH
CELL, BEFORE = 2 * 4 * 3 * 7 * (5 + 7), 2 * 4 * 3 * 5
CONV, DENSE = 2 * 8 * 8 * 9 * 3 * 4, 2 * (2 * 4 * 4 + 4 * 2)
STEPS = {
    # checkpoint computes the product again; the first layer's input takes no gradient, every other product gives two
    "remat": ({"forward": ONE, "recomputation": ONE, "backward": ONE}, WIDTH * WIDTH),
    # its own rule for the gradient has one product, and two forward
    "custom": ({"forward": 2 * ONE, "backward": ONE}, WIDTH * WIDTH),
    "with_linen": ({"forward": CELL + BEFORE, "backward": 2 * CELL + BEFORE}, 4 * 5 + 3 * 7 * (5 + 7) + 4 * 7),
    # two dense layers of 8 rows, and a batch norm's scale and bias
    "normed_in_linen": ({"forward": 8 * (15 + 10), "backward": 8 * (15 + 2 * 10)}, (15 + 5) + 2 * 5 + (10 + 2)),
    # one of its dense layers is called twice
    "with_nnx": ({"forward": CONV + DENSE, "backward": CONV + 2 * DENSE}, 9 * 3 * 4 + 4 + 4 * 4 + 4 + 4 * 2 + 2),
}
"""Multiply-adds by phase, and the number of parameters."""
UPDATES = {"sgd": Work(mul=1), "adam": Work(mul=6, div=3)}
"""Per parameter. w - lr g; of Adam g^2, two averages of two products each, the rate; two corrections of bias, m / sqrt(v)."""


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("optimizer", UPDATES)
def test_a_training_step_by_phase(traces: dict[str, Trace], name: str, optimizer: str) -> None:
    macs, parameters = STEPS[name]
    step = traces[f"{name} {optimizer}"]
    assert not step.problems
    assert by_phase(step) == macs
    updates = [work_of(op) * op.calls for op in step.ops if op.phase == "optimizer"]
    counted = Work(mul=sum(work.mul for work in updates), div=sum(work.div for work in updates))
    assert counted == UPDATES[optimizer] * parameters
    layers = {op.layer for op in step.ops if op.phase == "loss"}
    assert layers == {"(loss)"}


def test_a_model_without_parameters_has_forward_and_loss(traces: dict[str, Trace]) -> None:
    step = traces["only_an_input sgd"]
    assert {op.phase for op in step.ops} == {"forward", "loss"}
    (note,) = step.notes
    assert note.startswith("nothing to train")


def run(folder: Path, *args: str, environment: str = "jax") -> tuple[Result, dict[str, Any]]:
    (folder / "jax_models.py").write_text(MODELS.read_text())
    return run_here(folder, "--environments", str(ENVIRONMENTS), "--environment", environment, *args)


def report_in(folder: Path, *args: str, environment: str = "jax") -> dict[str, Any]:
    """The report of a run that is in order."""
    done, report = run(folder, *args, environment=environment)
    assert done.exit_code == 0, done.output
    return report


def test_a_run(tmp_path: Path) -> None:
    (trace,) = report_in(tmp_path, "--jax", "jax_models:with_linen", "--format", "json,tex")["traces"]
    steps, batch = 4, 2
    macs = steps * batch * (3 * 5 + 3 * 7 * (5 + 7))
    assert trace["totals"]["matmul"] == 2 * macs
    assert trace["versions"]["flax"] == "0.12.8"
    parameters = (
        3 * 5 + 5 + 3 * (5 * 7 + 7 * 7) + 4 * 7
    )  # a gate has no bias of its hidden state, the candidate has one
    (table,) = (tmp_path / "out").glob("*.tex")
    assert f"total & {parameters} & {macs:,} " in table.read_text()


@pytest.mark.parametrize("name", ["halves_of_nnx", "halves_of_linen"])
def test_weights_that_decide_are_made(name: str, tmp_path: Path) -> None:
    """4 turns from 8 to below 1; the model is made on shapes first."""
    (trace,) = report_in(tmp_path, "--jax", f"jax_models:{name}")["traces"]
    assert trace["totals"]["matmul"] == 4 * 2 * ONE


LOWERED, COMPILED = "xla@lowered", "xla@compiled"
STEP = 2 * 96 * (96 + 64)
"""FLOPs of one step of ``recurrent``: the products of a state of 96 and an input of 64 with their weights."""
SAME = 2 * 128 * 256
"""FLOPs of one product of a pixel with a kernel's tap, over all channels and filters of ``same``."""
COUNTED = {
    # XLA counts -1 for each of three calls of the host, one of them in a loop's body; the loop's counter and its test
    "reported": (
        2 * ONE - 3 + 1 + 1,
        3 * 2 * ONE,
        {"loop-counted-once": 2 * 2 * ONE, "formula-differs": 3, "integer-op": -2},
    ),
    # a loop's body once: its products, their sum, the loop's counter and its test
    "recurrent": (
        STEP + 96 + 2,
        97 * STEP,
        {"loop-counted-once": 96 * STEP, "outside-convention": -96, "integer-op": -2},
    ),
    # along each of two axes 3 taps at 56 places, of which 2 are padding
    "same": (
        SAME * (3 * 56 - 2) ** 2,
        SAME * (3 * 56) ** 2,
        {"padding-not-counted": SAME * ((3 * 56) ** 2 - (3 * 56 - 2) ** 2)},
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_xla_counts_a_loop_once_and_no_padding(name: str, tmp_path: Path) -> None:
    counted, ran, causes = COUNTED[name]
    report = report_in(tmp_path, "--jax", f"jax_models:{name}", "--counter", LOWERED, "--counter", COMPILED)
    booked: dict[str, dict[str, int]] = {}
    for statement in report["statements"]:
        assert (statement["to_total"], statement["residual"]) == (ran, 0)
        own = booked.setdefault(statement["from"], {})
        for line in statement["adjustments"]:
            own[line["cause"]] = own.get(line["cause"], 0) + line["amount"]
    assert {x["counter"]: x["total"] for x in report["ledgers"]}[LOWERED] == counted
    assert booked[LOWERED] == causes
    of_products = {cause: amount for cause, amount in causes.items() if amount % STEP == 0 or amount % SAME == 0}
    assert of_products.items() <= booked[COMPILED].items()  # its single operations are the compiler's


def test_a_broken_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import jax.numpy as jnp\n\ndef make():\n    return lambda x: x @ x\n")
    done, _ = run(tmp_path, "--jax", "broken:make", "--input", "2,3")
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
    assert "broken.py, line 4" in done.output


def test_the_table_of_linen_is_the_analysis_of_the_program(tmp_path: Path) -> None:
    words = ("--counter", LOWERED, "--counter", "xla@tabulate", "--convention", "all")
    report = report_in(tmp_path, "--jax", "jax_models:with_linen", *words)
    totals = {x["counter"]: x["total"] for x in report["ledgers"]}
    assert totals["xla@tabulate"] == totals[LOWERED] > 0
    assert {statement["residual"] for statement in report["statements"]} == {0}


def test_the_table_of_linen_has_no_row_for_another_model(tmp_path: Path) -> None:
    done, report = run(tmp_path, "--jax", "jax_models:with_nnx", "--counter", "xla@tabulate")
    assert (done.exit_code, [x["state"] for x in report["ledgers"]]) == (1, ["not_comparable"])
