"""paddle.flops in its environment: its own functions beside every case, and small models that X2Paddle converts."""

from __future__ import annotations

import json
import subprocess

import pytest

from reconcile.core.causes import Cause, State
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from tests.adapters.counters.in_environment import closes, settled
from tests.adapters.counters.paddle_cases import CASES

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

COUNTS = """
import json, sys
from types import SimpleNamespace
import paddle
from paddle import nn
from paddle.hapi.dynamic_flops import register_hooks

for name, given, made, attrs in json.load(sys.stdin):
    function = register_hooks.get(getattr(nn, name))
    weight = SimpleNamespace(shape=attrs["weight"])
    layer = SimpleNamespace(total_ops=0, training=False, weight=weight, bias=attrs.get("bias"), _groups=attrs.get("groups"))
    if function is not None:
        function(layer, (paddle.zeros(given),), paddle.zeros(made))
    print(name, int(layer.total_ops), function is not None)
"""
"""What its function for a layer adds, given the shapes of a case."""


def test_every_case_is_what_it_counts() -> None:
    texts = [[c.op.op.rpartition(".")[2], c.op.inputs[0].shape, c.op.outputs[0].shape, c.op.attrs] for c in CASES]
    python = str(ensure(load()["paddle"]))
    done = subprocess.run([python, "-c", COUNTS], input=json.dumps(texts), capture_output=True, text=True, check=False)
    reported = [line.split() for line in done.stdout.splitlines()]
    assert len(reported) == len(CASES), done.stderr[-2000:]
    expected = [[str(t[0]), str(c.total), str(bool(c.work or c.missed))] for t, c in zip(texts, CASES, strict=True)]
    assert [(want, got) for want, got in zip(expected, reported, strict=True) if want != got] == []


MISSED, UNSEEN, DIFFERS, OUTSIDE = (
    Cause.OP_NOT_COUNTED,
    Cause.CALL_NOT_SEEN,
    Cause.FORMULA_DIFFERS,
    Cause.OUTSIDE_CONVENTION,
)
FIRST, SECOND, DENSE = 6 * 28 * 28, 16 * 10 * 10, 400 * 120 + 120 * 84 + 84 * 10
"""Outputs of LeNet's convolutions, and products of its linear layers."""
LENET = FIRST * 3 * 3 + SECOND * 6 * 5 * 5
OUT = 2 * 4 * 7 * 5
"""Outputs of a convolution of 3 x 3 on 4 channels."""
WIDE = 6 * 10 * 6
"""Outputs of a transposed convolution of 2 x 2 and stride 2, each of which one of 4 x (5 x 3) inputs reaches by channel."""
GRU = 2 * 5 * 3 * 4 * (3 + 4)
"""Multiply-adds of a GRU of 4 units on 3 inputs, for 2 samples of 5 steps: 3 gates."""

NETS = {
    # network: (what it reports, FLOPs of the products that ran, causes)
    "lenet": (LENET + FIRST + SECOND, 2 * (LENET + DENSE), {UNSEEN, OUTSIDE}),  # its linear layers are functions
    "reused": (3 * OUT * (4 * 9 + 1), 2 * (3 * OUT * 4 * 9 + OUT * 6), {UNSEEN, OUTSIDE}),
    "nested": (4 * 7 * 5 * (4 + 4 * 9 + 4), 2 * 4 * 7 * 5 * (4 + 4 * 9 + 4), set()),
    "transposed": (WIDE * (4 * 4 + 1), 2 * (4 * 5 * 3) * 6 * 4, {DIFFERS, OUTSIDE}),
    # By sample and channel: 3 for each of 10 x 10 elements; 5 x 5 averages; 2 x 2 of windows of 5 // 2, squared, and 1; one of
    # 2 x 2, and 1.
    "elementwise": (2 * 3 * (3 * 10 * 10 + 5 * 5 + 2 * 2 * (2 * 2 + 1) + (2 * 2 + 1)), 0, {OUTSIDE}),
    "recurrent": (0, 2 * GRU, {MISSED}),
}


@pytest.mark.parametrize("name", NETS)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    closes("paddle", "paddle", f"tests.adapters.counters.paddle_nets:{name}", NETS[name])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "paired",
            "paddle.flops makes one input of random floats (paddle/hapi/dynamic_flops.py:133), and this model takes 2",
        ),
        ("tokens", "this model takes no floats"),
        ("numbered", "X2Paddle cannot convert this model (SyntaxError: invalid decimal literal"),
        ("unknown", "X2Paddle cannot convert this model (it knows no aten::movedim)"),
    ],
)
def test_a_model_that_it_cannot_count_has_its_reason(name: str, said: str) -> None:
    ledger, _ = settled("paddle", "paddle", f"tests.adapters.counters.paddle_nets:{name}")
    assert ledger.state is State.NOT_COMPARABLE
    assert said in ledger.reason
