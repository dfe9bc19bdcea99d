"""A Keras model in the graph of a recipe."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconcile.adapters.shared.refusal import CannotCount
from reconcile.adapters.tensorflow.session import _in_graph


def test_a_model_of_keras_3_is_in_no_graph() -> None:
    """Its inputs and outputs are KerasTensors, which no op of a graph makes."""
    tensor, symbol = SimpleNamespace(op=object()), SimpleNamespace()
    assert _in_graph(SimpleNamespace(inputs=[tensor], outputs=[tensor])) == ([tensor], [tensor])
    for inputs, outputs in (([symbol], [tensor]), ([tensor], [symbol])):
        with pytest.raises(
            CannotCount, match=r"Keras 3 makes none: run it in an environment with TensorFlow 2\.15 or older"
        ):
            _in_graph(SimpleNamespace(inputs=inputs, outputs=outputs))
