"""``reconcile watch`` of scripts that train with JAX, Optax and Flax and know nothing of it: their step by closed forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from tests.matrix.reports import python_of
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROWS, WIDTH, HIDDEN, OUT = 5, 6, 8, 3
FIRST, SECOND = 2 * ROWS * WIDTH * HIDDEN, 2 * ROWS * HIDDEN * OUT
STEP = 2 * FIRST + 3 * SECOND
"""Forward, the gradients of both weights, and that of the hidden values: the input needs none."""
PARAMETERS = WIDTH * HIDDEN + HIDDEN + HIDDEN * OUT + OUT
UPDATE = (2 * 3 + 1 + 2 + 4 + 2 + 1 + 1) * PARAMETERS + 4
"""AdamW, as tests/matrix/test_jax_steps.py adds it up."""
XLA = LOWERED, COMPILED = "xla@lowered", "xla@compiled"

MLP = f"""
from functools import partial
import jax
import jax.numpy as jnp
import optax

optimizer = optax.adamw(0.1)
params = [(jnp.ones(({WIDTH}, {HIDDEN})), jnp.zeros({HIDDEN})), (jnp.ones(({HIDDEN}, {OUT})), jnp.zeros({OUT}))]
state = optimizer.init(params)


def loss_of(params, x, y):
    (w, b), (v, c) = params
    return optax.softmax_cross_entropy_with_integer_labels(jnp.tanh(x @ w + b) @ v + c, y).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


evaluate = jax.jit(loss_of)
for number in range(3):
    rows = {ROWS} * (2 if number == 1 else 1)
    x, y = jnp.ones((rows, {WIDTH})), jnp.arange(rows) % {OUT}
    evaluate(params, x, y)
    params, state, loss = train_step(params, state, x, y)
    print("took step", number + 1, flush=True)
print("the end", loss, params[1], flush=True)
"""
NNX = f"""
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear({WIDTH}, {HIDDEN}, rngs=rngs)
        self.norm = nnx.BatchNorm({HIDDEN}, rngs=rngs)
        self.head = nnx.Linear({HIDDEN}, {OUT}, rngs=rngs)

    def __call__(self, x):
        return self.head(jnp.tanh(self.norm(self.up(x))))


@nnx.jit
def train_step(model, optimizer, metrics, x, y):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    metrics.update(values=loss)
    optimizer.update(model, gradients)


model = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
metrics = nnx.metrics.Average()
up = nnx.jit(lambda x: model.up(x))  # closed over the model
for _ in range(2):
    up(jnp.ones((4, {WIDTH})))
    train_step(model, optimizer, metrics, jnp.ones(({ROWS}, {WIDTH})), jnp.arange({ROWS}) % {OUT})
print("the end", metrics.compute(), model.norm.mean[...], flush=True)
"""
LINEN = f"""
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense({OUT})(nn.relu(nn.Dense({HIDDEN})(x)))


class Trainer:
    def __init__(self):
        net = Net()
        weights = jax.jit(net.init)(jax.random.key(0), jnp.ones((1, {WIDTH})))["params"]
        self.state = TrainState.create(apply_fn=net.apply, params=weights, tx=optax.adamw(0.1))
        self.step = jax.jit(self.train_step)

    def train_step(self, state, batch, smoothing):
        def loss_of(params):
            labels = optax.smooth_labels(jax.nn.one_hot(batch["y"], {OUT}), smoothing)
            return optax.softmax_cross_entropy(state.apply_fn({{"params": params}}, batch["x"]), labels).mean()

        loss, gradients = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=gradients), loss

    def fit(self):
        for number in range(3):
            batch = {{"x": jnp.ones(({ROWS}, {WIDTH})), "y": jnp.arange({ROWS}) % {OUT}}}
            self.state, _ = self.step(self.state, batch, 0.1 * number)


Trainer().fit()
"""
LOOP = """
import jax
import jax.numpy as jnp

def loss_of(w, x):
    return jnp.mean((x @ w) ** 2)

def train_step(w, x):
    return w - 0.1 * jax.value_and_grad(loss_of)(w, x)[1]

w = jnp.ones((3, 4))
for _ in range(2):
    w = train_step(w, jnp.ones((2, 3)))
"""
STEPS = LOOP.replace("def train_step", "@jax.jit\ndef train_step")
MAPPED = STEPS.replace("w = train_step(w,", "jax.vmap(train_step, (0, None))(w[None],")
INFER = """
import jax
import jax.numpy as jnp

@jax.jit
def predict(w, x):
    return x @ w

for rows in (1, 2, 5):
    predict(jnp.ones((3, 4)), jnp.ones((rows, 3)))
