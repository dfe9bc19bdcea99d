"""Loads PyTorch model files, torch.export programs and TorchScript, without unpickling anything.

An exported program becomes modules again (torch.export.unflatten), which keep the paths of those it was exported from.
A TorchScript module is compiled and runs in an interpreter of its own, which reads its pickles itself and finds no class or
function of Python. What its operators do as it is loaded and called is limited by the confinement of the process (confine.py).
PyTorch does not get the user's file: it reads a new archive of the checked members (repacked.py), since its own reader takes
names in any case, and finds members where Python's reader finds others. It reads a trusted file itself.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import FileError, Wanted, match_inputs, member, show_name
from ..repacked import fresh
from .program import HOLDS_A_PICKLE, containers, looked_at

SAMPLES = ("data/sample_inputs/model.pt", b"")
"""The inputs that a program was exported with: PyTorch would unpickle them, so it is told that there are none."""


def ready() -> None:
    """Start the framework, before the guards of worker.py are in force."""
    import torch.export  # noqa: F401


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The module in the file and the arguments to call it with. Raises FileError."""
    import torch

    with torch.device("cpu"), _weights_only(file):
        return (load_script if file.kind == "torchscript" else load_exported)(file, given)


@contextlib.contextmanager
def _weights_only(file: ModelFile) -> Iterator[None]:
    """Make torch.load read tensors only, even where its caller would fall back to unpickling."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    if not file.trusted:
        os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


def load_script(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """A TorchScript module."""
    import torch

    where = member(file.path)
    with fresh(file, lambda _name, data: data) as archive:
        module = torch.jit.load(archive, map_location="cpu")
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
    """An exported program as modules."""
    import torch
    from torch.utils import _pytree as pytree

    where = member(file.path)
    if file.trusted:
        _import_containers(file.path)
    try:
        with fresh(file, lambda name, data: looked_at(where, name, data), SAMPLES) as archive:
            program = torch.export.load(archive)
    except pickle.UnpicklingError as error:
        if file.trusted:
            raise
        raise FileError(HOLDS_A_PICKLE.format(where)) from error
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
    """Import what defines the containers of a trusted program's arguments and results: it tells PyTorch of them. Raises
    FileError for one that PyTorch does not know then."""
    from torch.utils import _pytree as pytree

    with zipfile.ZipFile(path) as archive:
        programs = [json.loads(archive.read(n)) for n in archive.namelist() if "/models/" in n and n.endswith(".json")]
    for name in sorted({name for program in programs for name in containers(program)}):
        if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            with contextlib.suppress(ImportError):
                importlib.import_module(name.rpartition(".")[0])
        if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            raise FileError(
                f"{member(path)} takes or gives back a {show_name(name)}, which torch.utils._pytree does not know: install what "
                "defines it in this environment, or export the model again in a module that gives back tensors alone."
            )


def _sizes(value: Any) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in value.shape)
