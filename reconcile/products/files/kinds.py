"""Detects the kind of a model file from its content, and decides whether it may be opened at all.

Nothing here loads a model. This reads only the first bytes, a zip archive's directory, the outermost fields of a protobuf
message, and names and sizes in a folder. No framework, no pickle, and bounded time and memory for any file.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ...core.errors import UsageError, brief, reason
from ...core.framework import relative
from ...core.protocol import ModelFile
from ...core.registry import frameworks
from ...launch.user_models import is_path
from . import archive, wire

LIMIT = 2 << 30
"""The largest unpacked size in bytes; also the limit of one protobuf message (protobuf.dev/programming-guides/encoding)."""

KINDS = {kind: (record.name, title) for record in frameworks().values() for kind, title in record.files}
"""Kind -> the option that takes it, and its title."""

WAY_OUT = f"Write a factory that loads it (--{KINDS['torchscript'][0]} MODULE:FUNCTION)"
PICKLE = (
    "it is a pickle, and loading a pickle runs the code in it, so reconcile does not unpickle anything. "
    + WAY_OUT
    + ", or save the model with torch.export.save (.pt2)"
)
NO_SIZE = (
    "the system makes it up while it is read, as it does in /proc, so that it has no size: name a file with a model"
)
EXPECTED_FILES = (
    "reconcile reads a frozen .pb, a SavedModel folder, .keras, .h5, .pt2, a TorchScript archive, .onnx or .tflite; it detects "
    "the type from the content, not from the extension"
)


def wrong(path: Path, why: str) -> UsageError:
    """The exception for a file that cannot be used: one sentence with its name and why."""
    return UsageError(f"{brief(path)}: {why}.")


SIGNED = ("saved_model", "graph_def", "tflite")
"""The kinds in which a signature or an output can be chosen."""


def read_models(models: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, ModelFile]:
    """Those of the models, by framework, that are files; ``given`` may have ``trust_file`` and ``signature``.

    Raises UsageError for a file that cannot be used, and for an option where there is no file that it is about.
    """
    trusted, signature = given.get("trust_file", False), given.get("signature", "")
    files = {
        name: read_model_file(name, text, trusted)
        for name, text in models.items()
        if not frameworks()[name].factories or is_path(text) or (":" not in text and Path(text).suffix in ENDINGS)
    }
    if trusted and not files:
        raise UsageError("--trust-file is for a model in a file, and none is given: leave it out.")
    if signature and not any(file.kind in SIGNED for file in files.values()):
        raise UsageError(
            "--signature is for a SavedModel, a frozen graph or a .tflite file, and none is given: leave it out."
        )
    return {name: file._replace(trusted=trusted, signature=signature) for name, file in files.items()}


STARTS = frozenset(number << 3 | kind for number in range(1, 5) for kind in (wire.VARINT, wire.BYTES))
"""First bytes of the known messages: one of their first fields, either a number or a part with a length."""

ENDINGS = (
    ".pb", ".keras", ".h5", ".hdf5", ".pt2", ".pt", ".pth", ".ts", ".onnx", ".tflite", ".pkl", ".bin", ".safetensors",
)  # fmt: skip


def read_model_file(framework: str, text: str, trusted: bool = False) -> ModelFile:
    """Describe the model file at this path, given with that framework's option. Raises UsageError that says what to do."""
    path = Path(text)
    try:
        model = _folder(path, trusted) if os.path.isdir(path) else _file(path, trusted)
    except FileNotFoundError:
        raise wrong(path, "there is no such file") from None
    except (OSError, ValueError) as error:
        raise wrong(path, f"it cannot be read: {reason(error)}") from error
    if model.kind not in KINDS:
        raise wrong(path, f"no framework that is installed here reads a file of the kind {model.kind}")
    option, title = KINDS[model.kind]
    if option != framework:
        raise wrong(path, f"it is {title}: pass it with --{option}, not --{framework}")
    return model._replace(reader=relative(f"{__package__}.worker"), confinement=relative(f"{__package__}.confine"))


def _large(path: Path, size: int) -> UsageError:
    return wrong(
        path,
        f"it holds {size:,} bytes, more than the limit of {LIMIT:,}; pass --trust-file to open it anyway",
    )


