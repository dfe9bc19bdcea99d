"""A training step of every pair reconciles under every convention, and both frameworks' steps multiply the same matrices."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN
from reconcile.engine.recompute import recompute
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from reconcile.model_zoo import pair as pairs
from reconcile.report.view import phases
from tests.zoo.choice import chosen
from tests.zoo.random_networks import network, pair_file

pytestmark = pytest.mark.frameworks

OTHERWISE = {
    "crnn",  # TensorFlow takes a recurrent layer's gradient with respect to its first state, too
    "gru_demo",
    "lstm_lm",
    "family_recurrent",
    "family_control",  # a branch or a loop in TensorFlow has a gradient with respect to all it reads
    "family_convolution",  # its dilated and grouped convolutions, in the forward pass already
    "moe",
    "resnet50_v1_5",  # declared: the stride lies elsewhere
}
"""Pairs whose frameworks multiply otherwise; all others' steps are equal under matmul."""

ON_META = {"family_norm"}
"""torch 2.13's group norm dies (SIGSEGV) on the CPU where its input lies channels last and needs no gradient."""

QUICK = ("lstm_lm",)


def settings(name):
    """The pair's settings for proofs, with two samples: a batch norm in train mode needs more than one value."""
    module = pairs.load_pair(pairs.pair_path(name))
    batch = {"batch": "2"} if "batch" in module.params else {}
    return {**module.proof, **batch}


@pytest.mark.parametrize("name", chosen(pairs.zoo_names(), QUICK))
def test_a_training_step_reconciles(name):
    found = collect(RunRequest(name, settings(name), training="adam", device="meta" if name in ON_META else "cpu"))
    ops = {f"{t.framework}:{op.id}": op for t in found.traces for op in t.ops}
    assert len(ops) == sum(len(t.ops) for t in found.traces)  # no two of them share a name
    versions = {x.counter: x.versions for x in found.ledgers if hasattr(x, "versions")}
    for convention in BUILT_IN.values():
        result = settle(found, convention, BUILT_IN)
        assert result.exit_code == 0
        seen = [x for x in result.ledgers if x.total is not None]
        assert {x.counter for x in seen} == {"tf.profiler@function", "tf.profiler@runmeta", "flop_counter"}
        assert [x.counter for x in seen if (x.unchecked, x.mismatches) != (0, ())] == []
        between = [s for s in result.statements if s.state is not State.NOT_COMPARABLE]
        assert [s.residual for s in between] == [0] * len(between)
        for statement in between:
            for line in statement.adjustments:
                assert recompute(line, ops, versions, convention) == line.amount, (statement.from_, statement.to, line)
    same = settle(found, BUILT_IN["matmul"], BUILT_IN)
    tf, torch = (phases(trace, same.convention) for trace in same.traces)
    (bridge,) = (s for s in same.statements if (s.from_, s.to) == ("trace@tf", "trace@torch"))
    if name in OTHERWISE:
        assert {line.cause for line in bridge.adjustments} == {Cause.REAL_WORK_DIFFERS}
    else:
        assert bridge.adjustments == ()
        assert {p: n for p, n in tf.items() if n} == {p: n for p, n in torch.items() if n}


@pytest.mark.zoo
@pytest.mark.parametrize("seed", [11, 12, 16])
def test_random_networks_train(seed, tmp_path):
    path = Path(tmp_path) / "random_pair.py"
    path.write_text(pair_file(network(Random(seed)), 2))
    found = collect(RunRequest(str(path), {}, training="sgd", device="meta"))
    for convention in BUILT_IN.values():
        result = settle(found, convention, BUILT_IN)
        assert [trace.unknown for trace in result.traces] == [(), ()]
        assert {x.mismatches for x in result.ledgers} == {()}
        assert {s.residual for s in result.statements if s.state is not State.NOT_COMPARABLE} == {0}
        assert result.exit_code == 0
