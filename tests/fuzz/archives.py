"""Archives of every kind: what was checked is what is loaded.

PyTorch's or Keras' loader is stood in for by one that takes what it is handed. There, PyTorch's own reader has to find the
members that Python's zipfile finds, of the same content, and nowhere what the checks refuse: each archive holds, or hides, a
member with a mark in it that is forbidden wherever a loader would look.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from . import mutate, zips
from .harness import Target, Wrong, drawn

MARK = b"forbidden_by_every_check"


CANNOT_BE_READ = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError)
"""What a library says of a damaged file: given_file.py makes a sentence of it. Any other error is a check that fell over."""


class Handed(BaseException):
    """What a loader was handed: a path, or bytes; nothing is loaded."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.data: bytes = source.read() if hasattr(source, "read") else Path(source).read_bytes()


def _take(source: Any, *_args: Any, **_named: Any) -> None:
    raise Handed(source)


@contextlib.contextmanager
def _patched(*names: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch(name, _take))
        yield


def refused(framework: str, path: Path, load: Callable[[Any], object]) -> bytes | None:
    """The bytes that a file's loader is handed; None for a file that is refused by a sentence before."""
    from reconcile import files
    from reconcile.adapters.model_file import FileError
    from reconcile.errors import UsageError

    try:
        found = files.read(framework, str(path))
        load(files.request(found, trusted=False, signature=""))
    except (UsageError, FileError) as error:
        if "\n" in str(error):
            raise Wrong("its sentence has several lines") from error
        return None
    except CANNOT_BE_READ:
        return None
    except Handed as handed:
        return handed.data
    raise Wrong("nothing was loaded, and nothing said")


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# PyTorch


def _ready_torch() -> None:
    import torch
    import torch.export  # noqa: F401

    from reconcile.adapters import load_torch  # noqa: F401

    torch.set_num_threads(1)


