"""What torch_flops and pthflops share: makes a model traceable by torch.fx, records each node that its interpreter runs, and
builds the ledger. PyTorch 2.0 and later.

``torch.fx.symbolic_trace`` calls the model's own ``forward`` with proxies for its tensors: a leaf module (of torch.nn, but no
Sequential) is one node, and everything around it is traced.  A node is a call: of a module, of a function, or of a tensor's
method.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ....core.message import text_of
from ....core.records import Entry, Ledger
from ...pytorch.call_adapter import CallAdapter, is_leaf, same_numbers
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.fused_calls import FusedCalls
from ...pytorch.tracing.module_path import ModulePath
from ...pytorch.tracing.records import plain, tensors_in
from ...shared import nested
from ...shared.refusal import BeyondCounter
from ..limits import OF_MACHINE, explain_limits
from ..module_calls import full_name, settings
from ..patched_functions.capture import CallRecorder

SYMBOLIC_TRACE_STOPS = (
    "torch.fx.symbolic_trace, by which it reads a model, stops on this one, which runs without it (%s)"
)
NUMBERS = {
    int: torch.empty((), dtype=torch.int64),
    bool: torch.empty((), dtype=torch.bool),
    float: torch.empty((), dtype=torch.float64),
}
"""What stands for the numbers of a call that has no tensors."""

Names = dict[str, Callable[[Any], str]]
"""How a counter looks up what a node calls, by the node's kind: ``call_module``, ``call_function`` or ``call_method``."""


def names_by(module: Callable[[Any], str]) -> Names:
    """Those of a counter that goes by this name of a module, and by the bare names of functions and methods."""
    return {
        "call_module": module,
        "call_function": lambda function: f"function.{getattr(function, '__name__', function)}",
        "call_method": lambda name: f"method.{name}",
    }


def ordered_arguments(module: torch.nn.Module, model: TorchModel, tensors: list[Any]) -> list[Any]:
    """The arguments of one call of the module in the order of its forward's parameters: the graph knows no others."""
    positional, named = nested.fill_leaves(model.arguments, is_leaf, tensors)
    taken = _forward_signature(module)
    if taken is None:
        return tensors
    bound = taken.bind(module, *positional, **named)
    bound.apply_defaults()
    values: list[Any] = []
    for name, value in list(bound.arguments.items())[1:]:
        kind = taken.parameters[name].kind
        if kind == inspect.Parameter.VAR_POSITIONAL:
            values += value
        elif kind != inspect.Parameter.VAR_KEYWORD:
            values.append(value)
    return values


def _forward_signature(module: torch.nn.Module) -> inspect.Signature | None:
    """What its forward takes; None for one that is not Python's."""
    try:
        return inspect.signature(type(module).forward)
    except (AttributeError, TypeError, ValueError):
        return None


def fix_arity(module: torch.nn.Module, inputs: list[Any]) -> torch.nn.Module:
    """The module; if its forward takes ``*args``, which symbolic_trace cannot unpack, a wrapper of it with as many named
    parameters as there are inputs."""
    taken = _forward_signature(module)
    kinds = [parameter.kind for parameter in taken.parameters.values()] if taken is not None else []
    if inspect.Parameter.VAR_POSITIONAL not in kinds or len(inputs) not in FORWARDS:
        return module
    return wrap_with_forward(module, FORWARDS[len(inputs)])


def wrap_with_forward(module: torch.nn.Module, forward: Callable[..., Any]) -> torch.nn.Module:
    """A module with this ``forward``, which calls the given one; that one is its INNER, and paths in it stay as they are."""
    adapter = getattr(module.forward, "__self__", None)
    if isinstance(adapter, CallAdapter):  # it would look for tensors among proxies, and the arguments are in order
        module.forward = adapter.forward
    outer: torch.nn.Module = type("Wrapper", (torch.nn.Module,), {"forward": forward})()
    setattr(outer, INNER, module)
    return outer


INNER = "inner_of_reconcile"
FORWARDS: dict[int, Callable[..., Any]] = {
    1: lambda self, a: getattr(self, INNER)(a),
    2: lambda self, a, b: getattr(self, INNER)(a, b),
    3: lambda self, a, b, c: getattr(self, INNER)(a, b, c),
    4: lambda self, a, b, c, d: getattr(self, INNER)(a, b, c, d),
}


def trace_model(trace: Callable[[], Any]) -> Any:
    """The result of a function that traces the model. Raises BeyondCounter with the error that stopped it."""
    try:
        return trace()
    except OF_MACHINE:
        raise
    except Exception as error:
        lines = [line.strip() for line in text_of(error).splitlines() if line.strip()]
        said = ": ".join([type(error).__name__, *[line.partition(". ")[0].rstrip(".:; ") for line in lines[:1]]])
        raise BeyondCounter(SYMBOLIC_TRACE_STOPS % said) from error


