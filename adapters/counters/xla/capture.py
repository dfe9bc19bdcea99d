"""Runs XLA's cost analysis of a JAX program and returns its ledger: one total, and every HLO instruction that it visits.

An instruction is listed once for each call of its computation. Beside these are, with an attribute that says so, those of the
program before it is compiled, and those that XLA dropped as it read JAX's text (dropped.py): they are in no total.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import jax

from ....core.records import FLOP, LIVE, Entry, Ledger, Op, Sighting, Tensor
from ...jax import hlo
from ...jax.devices.program import partitions
from ...jax.model import KEYS, Call, versions
from ...jax.records import layer_of
from ...shared.refusal import BeyondCounter
from .. import SUM
from . import LOWERED, TARGET
from .dropped import MOVES, dropped_sightings
from .scopes import PROGRAM_NAME, scopes_of

CALLS = {"call": ("to_apply",), "fusion": ("calls",), "while": ("body", "condition"), "async-start": ("calls",)}
"""Instructions that run whole computations, and the attributes that name them, in the order in which they are added."""
ONE_DEVICE = (
    "the compiled program is that of one of %d devices, and the trace is the work of all of them: count one device with "
    "--ranks %d"
)
STEPS = ("reduce", "reduce-window", "scatter", "map", "select-and-scatter", "all-reduce", "sort")


def options() -> Any:
    """How to print a module: with the names that JAX gave, without layouts."""
    try:
        from jaxlib import _hlo as source
    except ImportError:  # before jaxlib 0.8
        from jax._src.lib import xla_client

        source = xla_client._xla
    made = source.HloPrintOptions()
    made.print_metadata, made.include_layout_in_shapes, made.print_percent = True, False, False
    return made


def capture(counter: str, call: Call) -> Ledger:
    """The ledger of one call. Raises BeyondCounter for a program that reconcile cannot read as the analysis does."""

    total: int | None = None

    def call_model(*arguments: Any) -> Any:
        return call.function(*arguments)

    call_model.__name__ = PROGRAM_NAME

    if counter.endswith("tabulate"):
        total, function, arguments = tabulate_call(call)
        call = call._replace(function=function, arguments=arguments)
    stage = jax.jit(call_model).lower(*call.arguments)
    handed = stage.compiler_ir("hlo").as_hlo_module()
    if counter.endswith("compiled"):
        compiled = stage.compile()
        (module,) = compiled.runtime_executable().hlo_modules()
        if partitions(module) != call.devices:
            raise BeyondCounter(ONE_DEVICE % (partitions(module), partitions(module)))
        costs = compiled.cost_analysis()
        sightings = [*find_sightings(module, call.root), *(_before(one) for one in find_sightings(handed, call.root))]
    else:
        costs, sightings = stage.cost_analysis(), find_sightings(handed, call.root)
    sightings += dropped_sightings(stage.compiler_ir("stablehlo"), find_sightings(handed, call.root), call.root)
    costs = costs[0] if isinstance(costs, list) else costs  # before JAX 0.5 one per device
    total = int((costs or {}).get("flops", 0)) if total is None else total
    entries = (Entry(SUM, "", "cost_analysis", total, 1),)
    return Ledger(counter, "jax", FLOP, jax.default_backend(), versions(), total, tuple(entries), tuple(sightings))


def tabulate_call(call: Call) -> tuple[int, Callable[..., Any], tuple[Any, ...]]:
    """The whole model's row in linen's table, and the call whose program it had analysed (flax/linen/summary.py:_get_flops)."""
    if call.linen is None:
        raise BeyondCounter("it is a table of the modules of Flax linen, and this model is none")
    from flax.linen import summary

    model, *shapes = call.linen
    given, named = jax.tree.map(_zeros, tuple(shapes))  # linen takes no shapes here, and computes nothing with them
    keys = {name: jax.random.key(0) for name in KEYS}
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    real = summary._get_flops

    def note_call(function: Callable[..., Any], *arguments: Any) -> int:
        calls.append((function, arguments))
        return int(real(function, *arguments))

    options = {"show_repeated": False, "compute_flops": True, "compute_vjp_flops": False}
    with patch.object(summary, "_get_flops", note_call):
        table = summary._get_module_table(model, 0, **options)(keys, *given, **named)
    return table[0].flops, *calls[0]


def _zeros(leaf: Any) -> Any:
    return jax.numpy.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf


def find_sightings(module: Any, root: str) -> list[Sighting]:
    """The instructions that the analysis of this module visits."""
    walk = ComputationWalk(hlo.parse_module(module.to_string(options())), root)
    walk.through(walk.module.entry, (), ())
    return walk.sightings


def _before(sighting: Sighting) -> Sighting:
    """An instruction of the program before it is compiled, which is not counted."""
    op = sighting.op
    return sighting._replace(op=op._replace(id=f"{LOWERED}/{op.id}", attrs={**op.attrs, LOWERED: True}))


class ComputationWalk:
    """Goes through the computations as the analysis does: each call again, a loop's body and condition once."""

    def __init__(self, module: hlo.Module, root: str) -> None:
        self.module = module
        self.root = root
        self.sightings: list[Sighting] = []

    def through(self, computation: str, names: tuple[str, ...], within: tuple[str, ...]) -> None:
        """Every instruction of a computation that is called within these scopes."""
        instructions = self.module.computations[computation]
        types = {i.name: i.outputs for i in instructions}
        for instruction in instructions:
            if instruction.opcode == "conditional":
                raise BeyondCounter(
                    "the program has a conditional, of which XLA counts the costlier branch: leave this counter out"
                )
            if instruction.opcode in MOVES:
                continue
            around = scopes_of(instruction.op_name, names)
            if instruction.opcode not in CALLS:
                path = "/".join((*within, instruction.name))
                self.sightings.append(Sighting(self._op(instruction, path, around, types, within), SUM, LIVE))
                continue
            for key in CALLS[instruction.opcode]:
                if key in instruction.attrs:
                    self.through(instruction.attrs[key].lstrip("%"), around, (*within, f"{instruction.name}.{key}"))

    def _op(
        self,
        instruction: hlo.Instruction,
        path: str,
        scopes: tuple[str, ...],
        types: dict[str, tuple[Tensor, ...]],
        within: tuple[str, ...],
    ) -> Op:
        inputs = tuple(tensor for name in instruction.operands for tensor in types.get(name, ()))
        return Op(
            path,
            "hlo." + instruction.opcode,
            layer_of(scopes, self.root),
            inputs,
            instruction.outputs,
            self._attrs(instruction),
            1,
            "forward",
            within,
        )

    def _attrs(self, instruction: hlo.Instruction) -> dict[str, Any]:
        given = instruction.attrs
        found: dict[str, Any] = {"primitive": instruction.op_name.rpartition("/")[2]}
        if instruction.opcode == "dot":
            found["contracting"] = hlo.numbers(given.get("lhs_contracting_dims", ""))
        if "window" in given or instruction.opcode == "convolution":
            found["window"] = hlo.window(given.get("window", ""))
        if instruction.opcode == "convolution":
            found["dimension_numbers"] = hlo.labels(given["dim_labels"])
            for key in ("feature_group_count", "batch_group_count"):
                found[key] = int(given.get(key, 1))
        if instruction.opcode == "fft":
            found["fft_length"] = hlo.numbers(given["fft_length"])
        if "custom_call_target" in given:
            found[TARGET] = given["custom_call_target"].strip('"')
        if instruction.opcode in STEPS:
            for key in ("to_apply", "select", "scatter"):
                if key in given:
                    found[key] = self._step(given[key].lstrip("%"))
        return found

    def _step(self, computation: str) -> list[str]:
        """The instructions of a step on single values, also inside calls."""
        steps = []
        for instruction in self.module.computations[computation]:
            if instruction.opcode in CALLS:
                for key in CALLS[instruction.opcode]:
                    steps += self._step(instruction.attrs[key].lstrip("%"))
            elif instruction.opcode not in MOVES:
                steps.append(instruction.opcode)
        return steps