"""

Watch = Callable[..., tuple[Result, dict[str, Any]]]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watch a script of this text; the report as JSON, empty where there is none."""
    python = str(python_of("xla"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")

    def watched(text: str, *before: str) -> tuple[Result, dict[str, Any]]:
        Path("train.py").write_text(text)
        line = ["watch", "--quiet", "--format", "json", "--out", "out", "--python", python, *before, "train.py"]
        result = CliRunner().invoke(cli, line)
        report = Path("out/train.json")
        return result, json.loads(report.read_text()) if report.is_file() else {}

    return watched


def bare(text: str) -> str:
    """What the script prints without a watch."""
    return output_of("-c", text, python=python_of("xla"))


def counted(report: dict[str, Any], *counters: str) -> tuple[int, str]:
    """The total of the step and its note, where these counters, or both of XLA's, are reconciled to the unit."""
    (trace,) = report["traces"]
    assert {ledger["counter"]: ledger["total"] > 0 for ledger in report["ledgers"]} == dict.fromkeys(
        counters or XLA, True
    )
    assert {statement["residual"] for statement in report["statements"]} == {0}
    (note,) = [note for note in trace["notes"] if note.startswith("step ")]
    return int(trace["totals"]["matmul"]), note


def test_the_first_step_of_a_script(watch: Watch, capfd: Any) -> None:
    result, report = watch(MLP, "--convention", "all")
    total, note = counted(report)
    assert (result.exit_code, total) == (0, STEP)
    assert note == "step 1: a call of train_step (train.py:17), as the script jitted it"
    products, others = {"forward": 0, "backward": 0, "optimizer": 0}, 0
    for row in report["traces"][0]["rows"]:
        products[row["phase"]] += 2 * row["mac"]
        others += sum(row[kind] for kind in ("add", "mul", "div", "special")) * (row["phase"] == "optimizer")
    assert products == {"forward": FIRST + SECOND, "backward": FIRST + 2 * SECOND, "optimizer": 0}
    assert others == UPDATE
    assert "the end" not in capfd.readouterr().out


def test_a_later_step_and_the_rest_of_the_script(watch: Watch, capfd: Any) -> None:
    """The second batch has twice the rows. What the script prints is what it prints by itself."""
    result, report = watch(MLP, "--steps", "2", "--continue", "--counter", LOWERED)
    assert (result.exit_code, counted(report, LOWERED)[0]) == (0, 2 * STEP)
    assert bare(MLP) == capfd.readouterr().out


def test_a_step_of_nnx_and_what_it_writes(watch: Watch, capfd: Any) -> None:
    result, report = watch(NNX, "--steps", "2", "--continue", "--counter", LOWERED)
    total, note = counted(report, LOWERED)
    assert (result.exit_code, total) == (0, STEP)
    assert note.startswith("step 2: a call of train_step (train.py:")
    assert {row["layer"] for row in report["traces"][0]["rows"]} >= {"up", "norm", "head"}
    assert bare(NNX) == capfd.readouterr().out


def test_a_method_with_the_state_of_linen(watch: Watch) -> None:
    result, report = watch(LINEN, "--counter", COMPILED)
    total, note = counted(report, COMPILED)
    assert (result.exit_code, total) == (0, STEP)
    assert note.startswith("step 1: a call of train_step (train.py:")
    assert "called with TrainState of 13 arrays, 250 numbers" in " ".join(report["traces"][0]["notes"])


def test_a_call_of_a_script_that_trains_nothing(watch: Watch) -> None:
    result, report = watch(INFER, "--calls", "3")
    assert (result.exit_code, report["traces"][0]["totals"]["matmul"]) == (0, 2 * 5 * 3 * 4)


REFUSED = {
    "no jit": (
        LOOP,
        (),
        "it ran jax.value_and_grad(loss_of) outside of jax.jit, where a step is not watched: put the whole step into one "
        "function and jit that, or count it with reconcile run --jax train:train_step --args train:FUNCTION",
    ),
    "mapped": (MAPPED, (), "it called no function of jax.jit directly"),
    "no gradient": (INFER, (), "it called predict, jitted and without a gradient: count a call with --calls 1."),
    "too few steps": (STEPS, ("--steps", "5"), "train.py took 2 steps, so there is no step 5: give --steps 1 to 2."),
    "several steps": (STEPS, ("--steps", "1-2"), "a range of steps is not for jax.jit"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_script_without_its_step_gets_one_sentence(watch: Watch, name: str) -> None:
    text, before, sentence = REFUSED[name]
    result, report = watch(text, *before)
    assert (result.exit_code, report) == (2, {})
    assert sentence in " ".join(result.output.split())
    assert "Traceback" not in result.output
