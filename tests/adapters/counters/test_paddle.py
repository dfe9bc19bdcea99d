"""paddle.flops in its environment: its own functions beside every case."""

from __future__ import annotations

import pytest

from tests.adapters.counters.in_environment import values_of
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
    print(json.dumps([name, int(layer.total_ops), function is not None]))
"""
"""What its function for a layer adds, given the shapes of a case."""


def test_every_case_is_what_it_counts() -> None:
    texts = [[c.op.op.rpartition(".")[2], c.op.inputs[0].shape, c.op.outputs[0].shape, c.op.attrs] for c in CASES]
    expected = [[t[0], c.total, bool(c.work or c.missed)] for t, c in zip(texts, CASES, strict=True)]
    found = values_of("paddle", COUNTS, texts)
    assert [(want, got) for want, got in zip(expected, found, strict=True) if want != got] == []
