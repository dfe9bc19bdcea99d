"""The optimizer step of a counted training step: any optimizer of torch.optim, by name or copied from an existing one.

Parameters are updated one by one, so that each op of the update belongs to one layer.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ..shared.refusal import FactoryError
from .model import TorchModel

SINGLE = ("foreach", "fused")
"""Options that make one op of many parameters: off, so that each layer has its own."""
OPTIMIZER_CALLS_MODEL = (
    "torch.optim.%s calls the model again inside its step, and --pass training has one call: count your own step with "
    "reconcile.count or `reconcile watch`."
)


class Update:
    """One step of one parameter. ``kind`` is the optimizer's class, ``options`` are those of each parameter by name, None for
    defaults; a parameter without options is not stepped."""

    def __init__(self, kind: type[Any], options: dict[str, dict[str, Any]] | None = None) -> None:
        self.kind = kind
        self.options = options
        self.known = inspect.signature(kind).parameters

    def __call__(self, name: str, weight: torch.nn.Parameter) -> None:
        """Raises FactoryError where the optimizer takes no such parameter."""
        options = {} if self.options is None else self.options.get(name, self.options.get(""))
        if options is None:
            return
        chosen = dict(options, **{each: False for each in SINGLE if each in self.known})
        try:
            self.kind([weight], **chosen).step()
        except (RuntimeError, TypeError, ValueError) as error:
            if "closure" in str(error):
                raise FactoryError(OPTIMIZER_CALLS_MODEL % self.kind.__name__) from error
            raise FactoryError(f"torch.optim.{self.kind.__name__} cannot step {name}: {error}") from error

    def whole(self, weights: list[torch.nn.Parameter]) -> Any:
        """One optimizer of all these parameters."""
        return self.kind(weights, **{each: False for each in SINGLE if each in self.known})

    @property
    def title(self) -> str:
        """``torch.optim.SGD(momentum=0.9)``: the class, and the options that are not its own, where all parameters share them."""
        given = list((self.options or {}).values())
        shared = given[0] if given and all(options == given[0] for options in given) else {}
        other = [f"{name}={value!r}" for name, value in shared.items() if value != self.known[name].default]
        module = "torch.optim" if self.kind.__module__.startswith("torch.optim") else self.kind.__module__
        return f"{module}.{self.kind.__name__}" + (f"({', '.join(other)})" if other else "")


def update_of(model: TorchModel) -> Update:
    """The update that a training step of the model makes. Raises FactoryError for a name that this PyTorch does not have."""
    pair = getattr(model, "pair", None)
    given = getattr(pair, "optimizer", None)
    if given is None:
        return Update(optimizer_class(model.training))
    if not isinstance(given, torch.optim.Optimizer):
        raise FactoryError(f"optimizer= is {type(given).__name__}; give an optimizer of torch.optim, or its name.")
    return Update(type(given), _options(given, getattr(pair, "model", None)))


def optimizer_class(name: str) -> type[Any]:
    """The optimizer of torch.optim of this name. Raises FactoryError."""
    known = {each.lower(): kind for each, kind in vars(torch.optim).items() if _is_optimizer(kind)}
    if name not in known:
        raise FactoryError(
            f"torch.optim of PyTorch {torch.__version__} has no {name}: it has {', '.join(sorted(known))}."
        )
    return known[name]


def _is_optimizer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer


def _options(given: torch.optim.Optimizer, model: Any) -> dict[str, dict[str, Any]]:
    """The options of each parameter of the model by its name; '' is every parameter of a model that has yet to be made."""
    known = set(inspect.signature(type(given)).parameters)
    if not isinstance(model, torch.nn.Module):
        return {"": {name: value for name, value in given.defaults.items() if name in known and name not in SINGLE}}
    names = {id(weight): name for name, weight in model.named_parameters()}
    return {
        names[id(weight)]: {
            name: value for name, value in group.items() if name in known and name not in ("params", *SINGLE)
        }
        for group in given.param_groups
        for weight in group["params"]
        if id(weight) in names
    }
