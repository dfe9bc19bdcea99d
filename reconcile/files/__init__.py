"""A model in a file: what kind it is, by its content, and whether it is one that may be opened at all.

Everything here looks, and loads nothing: the first bytes, a zip archive's directory, the outermost fields of a protobuf
message, names and sizes in a folder. No framework, no pickle, bounded time and memory whatever the file holds.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from typing import NoReturn

from ..core.errors import UsageError, brief, reason
from ..core.protocol import ModelFile
from ..core.registry import frameworks
from . import archive, members, wire

LIMIT = 2 << 30
"""Bytes a file may hold, unpacked: also what one protobuf message can (protobuf.dev/programming-guides/encoding)."""

KINDS = {kind: (record.name, title) for record in frameworks().values() for kind, title in record.files}
"""Kind -> the option that takes it, and what it is called."""

WAY_OUT = f"Write a factory that loads it (--{KINDS['torchscript'][0]} MODULE:FUNCTION)"
PICKLE = (
    "it is a pickle, and a pickle runs whatever code it brings along: nothing is unpickled here. "
    + WAY_OUT
    + ", or save the model with torch.export.save (.pt2)"
)
EXPECTED = (
    "a frozen .pb, a SavedModel folder, .keras, .h5, .pt2, a TorchScript archive or .onnx, by their content, whatever the "
    "name ends in"
)


def wrong(path: Path, why: str) -> UsageError:
    """The one sentence about a file that cannot be used."""
    return UsageError(f"{brief(path)}: {why}.")


def looks_like_path(text: str) -> bool:
    """Whether what was given for a model is a file rather than MODULE:FUNCTION."""
    return os.path.lexists(text) or (":" not in text and (os.sep in text or Path(text).suffix in ENDINGS))


STARTS = frozenset(number << 3 | kind for number in range(1, 5) for kind in (wire.VARINT, wire.BYTES))
"""First bytes of the messages that are known: one of their first fields, a number or a part with a length."""

ENDINGS = (".pb", ".keras", ".h5", ".hdf5", ".pt2", ".pt", ".pth", ".ts", ".onnx", ".pkl", ".bin", ".safetensors")


def read(framework: str, text: str, trusted: bool = False) -> ModelFile:
    """The model file at this path, given by that framework's option. Raises UsageError, with the way out."""
    path = Path(text)
    try:
        found = _folder(path, trusted) if os.path.isdir(path) else _file(path, trusted)
    except FileNotFoundError:
        raise wrong(path, "there is no such file") from None
    except (OSError, ValueError) as error:
        raise wrong(path, f"it cannot be read: {reason(error)}") from error
    option, title = KINDS[found.kind]
    if option != framework:
        raise wrong(path, f"it is {title}: give it with --{option}, not --{framework}")
    return found


def _large(path: Path, size: int) -> UsageError:
    return wrong(
        path,
        f"it holds {size:,} bytes, more than the {LIMIT:,} that are opened without asking; --trust-file opens it all the same",
    )


def _file(path: Path, trusted: bool) -> ModelFile:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise wrong(path, "it is neither a file nor a folder")
    size = status.st_size
    if not size:
        raise wrong(path, "it is empty")
    with path.open("rb") as file:
        head = file.read(16)
    if head[:2] == b"PK":
        return _zip(path, trusted)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        kind = "keras_h5"
    elif _no_model(head):
        raise wrong(path, _no_model(head))
    else:
        kind = _protobuf(path, size)
    if size > LIMIT and not (trusted and kind == "keras_h5"):
        raise _large(path, size)
    return ModelFile(os.path.realpath(path), kind, size)


def _no_model(head: bytes) -> str:
    """Why a file that starts like this is no model, where that can be told; '' otherwise."""
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return PICKLE
    if head[4:8] == b"TFL3":
        return "it is a TensorFlow Lite model; give the SavedModel or Keras file that it was converted from"
    if head[:4] == b"GGUF" or (head[8:9] == b"{" and head[:8].strip(b"\0") != head[:8]):
        return f"it holds weights without a model. {WAY_OUT}"
    return ""


def _zip(path: Path, trusted: bool) -> ModelFile:
    try:
        held = archive.inspect(path, None if trusted else LIMIT)
        kind = _archive_kind(path, held.names)
        if not trusted:
            members.check(kind, held.names)
    except archive.Hostile as error:
        raise wrong(path, str(error)) from error
    except members.Outside as error:
        raise wrong(path, f"{error}; --trust-file opens it all the same") from error
    return ModelFile(os.path.realpath(path), kind, held.size)