@dataclass(frozen=True)
class Counted:
    """What a counter reported of one call: its total, its amount for each node, the calls, and how many it has no formula for."""

    total: int
    amounts: dict[Any, int]
    calls: NodeCalls
    unknown: dict[str, int] = field(default_factory=dict)


def ledger(
    counter: str,
    unit: str,
    model: TorchModel,
    packages: dict[str, str],
    run: Callable[[torch.nn.Module, list[Any]], Counted],
) -> Ledger:
    """The ledger of a counter that ``run`` runs on a fresh module and the arguments of its call."""
    module = model.build(model.device)
    given = ordered_arguments(module, model, model.example(model.device))
    with explain_limits((), lambda: run(torch.nn.Linear(1, 1), [torch.zeros(1, 1)])):
        counted = run(module, given)
    entries, sightings = counted.calls.entries(counted.amounts), counted.calls.recorder.sightings()
    numbers = dict(versions(module), **packages)
    return Ledger(
        counter, "torch", unit, model.device, numbers, counted.total, tuple(entries), tuple(sightings), counted.unknown
    )


class NodeCalls:
    """The calls that an interpreter makes while this is entered, with the ops that ran in them; ``record_calls`` makes its
    class."""

    def __init__(self, module: torch.nn.Module, names: Names) -> None:
        self.path = ModulePath(module)
        self.recorder = CallRecorder(self.path)
        self.fused = FusedCalls(self.recorder)
        self.names = names
        self.keys: dict[Any, tuple[str, str]] = {}  # layer and name of each node

    def trace(self, make: Callable[[], Any]) -> Any:
        """The result of a function that traces the model; what runs meanwhile, on weights alone, is no node's."""
        with self.path, self.recorder:
            return trace_model(make)

    def __enter__(self) -> NodeCalls:
        same_numbers()
        for each in (self.path, self.fused, self.recorder):
            each.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        for each in (self.recorder, self.fused, self.path):
            each.__exit__(*exc)

    def record_calls(self, interpreter: Any) -> Any:
        """A subclass of this interpreter that records each of its calls."""
        calls = self

        class RecordingInterpreter(interpreter):
            def run_node(self, n: Any) -> Any:
                layer = layer_of(n)
                with calls.path.within(layer):
                    if n.op not in calls.names:
                        return super().run_node(n)
                    module = self.fetch_attr(n.target) if n.op == "call_module" else None
                    calls.keys[n] = (layer, calls.names[n.op](n.target if module is None else module))
                    calls._begin(calls.keys[n], module, *self.fetch_args_kwargs_from_env(n))
                    result = super().run_node(n)
                    calls.recorder.end(result)
                    return result

        return RecordingInterpreter

    def _begin(self, key: tuple[str, str], module: Any, args: Any, kwargs: Any) -> None:
        tensors = tensors_in([*args, *kwargs.values()])
        if not tensors:
            tensors = [NUMBERS[type(value)] for value in args if type(value) in NUMBERS]
        attrs: dict[str, Any] = {}
        if module is not None:
            attrs = dict(settings(module), bases=[full_name(base) for base in type(module).__mro__[1:-1]])
        attrs["args"] = [_argument(value) for value in args]
        attrs["named"] = {name: _argument(value) for name, value in kwargs.items()}
        self.recorder.begin(key[1], "{}|{}".format(*key), tensors, attrs)

    def entries(self, amounts: dict[Any, int]) -> list[Entry]:
        """An entry for each module and name that counted something, by the amount of each node."""
        values: dict[tuple[str, str], list[int]] = {}
        for node, amount in amounts.items():
            values.setdefault(self.keys.get(node, ("", str(node.op))), []).append(amount)
        return [Entry("{}|{}".format(*key), *key, sum(each), len(each)) for key, each in values.items() if sum(each)]


def layer_of(node: Any) -> str:
    """The path of the module in whose forward the node was made; of a call of a module, that of the module."""
    stack = node.meta.get("nn_module_stack")
    path = str(node.target) if node.op == "call_module" else ""
    if stack:
        key, held = list(stack.items())[-1]
        path = str(held[0] if isinstance(held, tuple) else key)
    return path.removeprefix(INNER).removeprefix(".") if path.startswith(INNER) else path


def _argument(value: Any) -> Any:
    """An argument as a rule reads it; of tensors, which are inputs of the record, that they are given."""
    return "tensor" if tensors_in(value) else plain(value)
