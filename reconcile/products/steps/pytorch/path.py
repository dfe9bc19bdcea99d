"""Layer paths in a program's step: of the models that you name, and of modules that the program calls outside of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from threading import get_ident
from typing import Any

import torch

from ....adapters.pytorch.tracing.module_path import module_paths
from ....adapters.pytorch.tracing.nodes import TrainingPath
from ....core.records import LOSS_LAYER
from .frames import named_arguments

WRAPPING = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")
"""Names by which PyTorch's wrappers hold the module that they wrap: torch.compile, checkpoints, FSDP."""


def name_modules(models: Sequence[torch.nn.Module]) -> dict[torch.nn.Module, str]:
    """Every module of these models with its path: below the class's name where there are several models."""
    found: dict[torch.nn.Module, str] = {}
    if len(models) == 1:
        _add(found, models[0], "")
        return found
    for model in models:
        _add(found, model, _unused_name(type(model).__name__, found))
    return found


def _unused_name(name: str, taken: Mapping[torch.nn.Module, str]) -> str:
    """``Net``, or ``Net#2`` where that is another model's."""
    used, number = set(taken.values()), 1
    while (name if number == 1 else f"{name}#{number}") in used:
        number += 1
    return name if number == 1 else f"{name}#{number}"


def _add(found: dict[torch.nn.Module, str], model: torch.nn.Module, name: str) -> None:
    for module, path in module_paths(model).items():
        parts = [part for part in (name, *path.split(".")) if part and part not in WRAPPING]
        found.setdefault(module, ".".join(parts))


class StepPath(TrainingPath):
    """Paths of several models, and of modules that a program calls by themselves.

    ``met`` is called with the modules that get a name, ``called`` with the arguments of a call that no other module makes, and
    ``left`` with what it returns.  A module without weights that is called after a model is part of the loss.
    """

    always = True
    sets_aside = False  # its modules are met as they are called

    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        met: Callable[[Mapping[torch.nn.Module, str]], None],
        called: Callable[[torch.nn.Module, Any], None],
        left: Callable[[Any], None],
    ) -> None:
        super().__init__(models[0] if models else torch.nn.Module())
        self.given = bool(models)
        self._names = name_modules(models) if models else {}
        self._hooked = {m for m in self._names if m._forward_pre_hooks or m._forward_hooks}
        self._met, self._called, self._left = met, called, left
        self.losing = False  # whether a loss may be taken now
        self._calls: dict[torch.nn.Module, Mapping[torch.nn.Module, str]] = {}
        self._entered: dict[int, list[torch.nn.Module]] = {}  # the modules of ``running_paths``, by thread
        if self._names:
            met(self._names)

    def parts(self, models: Sequence[torch.nn.Module]) -> None:
        """These are parts of one model, such as the stages of a pipeline: their modules have the names that they have in it."""
        added: dict[torch.nn.Module, str] = {}
        for model in models:
            _add(added, model, "")
        self._names.update(added)
        if added:
            self._met(added)

    def describe_weights(self, weights: Set[int]) -> str:
        """The module whose weights these are, by their identities, and otherwise one of them and how many more there are."""
        for module, name in self._names.items():
            if weights == {id(weight) for weight in module.parameters()}:
                return name or "(model)"
        own = [
            f"{path}.{name}".lstrip(".")
            for module, path in self._names.items()
            for name, weight in module.named_parameters(recurse=False)
            if id(weight) in weights
        ]
        more = f" and {len(weights) - 1} more weights" if len(weights) > 1 else ""
        return f"{own[0]}{more}" if own else f"{len(weights)} other weights"

    def unwind(self, depth: int) -> None:
        """Leave the modules that an exception ended: this many run."""
        del self.running_paths[depth:]
        del self._modules[max(depth - 1, 0) :]

    @property
    def _modules(self) -> list[torch.nn.Module]:
        return self._entered.setdefault(get_ident(), [])

    @property
    def running_module(self) -> bool:
        """Whether a module of a model runs now."""
        return len(self.running_paths) > 1

    def _meet(self, module: torch.nn.Module) -> None:
        inside = [m for m in module.modules() if m in self._names]
        if inside:  # what wraps a model, such as DistributedDataParallel
            self._names[module] = ""
            return
        if self.losing and next(module.parameters(), None) is None:
            added = dict.fromkeys(module.modules(), LOSS_LAYER)
        else:
            first = not self.given and not any(name != LOSS_LAYER for name in self._names.values())
            name = "" if first and next(module.parameters(), None) is not None else type(module).__name__
            added = {}
            _add(added, module, _unused_name(name, self._names) if name else "")
        self._names.update(added)
        for each in added:
            if each is not module and (each._forward_pre_hooks or each._forward_hooks):
                self._hook(each)
        self._met(added)

    def _below(self, module: torch.nn.Module) -> Mapping[torch.nn.Module, str]:
        """The modules of a call with their names."""
        found = self._calls.get(module)
        if found is None:
            found = self._calls[module] = {m: self._names[m] for m in module.modules() if m in self._names}
        return found

    def _begin(self, module: torch.nn.Module) -> None:
        """The program calls this module."""
        if module in self._names:
            self._met(self._below(module))
        else:
            self._meet(module)

    def inside(self, module: torch.nn.Module, inputs: Any, named: dict[str, Any]) -> None:
        """A call of this module is under way, and no other is told of."""
        self._begin(module)
        super()._push(module, inputs)
        self._modules.append(module)
        self._called(module, (inputs, named))

    def _push(self, module: torch.nn.Module, inputs: Any) -> None:
        root = not self.running_module
        if root:
            self._begin(module)
        super()._push(module, inputs)
        self._modules.append(module)
        if root and self.current != LOSS_LAYER:
            self._called(module, (inputs, named_arguments()))

    def _mark_after_forward(self, module: Any, inputs: Any, outputs: Any) -> None:
        if self.running_module:
            super()._mark_after_forward(module, inputs, outputs)

    def _pop(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        modules = self._modules
        if module not in modules:  # a hook of the program's raised before ours was called
            return
        while modules.pop() is not module:  # what an exception ended that nothing told us of
            self.running_paths.pop()
        loss = self.current == LOSS_LAYER
        super()._pop(module, inputs, outputs)
        if len(self.running_paths) == 1 and not loss:
            self._left(outputs)
