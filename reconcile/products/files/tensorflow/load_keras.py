"""Loads Keras models from ``.keras`` and ``.h5`` files.

Keras reads the file as it always does, in its safe mode unless the file is trusted. What a configuration makes it import, call or
read nevertheless, it does in a process that is confined (confine.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import FileError, Wanted, match_inputs, member, show_name


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The Keras model and the arguments of its call. Raises FileError."""
    import tensorflow as tf

    where = member(file.path)
    options = {} if not hasattr(tf.keras, "version") else {"safe_mode": not file.trusted}
    try:
        model = tf.keras.models.load_model(file.path, compile=False, **options)
    except (TypeError, ValueError) as error:
        if "safe_mode" in str(error):  # Keras says so of Lambda layers and others that hold Python's bytecode
            raise FileError(
                f"{where} holds code of its own, such as a Lambda layer; pass --trust-file to let it run."
            ) from error
        foreign = re.search("Could not locate ((?:class|function) '.+?')", str(error))
        if foreign is None:
            raise
        raise FileError(
            f"{where} needs the {show_name(foreign[1])}, which Keras does not find. Write a factory that imports it and "
            "loads the file."
        ) from error
    if getattr(model, "inputs", None) is None:
        raise FileError(f"{where} does not say what its inputs are. Write a factory that loads it.")
    wanted = [Wanted(t.name.split(":")[0], _dims(t.shape), _dtype(t)) for t in model.inputs]
    inputs = match_inputs(where, wanted, given)
    if isinstance(getattr(model, "input", None), dict):
        return model, ((), {i.name: i for i in inputs})
    return model, (tuple(inputs), {})


def _dims(shape: Any) -> tuple[int | None, ...]:
    return tuple(None if size is None else int(size) for size in shape)


def _dtype(tensor: Any) -> str:
    return str(getattr(tensor.dtype, "name", tensor.dtype))
