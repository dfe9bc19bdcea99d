"""Runs ultralytics-thop's profile, alone or as its get_flops does, and returns its ledger: an entry per module with a rule, or
that calls a counted function.

get_flops may profile one small image and multiply: then profile runs at that size and at the model's own, and get_flops.py
makes one ledger of both.  A rule's amount is recorded as the counter calls it, so nothing is derived from the total.  Keyword
arguments of a module are in the order in which its ``forward`` takes them, as the rules get them.  PyTorch 2.0 and later.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from ....core.records import MAC, Entry, Ledger, Op, Sighting
from ...pytorch.model import TorchModel
from ...pytorch.tracing.module_path import ModulePath, module_paths
from ...pytorch.tracing.records import plain, tensor_record, tensors_in
from ...shared.distribution import version_of
from ...shared.refusal import CannotCount
from ..limits import explain_limits
from ..module_calls import ModuleCalls, in_order, module_ledger
from ..thop.capture import EXACT, LIMITS
from . import COUNTERS, FUNCTIONS, GET_FLOPS, entry_of
from .get_flops import multiply_ledger, proxy_of

ARGUMENTS = {
    "matmul": ("input", "other"),
    "bmm": ("input", "mat2"),
    "linear": ("input", "weight", "bias"),
    "einsum": ("equation", "operands"),
    "scaled_dot_product_attention": (
        "query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa",
    ),
    "multi_head_attention_forward": (
        "query", "key", "value", "embed_dim", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "add_zero_attn",
    ),
}  # fmt: skip
"""The arguments of each function that a rule reads, or that decide its work, in their order."""
OPERANDS = {"multi_head_attention_forward": 3}
"""How many of a function's tensors are inputs of its record, if not all are."""


class KeywordCalls(ModuleCalls):
    """Notes the arguments that a module was given by name, too."""

    def _note_named(self, module: Any, inputs: Any, named: dict[str, Any], outputs: Any) -> None:
        self._note(module, in_order(module, inputs, named) if named else inputs, outputs)


class CountedFunctions:
    """The calls of functions that a rule counted, by module, and their amounts."""

    def __init__(self, path: ModulePath) -> None:
        self.path = path
        self.calls: dict[Any, Op] = {}
        self.amounts: dict[str, int] = {}

    def note_function(self, function: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The rule of a function, which is noted with what it counts."""
        name = str(getattr(function, "__name__", function)).strip("_")

        def run_rule(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
            amount = rule(args, kwargs, out)
            layer = self.path.current
            self.amounts[layer] = self.amounts.get(layer, 0) + amount
            self._add(name, layer, args, kwargs, out)
            return amount

        return run_rule

    def _add(self, name: str, layer: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        names = ARGUMENTS.get(name, ())
        given = dict(zip(names, args), **kwargs)
        if name == "einsum":
            given["operands"] = args[1:]
        values = [given.get(each) for each in names]
        tensors = [t for value in values for t in tensors_in(value)][: OPERANDS.get(name)]
        attrs = {
            each: (isinstance(value, torch.Tensor) if each == "bias_k" else plain(value))
            for each, value in zip(names, values)
            if each == "bias_k" or not tensors_in(value)
        }
        inputs, outputs = tuple(map(tensor_record, tensors)), tuple(map(tensor_record, tensors_in(out)))
        key = (name, layer, inputs, outputs, repr(sorted(attrs.items())))
        op = self.calls.get(key) or Op(f"function{len(self.calls)}", "torch." + name, layer, inputs, outputs, attrs, 0)
        self.calls[key] = op._replace(calls=op.calls + 1)

    def sightings(self) -> list[Sighting]:
        """The calls, each with the entry of the module that made it."""
        return [Sighting(op, entry_of(op.layer)) for op in self.calls.values()]

    def entries(self) -> list[Entry]:
        """An entry for each module whose calls were counted."""
        times: dict[str, int] = {}
        for op in self.calls.values():
            times[op.layer] = times.get(op.layer, 0) + op.calls
        return [
            Entry(entry_of(layer), layer, FUNCTIONS, amount, times[layer])
            for layer, amount in self.amounts.items()
            if amount
        ]


def settings_read(module: torch.nn.Module) -> dict[str, Any]:
    """Attributes that a rule reads beyond a module's plain ones."""
    return {"bias_k": module.bias_k is not None} if isinstance(module, torch.nn.MultiheadAttention) else {}


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run profile on a fresh module on ``model.device``: with the model's inputs, or as get_flops does."""
    if counter != GET_FLOPS:
        return profile_model(counter, model)
    side, cells = proxy_of(model)
    if not side:
        return profile_model(counter, model)
    full = profile_model(counter, model)
    (image,) = tuple(model.example(model.device))
    small = profile_model(counter, model, (image.new_zeros((1, image.shape[1], side, side)),))
    return multiply_ledger(small, full, side, cells)


def profile_model(counter: str, model: TorchModel, proxy: tuple[Any, ...] = ()) -> Ledger:
    """The ledger of profile on a fresh module, with the model's inputs or with other ones."""
    import thop

    table = importlib.import_module("thop.profile")  # the package's attribute of that name is the function
    number = version_of(COUNTERS[0].distribution, table)
    functions: list[CountedFunctions] = []
    originals = [(rules, dict(rules)) for rules in (table.register_hooks, table.functional_hooks)]

    def count(module: torch.nn.Module, inputs: Any) -> tuple[int, dict[str, int]]:
        amounts: dict[torch.nn.Module, int] = {}

        def note_rule(rule: Any) -> Callable[..., None]:
            def run_rule(m: Any, given: Any, out: Any) -> None:
                before = m.total_ops
                rule(m, given, out)
                amounts[m] = amounts.get(m, 0) + m.total_ops - before

            return run_rule

        path = ModulePath(module)
        functions.append(CountedFunctions(path))
        (_, hooks), (_, rules) = originals
        # A module whose rule is zero_ops is told apart by that very function: functions inside of it are counted.
        table.register_hooks.update({k: note_rule(rule) for k, rule in hooks.items() if rule is not table.zero_ops})
        table.functional_hooks.update(
            {function: functions[0].note_function(function, rule) for function, rule in rules.items()}
        )
        with path:
            total, _params = thop.profile(module, proxy or inputs, verbose=False)
        if total >= EXACT:
            raise CannotCount(
                f"it adds in floating point; its total {total!r} is above {EXACT} and therefore not exact"
            )
        counted = {name: amounts[m] for m, name in module_paths(module).items() if m in amounts}
        return int(total) - sum(functions[0].amounts.values()), counted

    smallest = (torch.nn.Linear(1, 1), (torch.zeros(1, 1),))
    try:
        with explain_limits(LIMITS, lambda: thop.profile(*smallest, verbose=False)):
            packages = {COUNTERS[0].versions_key: number}
            ledger = module_ledger(counter, MAC, model, packages, count, settings_read, KeywordCalls)
    finally:
        for rules, kept in originals:
            rules.update(kept)
    of_functions = functions[0].entries()
    return ledger._replace(
        total=ledger.total + sum(entry.value for entry in of_functions),
        entries=ledger.entries + tuple(of_functions),
        sightings=ledger.sightings + tuple(functions[0].sightings()),
    )
