"""A training step of a random network reconciles under every convention."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from tests.zoo.random_networks import network, pair_file

pytestmark = pytest.mark.frameworks


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 16])
def test_random_networks_train(seed, tmp_path):
    path = Path(tmp_path) / "random_pair.py"
    path.write_text(pair_file(network(Random(seed)), 2))
    found = collect(RunRequest(str(path), {}, training="sgd", device="meta"))
    for convention in BUILT_IN.values():
        result = settle(found, Conventions(convention))
        assert [trace.unknown for trace in result.traces] == [(), ()]
        assert {x.mismatches for x in result.ledgers} == {()}
        assert {s.residual for s in result.statements if s.state is not State.NOT_COMPARABLE} == {0}
        assert result.exit_code == 0
