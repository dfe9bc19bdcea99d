"""Loads PyTorch model files: torch.export programs and TorchScript.

An exported program becomes modules again (torch.export.unflatten), which keep the paths of those it was exported from.
PyTorch reads the file as it always does: what the file makes it unpickle, import, evaluate or call, it does in a process that is
confined (confine.py), unless the file is trusted.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import FileError, Wanted, match_inputs, member, show_name


def ready() -> None:
    """Start the framework, before the memory is limited."""
    import torch.export  # noqa: F401


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The module in the file and the arguments to call it with. Raises FileError."""
    import torch

    with torch.device("cpu"):
        return (load_script if file.kind == "torchscript" else load_exported)(file, given)


def load_script(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The TorchScript module in a file, and the arguments to call it with. Raises FileError."""
    import torch

    where = member(file.path)
    module = torch.jit.load(file.path, map_location="cpu")
    wanted = []
    for argument in module.forward.schema.arguments[1:]:
        if str(argument.type) == "Tensor":
            wanted.append(Wanted(argument.name, None, ""))
        elif not argument.has_default_value():
            raise FileError(
                f"{where} takes {argument.name}: {argument.type}, which cannot be given on the command line. "
                "Write a factory that loads it."
            )
    return module, (tuple(match_inputs(where, wanted, given)), {})


def load_exported(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The exported program in a file as modules, and the arguments to call them with. Raises FileError."""
    import torch
    from torch.utils import _pytree as pytree

    where = member(file.path)
    _import_containers(file.path)
    with open(file.path, "rb") as archive:  # a path would have to end in .pt2
        program = torch.export.load(archive)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = list(program.graph_signature.user_inputs)
    wanted = [
        Wanted(name, _sizes(values[name]), str(values[name].dtype).replace("torch.", ""))
        for name in names
        if isinstance(name, str) and isinstance(values.get(name), torch.Tensor)
    ]
    known = {i.name: i for i in match_inputs(where, wanted, given)}
    leaves = [known.get(name, name) if isinstance(name, str) else name for name in names]
    positional, named = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return torch.export.unflatten(program), (tuple(positional), dict(named))


def _import_containers(path: str) -> None:
    """Import what defines the containers of a program's arguments and results: it tells PyTorch of them. Raises FileError for one
    that PyTorch does not know then."""
    from torch.utils import _pytree as pytree

    with zipfile.ZipFile(path) as archive:
        programs = [json.loads(archive.read(n)) for n in archive.namelist() if "/models/" in n and n.endswith(".json")]
    for name in sorted({name for program in programs for name in _containers(program)}):
        if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            with contextlib.suppress(ImportError):
                importlib.import_module(name.rpartition(".")[0])
        if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            raise FileError(
                f"{member(path)} takes or gives back a {show_name(name)}, which torch.utils._pytree does not know: install what "
                "defines it in this environment, or export the model again in a module that gives back tensors alone."
            )


def _containers(program: Any) -> Iterator[str]:
    """The types of all containers in the trees of arguments and results of a program."""
    pending = [program]
    while pending:
        item = pending.pop()
        pending.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        for key in ("in_spec", "out_spec"):
            if isinstance(item, dict) and isinstance(item.get(key), str):
                nodes = [json.loads(item[key])[1]]
                for node in nodes:
                    nodes.extend(node["children_spec"])
                yield from (str(node["type"]) for node in nodes if node["type"] is not None)


def _sizes(value: Any) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in value.shape)
