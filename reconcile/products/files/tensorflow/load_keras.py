"""Loads Keras models from ``.keras`` and ``.h5`` files, after checks of what Keras would read.

A configuration may contain Lambda layers with their bytecode, and may name any class: keras_config.py checks for those.
Links out of an HDF5 file and the sizes that it declares are checked before any tensor is read.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import (
    FileError,
    Wanted,
    match_inputs,
    member,
    show_name,
)
from ..repacked import fresh
from .keras_config import check_config

OBJECTS = 100_000
"""The largest number of groups and tensors in an HDF5 file."""

H5 = (".h5", ".hdf5")
"""Keras reads a file as HDF5 if its name ends like this; a file can be HDF5 and a zip archive at the same time."""


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The Keras model and the arguments of its call. Raises FileError."""
    import tensorflow as tf

    where = member(file.path)
    options = {} if not hasattr(tf.keras, "version") else {"safe_mode": not file.trusted}
    with _check_file(where, file) as path:
        model = tf.keras.models.load_model(path, compile=False, **options)
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


@contextlib.contextmanager
def _check_file(where: str, file: ModelFile) -> Iterator[str]:
    """The path that Keras may read: the file, or a temporary archive of the members that were checked. Raises FileError."""
    if file.kind == "keras" and not file.trusted:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            with (
                fresh(file, lambda name, data: _looked_at(where, name, data, file)) as archive,
                open(path, "wb") as made,
            ):
                shutil.copyfileobj(archive, made)
            yield path
        return
    if file.kind == "keras_h5":
        _h5(where, file)
    yield file.path


def _looked_at(where: str, name: str, data: bytes, file: ModelFile) -> bytes:
    """The bytes of a member of a Keras archive, if it may be loaded. Raises FileError."""
    if name == "config.json":
        try:
            config = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FileError(f"{where} cannot be loaded: its config.json is not valid JSON.") from error
        check_config(where, config)
    elif name.endswith(".h5"):
        check_h5(where, io.BytesIO(data), file)
    return data


def _h5(where: str, file: ModelFile) -> None:
    if not file.trusted and not file.path.endswith(H5):
        raise FileError(f"{where} is an HDF5 file, but Keras goes by the file name: rename it so that it ends in .h5.")
    config = check_h5(where, file.path, file)
    if config is None:
        raise FileError(f"{where} holds weights but no model. Write a factory that builds the model and loads them.")
    try:
        model_config = json.loads(config)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where} cannot be loaded: its model_config is not valid JSON.") from error
    if not file.trusted:
        check_config(where, model_config)


def check_h5(where: str, source: Any, file: ModelFile) -> str | None:
    """Check an HDF5 file for links to other files; its model_config, if it has one. Raises FileError."""
    import h5py

    try:
        with h5py.File(source, "r") as root:
            total = _size(where, root)
            config = root.attrs.get("model_config")
    except (OSError, RuntimeError, LookupError, ValueError, OverflowError) as error:  # h5py raises all of these
        why = str(error).strip("'").split("(", 1)[-1].rstrip(")")
        raise FileError(f"{where} is cut short or damaged: {why}.") from error
    if total > max(2 * file.size, 1 << 24) and not file.trusted:
        raise FileError(
            f"{where} declares tensors of {total:,} bytes, more than the file can hold; pass --trust-file to open it anyway."
        )
    return config.decode("utf-8", "replace") if isinstance(config, bytes) else config


def _size(where: str, root: Any) -> int:
    """Bytes of all tensors in an HDF5 file, without following links."""
    import h5py

    total, seen, pending, groups = 0, 0, [root], {_address(root)}
    while pending:
        group = pending.pop()
        for name in group:
            seen += 1
            inside = show_name(f"{group.name.rstrip('/')}/{name}")
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise FileError(f"{where} holds a link, {inside}, in place of a tensor or a group.")
            if seen > OBJECTS:
                raise FileError(f"{where} holds more than {OBJECTS:,} tensors and groups.")
            item = group[name]
            if isinstance(item, h5py.Dataset):
                if item.is_virtual or item.external:
                    raise FileError(f"{where} keeps the tensor {inside} in another file.")
                total += item.nbytes
            elif _address(item) in groups:
                raise FileError(f"{where} is damaged: it holds one group in two places, {inside} and another.")
            else:
                groups.add(_address(item))
                pending.append(item)
    return total


def _address(group: Any) -> int:
    """Where a group lies in its file: the same for two names of one group."""
    import h5py

    return int(h5py.h5o.get_info(group.id).addr)
