"""Old releases of TensorFlow, really run: which ops their profiler counts, and statements that close on their own traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.adapters.counters.tf_profiler.rules import BOOK
from reconcile.core.causes import State
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.engine.answer import Answer
from reconcile.engine.settle import settle
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from reconcile.launch.environments.runs import collect_in
from reconcile.launch.request import RunRequest
from tests.matrix.reports import answer_of

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(1800)]

ENVIRONMENTS = load(Path(__file__).with_name("tensorflow.toml"))
OLD = ("tf-2.4.4", "tf-2.12.1")
GRU_DEMO = 2 * (32 * 97 * 127 * 16 + 97 * 3 * 96 * (4064 + 96) + 97 * 96 * 256)
"""Multiply-adds, twice: convolution, gates of 97 steps, dense layer."""

REGISTRY = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import math_ops, nn_ops
from tensorflow.python.profiler.internal import flops_registry
statistics = ops._stats_registry.list()
print(json.dumps([tf.__version__, [name[: -len(",flops")] for name in statistics if name.endswith(",flops")]]))
"""


@pytest.mark.parametrize("name", ["tf-1.12", "tf-2.3.1", *OLD, "current"])
def test_the_rules_of_a_release_are_the_ops_of_its_registry(name: str) -> None:
    version, registered = answer_of(ensure(ENVIRONMENTS[name]), REGISTRY)
    held = {rule.op for rule in BOOK.rules() if rule.versions.contains(version)}
    assert held ^ set(registered) == set()


def settled(name: str, model: str, counters: tuple[str, ...] = ()) -> Answer:
    collected = collect_in(ENVIRONMENTS[name])(RunRequest(model, counters=counters), lambda _event: None)
    return settle(collected, Conventions(MATMUL))


@pytest.mark.parametrize("name", OLD)
def test_its_own_trace_explains_its_counters(name: str) -> None:
    """gru_demo's convolution is NCHW, which not every old release runs on a CPU: the counter that needs a run is left out."""
    result = settled(name, "gru_demo", ("tf.profiler@function", "tf.profiler@frozen"))
    (trace,) = result.traces
    assert (trace.complete, trace.totals["matmul"]) == (True, GRU_DEMO)
    assert trace.versions["tensorflow"] == name.removeprefix("tf-")
    assert [(x.counter, x.state) for x in result.ledgers if x.state is not State.EXPLAINED] == []
    assert [s.residual for s in result.statements if s.residual != 0] == []


@pytest.mark.parametrize("name", ["tf-2.4.4", pytest.param("tf-2.12.1", marks=pytest.mark.heavy)])
def test_residual_connections_are_no_broken_rule(name: str) -> None:
    """mobilenet_v2 adds in 10 layers, as AddV2, which neither release counts."""
    result = settled(name, "mobilenet_v2", ("tf.profiler@frozen",))
    assert [m for ledger in result.ledgers for m in ledger.mismatches] == []
    (ledger,) = result.ledgers
    assert (ledger.state, result.exit_code) == (State.EXPLAINED, 0)
    assert [entry.op for entry in ledger.entries if entry.op == "AddV2"] == []
