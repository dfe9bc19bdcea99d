"""Loads TorchScript modules from files.

A TorchScript module is compiled and runs in an interpreter of its own, which reads its pickles itself and finds no class or
function of Python. What its operators do as it is loaded and called is limited by the confinement of the process (confine.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import FileError, Wanted, match_inputs, member


def torchscript(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """A TorchScript module and the arguments to call it with. Raises FileError."""
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
