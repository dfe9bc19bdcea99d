"""Records the name scope in which each Keras layer is called, so that graph nodes get layer paths.  Python 3.6."""

from contextlib import contextmanager
from typing import Any, ContextManager, Dict, Iterator

from ...shared.keras_model import within_calls


def recorded_scopes(model: Any, scopes: Dict[str, str]) -> ContextManager[None]:
    """Within this block every layer of ``model`` notes the name scope in which it is called: {scope: layer path}."""
    import tensorflow as tf

    @contextmanager
    def note_scope(layer: Any, path: str) -> Iterator[None]:
        scopes.setdefault(str(tf.compat.v1.get_default_graph().get_name_scope()), path)
        yield

    return within_calls(model, note_scope)
