"""A worker that runs a model at several points."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.adapters.shared import keras_model
from reconcile.worker.main import Worker


def test_layers_without_a_name_have_the_same_ones_at_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras numbers them in a process: the second model's first Dense layer would be dense_1, which is no layer of the first."""
    named: dict[str, Any] = {"object_name_uids": {"dense": 1}}
    state = SimpleNamespace(get_global_attribute=named.get, set_global_attribute=named.__setitem__)
    monkeypatch.setitem(sys.modules, keras_model.STATE, state)  # type: ignore[arg-type]
    request: Any = SimpleNamespace(points=((), ()), model=None, framework=None)
    worker = Worker(request)
    meta = {"points": [{"params": {"batch": 1}}, {"params": {"batch": 2}}]}
    assert worker._params_at(0, meta) == {"batch": 1}
    assert keras_model.names() == {"dense": 1}
    assert worker._params_at(1, meta) == {"batch": 2}
    assert keras_model.names() == {}
