"""Published ways to call tf.profiler beside the session graph: frozen into a .pb and read back, and keras-flops'."""

from __future__ import annotations

import pytest

from reconcile.core.results import Statement
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from reconcile.launch.request import RunRequest
from reconcile.workflow import run

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

OLD = ("tf-1.12", "tf-2.3.1")


def statement(model: str, counter: str, env: str, **overrides: str) -> Statement:
    """From the counter to the work that ran, in that environment; reconciled."""
    python = "" if env == "current" else str(ensure(load()[env]))
    result = run(RunRequest(model, overrides, counters=(counter,), python=python))
    assert result.exit_code == 0, [(x.counter, x.reason) for x in result.ledgers]
    (found,) = result.statements
    assert found.residual == 0
    return found


@pytest.mark.parametrize("env", OLD)
def test_s1_frozen_is_2(env: str) -> None:
    found = statement("conv1x1", "tf.profiler@frozen_pb", env)
    assert (found.from_total, found.to_total, found.adjustments) == (2, 2, ())


@pytest.mark.parametrize("env", [*OLD, pytest.param("current", marks=pytest.mark.heavy)])
def test_s3_frozen_is_7200(env: str) -> None:
    found = statement("matmul_init", "tf.profiler@frozen_pb", env)
    assert (found.from_total, found.to_total, found.adjustments) == (2 * 25 * 16 * 9, 7_200, ())


@pytest.mark.parametrize("env", ["tf-2.3.1", pytest.param("current", marks=pytest.mark.heavy)])
def test_keras_flops_counts_a_batch_of_one_in_any_model(env: str) -> None:
    """Two spectrograms are one to it; its trace is of one, too, and says so."""
    one, two = (statement("conv_only", "tf.profiler@keras_flops", env, batch=n) for n in ("1", "2"))
    assert (one.from_total, one.to_total) == (two.from_total, two.to_total)
    frozen = statement("conv_only", "tf.profiler@frozen", env, batch="2")
    assert frozen.from_total == 2 * (one.from_total or 0)
