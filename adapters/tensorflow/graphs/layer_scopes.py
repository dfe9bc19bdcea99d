"""The name scopes in which the layers of a model are called.  Python 3.6."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator

from ...shared.keras_model import layer_paths


@contextmanager
def recorded_scopes(model: Any, scopes: Dict[str, str]) -> Iterator[None]:
    """Within this block every layer of ``model`` notes the name scope in which it is called: {scope: layer path}."""
    layers = layer_paths(model)
    own = [(layer, vars(layer).get("call")) for layer, _ in layers]
    for layer, path in layers:
        _note_calls(layer, path, scopes)
    try:
        yield
    finally:
        for layer, call in own:
            if call is None:
                object.__delattr__(layer, "call")
            else:
                object.__setattr__(layer, "call", call)


def _note_calls(layer: Any, path: str, scopes: Dict[str, str]) -> None:
    import functools

    import tensorflow as tf

    original = layer.call

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        scopes.setdefault(str(tf.compat.v1.get_default_graph().get_name_scope()), path)
        return original(*args, **kwargs)

    object.__setattr__(layer, "call", call)