@cache
def _torch() -> dict[str, dict[str, bytes]]:
    """The members of a small program of each kind."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 2)).eval()
    exported, script = io.BytesIO(), io.BytesIO()
    torch.export.save(torch.export.export(model, (torch.ones(1, 3),)), exported)
    torch.jit.save(torch.jit.script(model), script)
    return {"exported": _members(exported.getvalue()), "script": _members(script.getvalue())}


def _forbidden(members: dict[str, bytes]) -> dict[str, bytes]:
    """Members that the checks refuse, by the name under which they would be loaded, each with the mark."""
    found = {}
    for name, data in members.items():
        if name.endswith("models/model.json"):
            found[name] = data.replace(b"torch.ops.aten.linear.default", b"torch.hub." + MARK)
            hidden = json.loads(data) | {"expr_str": MARK.decode() + "()"}
            found[name + " "] = json.dumps(hidden).encode()
        elif name.endswith("_config.json"):
            entry = {"path_name": "custom_obj_0", "use_pickle": True, "is_param": False, "tensor_meta": None}
            found[name] = json.dumps({"config": {MARK.decode(): entry}}).encode()
        elif "/code/" in name and name.endswith(".py"):
            found[name] = b"def f(self):\n  return ops." + MARK + b".run()\n"
    root = next(iter(members)).partition("/")[0]
    if any("/code/" in name for name in members):
        found[f"{root}/code/__torch__.py"] = b"def f(self):\n  return ops." + MARK + b".run()\n"
    else:
        found[f"{root}/models/other.json"] = found[f"{root}/models/model.json"]
    return {name.strip(): data for name, data in found.items()}


PROGRAM = (
    "torch.hub.load", "torch.ops.aten.from_file.default", "torch.ops.aten.linear.default", "__import__('os').mkdir('escaped')",
    "expr_str", "target", "inputs", "math.floor", "torch.ops.higher_order.cond", "_operator.add", "Symbol('s0')", "use_pickle",
)  # fmt: skip


def _torch_archives() -> st.SearchStrategy[bytes]:
    _torch()  # torch.export takes seconds and starts things: before the first case
    return drawn(torch_archive)


def torch_archive(rng: Random) -> bytes:
    """A .pt2 or TorchScript archive with a forbidden member in it, or with bytes of it changed."""
    members = _torch()[rng.choice(("exported", "script"))]
    if rng.random() < 0.15:
        names = [name for name in members if name.endswith((".json", ".py"))]
        name = rng.choice(names)
        made = dict(members)
        if name.endswith(".json"):
            made[name] = mutate.tree(rng, json.loads(members[name]), PROGRAM).encode("utf-8", "surrogatepass")
        else:
            made[name] = mutate.blob(rng, members[name], (b"ops.aten.from_file(", b"__setstate__", b"\0", b"(" * 300))
        return zips.archive(zips.entries_of(made, rng))
    data = zips.mutated(rng, members, _forbidden(members))
    return mutate.blob(rng, data, (b"PK\x05\x06", b"PK\x06\x07", b"\xff\xff\xff\xff")) if rng.random() < 0.2 else data


def check_torch(data: bytes, folder: Path) -> None:
    """Raises Wrong where PyTorch would read what the checks have not."""
    from reconcile.adapters import load_torch

    path = folder / "net.pt2"
    path.write_bytes(data)
    with _patched("torch.export.load", "torch.jit.load"):
        handed = refused("torch", path, lambda file: load_torch.load(file, None))
    if handed is not None:
        same(handed)


def same(data: bytes) -> None:
    """Raises Wrong where PyTorch's reader and Python's do not find the same in an archive, or the mark is in it."""
    import torch

    try:
        reader = torch._C.PyTorchFileReader(io.BytesIO(data))
        names = reader.get_all_records()
    except RuntimeError:
        return  # PyTorch will say so, too
    except UnicodeDecodeError as error:
        raise Wrong("PyTorch reads what the checks cannot have read") from error
    seen = {}
    for name in names:
        with contextlib.suppress(RuntimeError):  # a member that PyTorch cannot read either
            seen[name] = bytes(reader.get_record(name))
    if any(MARK in held for held in seen.values()):
        raise Wrong("PyTorch reads a member that is forbidden")
    try:
        ours = {name.partition("/")[2]: held for name, held in _members(data).items()}
    except CANNOT_BE_READ as error:
        raise Wrong("PyTorch reads what the checks cannot have read") from error
    if set(ours) != set(names) or len(ours) != len(names):
        raise Wrong("PyTorch finds other members than were checked")
    if any(ours[name] != held for name, held in seen.items()):
        raise Wrong("PyTorch reads other bytes than were checked")


# Keras, and what is no model

CONFIG = {
    "module": "keras", "class_name": "Sequential", "registered_name": None,
    "config": {"name": "s", "layers": [{"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}, "registered_name": None}]},
}  # fmt: skip
LAYERS = (
    "layers.Lambda", "Lambda", "keras.src.layers.core.lambda_layer", "keras", "builtins", "eval", "exec", "os", "system", "TFSMLayer",
    "keras>Lambda", "__lambda__", "tensorflow", "io.write_file", "keras.utils", "get_file", "registered_name", "class_name", "module",
    "config", "Functional", "Dense", "layers", "keras.layers", "class_name ", MARK.decode(),
)  # fmt: skip


def _ready_keras() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import h5py  # noqa: F401
    import tensorflow as tf

    from reconcile.adapters import load_keras  # noqa: F401

    tf.keras.models.load_model  # noqa: B018  Keras is imported when it is asked for


@cache
def _keras() -> dict[str, bytes]:
    import h5py

    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["layers/dense/vars/0"] = [[1.0, 2.0]]
    return {"metadata.json": b"{}", "config.json": json.dumps(CONFIG).encode(), "model.weights.h5": weights.getvalue()}


def keras_archive(rng: Random) -> bytes:
    """A .keras archive with another configuration in it, or hidden in it."""
    members = _keras()
    layer = {"module": "keras.layers", "class_name": "Lambda", "config": {"function": MARK.decode()}, "registered_name": None}
    evil = {"config.json": json.dumps(CONFIG | {"config": {"layers": [layer]}}).encode(), "model.weights.h5": MARK * 9}
    if rng.random() < 0.5:
        return zips.mutated(rng, members, evil)
    if rng.random() < 0.5:
        made = {**members, "model.weights.h5": mutate.blob(rng, members["model.weights.h5"])}
    else:
        made = {**members, "config.json": mutate.tree(rng, CONFIG, LAYERS).encode("utf-8", "surrogatepass")}
    return zips.archive(zips.entries_of(made, rng))


def check_keras(data: bytes, folder: Path) -> None:
    """Raises Wrong where Keras would read what the checks have not, or a class that is not one of its layers'."""
    from reconcile.adapters import load_keras

    path = folder / "net.keras"
    path.write_bytes(data)
    with _patched("keras.models.load_model", "tensorflow.keras.models.load_model"):
        handed = refused("tf", path, lambda file: load_keras.load(file, None))
    if handed is None:
        return
    with zipfile.ZipFile(io.BytesIO(handed)) as archive:
        config = archive.read("config.json")
    if MARK in config and b"Lambda" in config:
        raise Wrong("Keras reads a configuration that is forbidden")
    pending = [json.loads(config)]
    while pending:
        item = pending.pop()
        pending += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if isinstance(item, dict) and isinstance(item.get("class_name"), str):
            last = item["class_name"].replace(">", ".").rpartition(".")[2]
            if last.strip() in ("Lambda", "TFSMLayer", "__lambda__", "eval", "exec", "system", "write_file", "get_file"):
                raise Wrong(f"Keras is handed a {last}")


def any_archive(rng: Random) -> bytes:
    """A zip archive of names that mean something to some kind of model."""
    names = ("archive/data.pkl", "archive/constants.pkl", "archive/code/a.py", "archive/models/m.json", "config.json", "metadata.json", "saved_model.pb")
    members = {name: rng.choice((b"{}", b"", b"x" * 40)) for name in names if rng.random() < 0.5} or {"a": b""}
    data = zips.mutated(rng, members, {rng.choice(names): MARK})
    return mutate.blob(rng, data, (b"PK\x05\x06", b"PK\x06\x06", b"\xff\xff\xff\xff")) if rng.random() < 0.7 else data


def check_any(data: bytes, folder: Path) -> None:
    """Whatever it is: a kind, or one sentence."""
    from reconcile import files
    from reconcile.errors import UsageError

    path = folder / "net.zip"
    path.write_bytes(data)
    for framework in ("torch", "tf", "onnx"):
        try:
            assert files.read(framework, str(path)).kind in files.KINDS
        except UsageError as error:
            if "\n" in str(error):
                raise Wrong("its sentence has several lines") from error


TARGETS = (
    Target("archives", lambda: drawn(any_archive), check_any, lambda: None),
    Target("torch", _torch_archives, check_torch, _ready_torch, needs="torch"),
    Target("keras", lambda: drawn(keras_archive), check_keras, _ready_keras, needs="tf"),
)
