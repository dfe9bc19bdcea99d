"""Random networks: the real counters of both frameworks on random plans of bricks, residual 0 under every convention.

``RECONCILE_RANDOM_NETWORKS=30`` draws that many plans, other ones each time; without it, it is one, always the same.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from tests.run.closing import reconciles
from tests.zoo.random_networks import network, pair_file, work

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

LONG = os.environ.get("RECONCILE_RANDOM_NETWORKS", "")


@settings(
    max_examples=int(LONG or 1),
    derandomize=not LONG,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # a plan costs two workers: what is wrong is named by its layer, not shrunk
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**40))
def test_random_networks_reconcile(seed):
    rng = Random(seed)
    net, batch = network(rng), rng.randint(1, 3)
    text = pair_file(net, batch)
    note(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random_pair.py"
        path.write_text(text)
        collected = collect(RunRequest(str(path), {}))
    result = settle(reconciles(collected), Conventions(BUILT_IN["all"]))
    assert [t.unknown for t in result.traces] == [(), ()]
    assert tuple(t.totals["matmul"] for t in result.traces) == tuple(2 * macs for macs in work(net, batch))
