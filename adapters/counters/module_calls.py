"""Records the calls of every module (shapes, settings, number of calls), for counters that hook modules.

``make_capture`` and ``module_ledger`` are whole captures for a counter that runs a model once and reports a number per module.
Python 3.8, torch 1.x and later.
"""

import inspect
from importlib import import_module
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ...core.records import LIVE, WRAPPED, Entry, Ledger, Op, Sighting, Tensor
from ..pytorch.call_adapter import CallAdapter
from ..pytorch.model import TorchModel, versions
from ..pytorch.tracing.module_path import module_paths
from ..pytorch.tracing.records import plain, tensor_record, tensors_in
from ..pytorch.tracing.wrappers import is_wrapper
from ..shared.distribution import version_of
from ..shared.refusal import BeyondCounter
from . import ROOT, add_rest
from .limits import explain_limits

SEES_ONE_VMAP_EXAMPLE = (
    "it sees one example of what torch.func.vmap maps over: leave it out, or call the module on the whole batch"
)


def full_name(cls: type) -> str:
    """Module and qualified name of a class."""
    return cls.__module__ + "." + cls.__qualname__


def class_name(module: torch.nn.Module) -> str:
    """Full name of the module's exact class: thop matches ``type(m)``, never a subclass."""
    return full_name(type(module))


def visits(
    root: torch.nn.Module, enters: Callable[[torch.nn.Module], bool] = lambda module: True
) -> List[Tuple[str, torch.nn.Module]]:
    """Every path at which a walk over children meets a module: it looks below the root, and below a module that it ``enters``."""
    visited, stack = [("", root)], [("", root)]
    while stack:
        prefix, module = stack.pop()
        for name, child in module.named_children():
            path = prefix + "." + name if prefix else name
            visited.append((path, child))
            if enters(child):
                stack.append((path, child))
    return visited


def settings(module: torch.nn.Module) -> Dict[str, Any]:
    """Plain attributes of a module (sizes, strides, flags), and whether it has a bias and a weight."""
    attributes: Dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_") or name in ("training", "total_ops", "total_params"):
            continue
        if isinstance(value, (bool, int, float, str, tuple, list)) and not tensors_in(value):
            attributes[name] = plain(value)
    for name in ("weight", "bias"):
        computed = isinstance(vars(module).get(name), torch.Tensor)  # by a hook, such as that of weight_norm
        if name in module._parameters or computed:
            parameter = vars(module)[name] if computed else module._parameters[name]
            attributes[name] = None if parameter is None else list(parameter.shape)
            if parameter is not None and is_wrapper(type(parameter)):
                attributes[WRAPPED] = full_name(type(parameter))
    return attributes


def has_own_forward(module: torch.nn.Module) -> bool:
    """Whether this one module got another forward than its class has."""
    forward = module.forward
    while isinstance(getattr(forward, "__self__", None), CallAdapter):  # ours
        forward = forward.__self__.forward
    return getattr(forward, "__func__", forward) is not type(module).forward


def _is_mapped(tensor: torch.Tensor) -> bool:
    functions: Any = getattr(torch._C, "_functorch", None)
    return hasattr(functions, "is_batchedtensor") and bool(functions.is_batchedtensor(tensor))