def _archive_kind(path: Path, names: frozenset[str]) -> str:
    """What a zip archive is, by its members; PyTorch puts all of them below one folder."""
    inside = {name.partition("/")[2] for name in names}
    if "data.pkl" in inside or "data.pkl" in names:
        if "constants.pkl" in inside and any(name.startswith("code/") for name in inside):
            return "torchscript"
        raise wrong(path, PICKLE)
    if any(name.startswith("data/aotinductor/") and name.endswith((".so", ".cpp", ".pyd", ".dll")) for name in inside):
        raise wrong(path, f"it holds compiled code (AOTInductor), no program to read. {WAY_OUT}")
    weights = ("data/weights/", "data/constants/")
    older = any(name.startswith(weights) and name.endswith(".pt") for name in inside)
    if any(name.startswith("models/") and name.endswith(".json") for name in inside) and not older:
        return "exported_program"
    if older or "serialized_exported_program.json" in names | inside:
        raise wrong(path, "it is a .pt2 of an older PyTorch; save it again with torch.export.save")
    if "config.json" in names and "metadata.json" in names:
        return "keras"
    if any(name.endswith("saved_model.pb") for name in names):
        raise wrong(path, "it is an archive with a SavedModel; unpack it and give the folder")
    raise wrong(path, f"it is a zip archive, but none that holds a model. Known are {EXPECTED}")


def _protobuf(path: Path, size: int) -> str:
    """Which protobuf message a file is: an ONNX ModelProto, a GraphDef, a SavedModel's own file."""
    try:
        with wire.opened(path) as data:
            if data[0] not in STARTS:
                raise wire.NotWire
            fields = wire.fields(data, 0, size)
            kinds = {(number, kind) for number, kind, _, _ in fields}
            if _is_onnx(kinds):
                return "onnx"
            node = next((f for f in fields if f[:2] == (1, wire.BYTES)), None)
            if node is not None and max(n for n, _ in kinds) <= 4 and _is_node(data, node):
                return "graph_def"
            if (1, wire.VARINT) in kinds and (2, wire.BYTES) in kinds:
                raise wrong(path, "it is a SavedModel's own file; give the folder that it stands in")
    except wire.Truncated as error:
        raise wrong(path, f"it is cut short: {error}") from error
    except wire.NotWire:
        pass
    raise wrong(path, f"it is no model that can be read. Known are {EXPECTED}")


def _is_node(data: mmap.mmap, field: wire.Field) -> bool:
    """NodeDef: its name 1 and op 2 come first (tensorflow/core/framework/node_def.proto)."""
    try:
        inside = wire.fields(data, field[2], field[3])
    except wire.Truncated:
        return False
    return [f[:2] for f in inside[:2]] == [(1, wire.BYTES), (2, wire.BYTES)]


def _is_onnx(fields: set[tuple[int, int]]) -> bool:
    """ModelProto: ir_version 1, graph 7, opset_import 8 (onnx/onnx.proto)."""
    return {(1, wire.VARINT), (7, wire.BYTES), (8, wire.BYTES)} <= fields


def _folder(path: Path, trusted: bool) -> ModelFile:
    inside = path / "saved_model.pb"
    if not inside.is_file():
        if (path / "config.json").is_file():
            raise wrong(path, f"it holds weights and a configuration, no model. {WAY_OUT}")
        raise wrong(path, "there is no saved_model.pb in this folder")
    root, total = Path(os.path.realpath(path)), 0
    for number, (folder, folders, files) in enumerate(os.walk(root, onerror=_raise)):
        for name in (*folders, *files):
            _check_link(path, root, Path(folder, name))
        total += sum(Path(folder, name).lstat().st_size for name in files)
        if number > 10_000:
            raise wrong(path, "it has more than 10,000 folders in it")
    size = inside.stat().st_size
    if not size:
        raise wrong(inside, "it is empty")
    if (total > LIMIT and not trusted) or size > LIMIT:
        raise _large(path, total)
    try:
        with wire.opened(inside) as data:
            known = {f[:2] for f in wire.fields(data, 0, size)}
    except wire.Truncated as error:
        raise wrong(inside, f"it is cut short: {error}") from error
    except wire.NotWire:
        known = set()
    if (2, wire.BYTES) not in known:
        raise wrong(inside, "it is no SavedModel")
    return ModelFile(str(root), "saved_model", total)


def _raise(error: OSError) -> NoReturn:
    """What os.walk does with a folder that it cannot read: left to itself it passes over it."""
    raise error


def _check_link(path: Path, root: Path, inside: Path) -> None:
    """Raise UsageError for a link in the folder ``root`` that leads out of it, or nowhere."""
    if not inside.is_symlink():
        return
    try:
        target = Path(os.path.realpath(inside, strict=True))
    except OSError as error:
        raise wrong(path, f"{inside.name} is a link that leads nowhere ({reason(error)})") from error
    if root not in target.parents:
        raise wrong(path, f"{inside.name} is a link that leads out of it")
