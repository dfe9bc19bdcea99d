"""The zoo's JAX sides: they compute what TensorFlow's compute, with the same gradients, and both of XLA's counters reconcile.

`make matrix` proves those of SMALL; `make gradients` proves all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.conventions import BUILT_IN, MATMUL, Conventions
from reconcile.core.records import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from reconcile.engine.settle import settle
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments import runs
from reconcile.launch.environments.provision import ensure
from reconcile.launch.request import run_request
from reconcile.model_zoo import loading
from reconcile.products.authors.conform import families
from reconcile.products.gallery.run import APART
from reconcile.work import load
from tests.programs import output_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = [n for n in loading.zoo_names() if loading.load_pair(loading.pair_path(n)).builder("jax") is not None]
SMALL = ("gru_demo", "family_norm")
"""In Flax and in Keras."""
LARGE = [name for name in NAMES if name not in SMALL]
TOO_LARGE = ("convnext_tiny", "densenet121", "efficientnet_b0", "resnet50", "vgg16")
NOTHING = {64: (1e-7, 1e-6), 32: (1e-5, 1e-4)}
"""By bits: a gradient that is below the first share of the largest in TensorFlow is 0 but for rounding, such as that of a bias
before a norm; in JAX, where norms compute in 32 bits in any model, it is below the second share."""
GRADIENTS_APART = 1e-3
"""In 64 bits as well: constants of Keras, such as the sixth in a hard swish, keep 32 on JAX."""
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]


def proven(folder: Path, *models: str) -> dict[str, Any]:
    """What ``jax_parity`` says of these pairs."""
    place = ensure(environments.load()["xla"])
    for python, task in ((sys.executable, "given"), (str(place), "compared")):
        printed = output_of("-m", "tests.matrix.jax_parity", task, folder, *models, python=python)
    return {found["model"]: found for found in map(json.loads, printed.splitlines()[-len(models) :])}


def hold(found: dict[str, Any]) -> None:
    """Outputs, losses and every gradient agree."""
    ours, theirs = found["several"]
    assert ours == theirs
    assert found["outputs"] < APART
    ours, theirs = found["loss"]
    assert theirs > 0
    assert abs(ours - theirs) < APART * theirs
    limit = GRADIENTS_APART
    none, rounding = NOTHING[found["bits"]]
    largest = max((size for _, size in found["gradients"].values()), default=0.0)
    apart = {
        name: difference / size if size > none * largest else difference / largest / rounding * limit
        for name, (difference, size) in found["gradients"].items()
    }
    assert {name: share for name, share in apart.items() if not share < limit} == {}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return proven(tmp_path_factory.mktemp("parity"), *SMALL)


@pytest.mark.matrix
@pytest.mark.parametrize("name", SMALL)
def test_outputs_and_gradients_are_equal_here(small: dict[str, Any], name: str) -> None:
    hold(small[name])


@pytest.mark.heavy
@pytest.mark.parametrize("name", LARGE)
def test_outputs_and_gradients_are_equal(name: str, tmp_path: Path) -> None:
    hold(proven(tmp_path, name)[name])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.matrix if name in SMALL else pytest.mark.heavy)
        for name in NAMES
        if name not in TOO_LARGE
    ],
)
def test_both_counters_reconcile_under_every_convention(name: str) -> None:
    """At the settings of the pair's proof; reports/counters.csv has every pair at its own size."""
    load()
    pair = loading.load_pair(loading.pair_path(name))
    request = run_request(model=name, overrides=dict(pair.proof), counters=("xla@lowered", "xla@compiled"))
    collected = runs.collect_in(environments.load()["xla"])(request, lambda _event: None)
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        assert result.exit_code == 0, result.statements
        assert [s.residual for s in result.statements] == [0, 0]


@pytest.mark.parametrize(
    "name", [pytest.param("gru_demo", marks=pytest.mark.matrix), pytest.param("bert_base", marks=pytest.mark.heavy)]
)
def test_a_training_step_is_tensorflow_s(name: str) -> None:
    """The forward pass and the gradients: JAX draws no line between those of inputs and those of weights."""
    load()
    request = run_request(
        model=name,
        overrides=dict(loading.load_pair(loading.pair_path(name)).proof),
        counters=("xla@lowered", "tf.profiler@function"),
        pass_="training",
        optimizer="sgd",
    )
    collected = runs.collect_in(environments.load()["xla"])(request, lambda _event: None)
    result = settle(collected, Conventions(MATMUL))
    work = {trace.framework: result.by_phase(trace) for trace in result.traces}
    assert work["tf"][FORWARD] > 0
    assert work["jax"][FORWARD] == work["tf"][FORWARD]
    gradients = (INPUT_GRADIENT, WEIGHT_GRADIENT)
    assert work["jax"][BACKWARD] == sum(work["tf"].get(phase, 0) for phase in gradients)


@pytest.mark.heavy
@pytest.mark.parametrize("counter", ["xla@lowered", "xla@compiled"])
def test_the_counters_conform(counter: str) -> None:
    """Every amount follows from its evidence, among others, on families that have a JAX side; the others are left out."""
    words = ["counter", "conform", counter, "--environment", "xla", "--pass", "forward", "--case", "family_recurrent"]
    done = CliRunner().invoke(cli, [*words, "--case", "family_activation"], prog_name="reconcile")
    assert done.exit_code == 0, done.output
    assert {"family_dense", "family_norm"} < set(families(counter)) < set(families())
    assert "family_attention" not in families(counter)
