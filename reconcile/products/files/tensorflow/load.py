"""Loads TensorFlow model files (frozen graphs, SavedModels, Keras files) in a form that counters can count.

A Keras file gives the Keras model, as a factory would.  A graph or a signature gives a concrete function with every shape
known: the user gives the sizes that the file leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from . import load_graph, load_keras, load_saved


def ready() -> None:
    """Start the framework before the guards are up."""
    import tensorflow  # noqa: F401


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The model in the file and the arguments to call it with. Raises FileError."""
    loaders = {"graph_def": load_graph.graph_def, "saved_model": load_saved.saved_model}
    return loaders.get(file.kind, load_keras.load)(file, given)