def in_order(module: torch.nn.Module, inputs: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[Any, ...]:
    """All arguments of a module's call in the order of its parameters; none if they do not fit them."""
    try:
        return tuple(inspect.signature(module.forward).bind(*inputs, **named).arguments.values())
    except (TypeError, ValueError):
        return ()


class ModuleCalls:
    """Uses forward hooks to note the shapes with which every module is called."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.by_module: Dict[Any, Dict[Tuple[Tuple[Tensor, ...], Tuple[Tensor, ...], int], int]] = {}
        self.mapped = False  # whether torch.func.vmap called any
        self.handles = [self.hook(m) for m in root.modules()]

    def hook(self, module: torch.nn.Module) -> Any:
        """Hook one module; returns what removes the hook."""
        if "with_kwargs" in inspect.signature(torch.nn.Module.register_forward_hook).parameters:  # since PyTorch 2.0
            return module.register_forward_hook(self._note_named, with_kwargs=True)
        return module.register_forward_hook(self._note)

    def _note_named(self, module: Any, inputs: Any, named: Dict[str, Any], outputs: Any) -> None:
        self._note(module, inputs or in_order(module, (), named), outputs)

    def _note(self, module: Any, inputs: Any, outputs: Any) -> None:
        first: Any = inputs[0] if inputs else None
        packed = isinstance(first, torch.nn.utils.rnn.PackedSequence)
        tensors = [first.data, first.batch_sizes] if packed else tensors_in(inputs)
        self.mapped = self.mapped or any(map(_is_mapped, tensors + tensors_in(outputs)))
        batch = int(max(first.batch_sizes)) if packed else 0
        key = (tuple(map(tensor_record, tensors)), tuple(map(tensor_record, tensors_in(outputs))), batch)
        counts = self.by_module.setdefault(module, {})
        counts[key] = counts.get(key, 0) + 1

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()

    def check(self) -> None:
        """Raise BeyondCounter if torch.func.vmap called a module: a hook sees one example of the batch there."""
        if self.mapped:
            raise BeyondCounter(SEES_ONE_VMAP_EXAMPLE)

    def count(self, module: torch.nn.Module) -> int:
        """How often the module was called."""
        return sum(self.by_module.get(module, {}).values())

    def ops(self, module: torch.nn.Module, path: str, layer: str, first: int, hooks: Optional[int] = None) -> List[Op]:
        """A record per kind of call of the module, with its settings; ``path#first`` and so on are their ids.

        ``hooks`` is the number of hooks that the model itself put on the module: their work belongs to it.
        """
        records: List[Op] = []
        for (inputs, outputs, batch), times in self.by_module.get(module, {}).items():
            bases = [full_name(c) for c in type(module).__mro__[1:-1]]
            attrs = dict(settings(module), packed_batch=batch, bases=bases)
            if hooks is not None:
                attrs["hooks"] = hooks
            if has_own_forward(module):
                attrs["own_forward"] = True
            op_id = f"{path}#{first + len(records)}"
            records.append(Op(op_id, class_name(module), layer, inputs, outputs, attrs, times))
        return records


Count = Callable[[torch.nn.Module, Any], Tuple[int, Dict[str, int]]]
"""Runs a counter on a module with the inputs; returns its total and its count for each module's path (empty for the root)."""


Read = Callable[[torch.nn.Module], Dict[str, Any]]
"""Gives attributes of a module that a counter reads beyond its plain ones."""


def module_ledger(
    counter: str,
    unit: str,
    model: TorchModel,
    packages: Dict[str, str],
    count: Count,
    read: Read = lambda module: {},
    watch: Callable[[torch.nn.Module], ModuleCalls] = ModuleCalls,
) -> Ledger:
    """The ledger of a counter that hooks modules, which ``count`` runs on a fresh module.

    ``packages`` are the versions of the packages that select its rules.  ``read`` gives further attributes of a module that the
    counter reads, for its sightings.  ``watch`` records the calls of its modules.
    """
    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    hooks = {m: len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules()}
    own_hooks = {m: number for m, number in hooks.items() if number}
    calls = watch(module)
    total, values = count(module, inputs)
    calls.remove()
    calls.check()
    entries: List[Entry] = []
    sightings: List[Sighting] = []
    for child, path in module_paths(module).items():
        entry = path or ROOT
        if values.get(path):
            entries.append(Entry(entry, path, class_name(child), values[path], calls.count(child)))
        for op in calls.ops(child, path, path, len(sightings), own_hooks.get(child)):
            sightings.append(Sighting(op._replace(attrs=dict(op.attrs, **read(child))), entry, LIVE))
    add_rest(entries, total)
    numbers = dict(versions(module), **packages)
    return Ledger(counter, "torch", unit, model.device, numbers, total, tuple(entries), tuple(sightings))


def make_capture(
    package: str, unit: str, run: Count, read: Read = lambda module: {}
) -> Callable[[str, TorchModel], Ledger]:
    """The capture of a counter that hooks modules: ``run`` runs the package of that name on a module and its inputs.

    The package's own errors on a model that runs without it are limits of the counter.
    """

    def capture(counter: str, model: TorchModel) -> Ledger:
        versions = {package: version_of(package, import_module(package))}
        with explain_limits((), lambda: run(torch.nn.Linear(1, 1), (torch.zeros(1, 1),))):
            return module_ledger(counter, unit, model, versions, run, read)

    return capture