def _file(path: Path, trusted: bool) -> ModelFile:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise wrong(path, "it is neither a file nor a folder")
    size = status.st_size
    with path.open("rb") as file:
        head = file.read(16)
    if not size:
        raise wrong(path, NO_SIZE if head else "it is empty")
    if head[:2] == b"PK":
        return _zip(path, trusted)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        kind = "keras_h5"
    elif head[4:8] == b"TFL3":  # the file identifier of tensorflow/compiler/mlir/lite/schema/schema.fbs
        kind = "tflite"
    elif _no_model(head):
        raise wrong(path, _no_model(head))
    else:
        kind = _protobuf(path, size)
    if size > LIMIT and not (trusted and kind == "keras_h5"):
        raise _large(path, size)
    return ModelFile(os.path.realpath(path), kind, size)


def _no_model(head: bytes) -> str:
    """Why a file that starts like this is not a model, if that is clear; '' otherwise."""
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return PICKLE
    if head[:4] == b"GGUF" or (head[8:9] == b"{" and head[:8].strip(b"\0") != head[:8]):
        return f"it holds weights without a model. {WAY_OUT}"
    return ""


def _zip(path: Path, trusted: bool) -> ModelFile:
    try:
        contents = archive.inspect(path, None if trusted else LIMIT)
    except archive.Hostile as error:
        raise wrong(path, str(error)) from error
    return ModelFile(os.path.realpath(path), _archive_kind(path, contents.names), contents.size)


def _archive_kind(path: Path, names: frozenset[str]) -> str:
    """The kind of a zip archive, by its members; PyTorch puts all of them below one folder."""
    inside = {name.partition("/")[2] for name in names}
    if "data.pkl" in inside or "data.pkl" in names:
        if "constants.pkl" in inside and any(name.startswith("code/") for name in inside):
            return "torchscript"
        raise wrong(path, PICKLE)
    if any(name.startswith("data/aotinductor/") and name.endswith((".so", ".cpp", ".pyd", ".dll")) for name in inside):
        raise wrong(path, f"it holds compiled code (AOTInductor), but no program that reconcile can read. {WAY_OUT}")
    weights = ("data/weights/", "data/constants/")
    older = any(name.startswith(weights) and name.endswith(".pt") for name in inside)
    if any(name.startswith("models/") and name.endswith(".json") for name in inside) and not older:
        return "exported_program"
    if older or "serialized_exported_program.json" in names | inside:
        raise wrong(path, "it is a .pt2 from an older PyTorch; save it again with torch.export.save")
    if "config.json" in names and "metadata.json" in names:
        return "keras"
    if any(name.endswith("saved_model.pb") for name in names):
        raise wrong(path, "it is an archive that contains a SavedModel; unpack it and pass the folder")
    raise wrong(path, f"it is a zip archive that does not hold a model. {EXPECTED_FILES}")


def _protobuf(path: Path, size: int) -> str:
    """Which protobuf message a file is: an ONNX ModelProto, a GraphDef, or the file inside a SavedModel."""
    try:
        with wire.map_file(path) as data:
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
                raise wrong(path, "it is the file inside a SavedModel; pass the folder that contains it")
    except wire.Truncated as error:
        raise wrong(path, f"it is cut short: {error}") from error
    except wire.NotWire:
        pass
    raise wrong(path, f"it is not a model that can be read. {EXPECTED_FILES}")


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
            raise wrong(path, f"it holds weights and a configuration, but no model. {WAY_OUT}")
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
        with wire.map_file(inside) as data:
            known = {f[:2] for f in wire.fields(data, 0, size)}
    except wire.Truncated as error:
        raise wrong(inside, f"it is cut short: {error}") from error
    except wire.NotWire:
        known = set()
    if (2, wire.BYTES) not in known:
        raise wrong(inside, "it is not a SavedModel")
    return ModelFile(str(root), "saved_model", total)


def _raise(error: OSError) -> NoReturn:
    """Raise os.walk's error: by default it skips a folder that it cannot read."""
    raise error


def _check_link(path: Path, root: Path, inside: Path) -> None:
    """Raise UsageError for a link in the folder ``root`` that is broken or points outside it."""
    if not inside.is_symlink():
        return
    try:
        target = Path(os.path.realpath(inside, strict=True))
    except OSError as error:
        raise wrong(path, f"{inside.name} is a broken link ({reason(error)})") from error
    if root not in target.parents:
        raise wrong(path, f"{inside.name} is a link that points outside the folder")
