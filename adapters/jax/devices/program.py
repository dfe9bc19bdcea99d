"""Compiles a sharded JAX program and reads one device's HLO, the ranks of its collectives, and the mesh of its devices.

XLA writes it into a folder when it compiles (``xla_dump_hlo_pass_re``), before it optimises anything. The partitioner is the
pass ``spmd-partitioning`` (xla/service/spmd/spmd_partitioner.cc): each instruction has this device's shapes, and the
collectives are in the program.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.extend
import numpy as np

from ....core.records import Tensor
from ...shared.refusal import FactoryError
from .. import hlo, records
from .tags import tag_of

CUT = "spmd-partitioning"
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
LOOPS = ("scan", "while")
"""Primitives that XLA has a loop for. A loop of any other was added by the partitioner, and its trip count is unknown."""
NO_PROGRAM_OF_ONE_DEVICE = (
    "XLA left no program of one device: reconcile knows the names of its passes in JAX 0.10, and this is JAX %s"
)
RUNS_ON_FEWER_DEVICES = (
    "the program runs on %s of the %d devices of --ranks: shard an argument or the function over a mesh of all of them, or give "
    "the number of devices that it uses"
)
_PARTS = re.compile(r"\bnum_partitions=(\d+)")
_MESH = re.compile(r"^mesh\[(.*?)\](.*?)\{(.*)\}$")
_IOTA = re.compile(r"^\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?$")


class Piece(NamedTuple):
    """An instruction of one device's program. ``step`` is what a reduction does with two values; ``turned`` says that it is in
    a loop, and ``looped`` that the partitioner added this loop."""

    opcode: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    attrs: Mapping[str, str]
    step: str
    turned: bool
    looped: bool


class DeviceProgram(NamedTuple):
    """The program of one of ``devices``: its instructions by the number of the equation of which each was made."""

    devices: int
    at: Mapping[int | None, Sequence[Piece]]


def compile_program(closed: Any, arguments: Sequence[Any], devices: int, numbers: Mapping[Any, str]) -> DeviceProgram:
    """Compile a program that has ``numbers`` on its equations, for this number of devices. Raises FactoryError for a program that
    runs on others, and whatever XLA raises."""
    function = jax.extend.core.jaxpr_as_fun(closed)
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": CUT, "xla_dump_hlo_as_text": True}
        compiled = jax.jit(function).lower(*arguments).compile(compiler_options=options)
        (module,) = compiled.runtime_executable().hlo_modules()
        runs = partitions(module)
        if runs != devices:
            raise FactoryError(RUNS_ON_FEWER_DEVICES % (runs, devices))
        files = list(Path(folder).glob(f"*.after_{CUT}.*"))
        if len(files) != 1:
            raise FactoryError(NO_PROGRAM_OF_ONE_DEVICE % jax.__version__)
        return DeviceProgram(devices, _find_pieces(hlo.parse_module(files[0].read_text()), numbers))


def partitions(module: Any) -> int:
    """For how many devices a module is one device's program."""
    head = _PARTS.search(module.to_string().partition("\n")[0])
    return int(head[1]) if head else 1


def _find_pieces(module: hlo.Module, numbers: Mapping[Any, str]) -> dict[int | None, list[Piece]]:
    turned = _within(module, _loops(module))
    strange = _within(module, [each for each in _loops(module) if numbers.get(tag_of(each.op_name)) not in LOOPS])
    found: dict[int | None, list[Piece]] = {}
    for name, instructions in module.computations.items():
        types = {each.name: each.outputs for each in instructions}
        for each in instructions:
            inputs = tuple(tensor for operand in each.operands for tensor in types.get(operand, ()))
            own = Piece(
                each.opcode, inputs, each.outputs, each.attrs, _step(module, each), name in turned, name in strange
            )
            found.setdefault(tag_of(each.op_name), []).append(own)
    return found


def _loops(module: hlo.Module) -> list[hlo.Instruction]:
    return [each for instructions in module.computations.values() for each in instructions if each.opcode == "while"]


def _within(module: hlo.Module, loops: Sequence[hlo.Instruction]) -> set[str]:
    """The computations in these loops."""
    pending = [called for each in loops for called in _called_computations(each)]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [called for each in module.computations.get(name, ()) for called in _called_computations(each)]
    return found


def _step(module: hlo.Module, instruction: hlo.Instruction) -> str:
    """What a reduction does with two values, if it is one instruction."""
    computation = module.computations.get(instruction.attrs.get("to_apply", "").lstrip("%"), ())
    steps = [each.opcode for each in computation if each.opcode not in ("parameter", "copy")]
    return steps[0] if len(steps) == 1 else ""


def _called_computations(instruction: hlo.Instruction) -> list[str]:
    keys = ("to_apply", "calls", "body", "condition")
    return [instruction.attrs[key].lstrip("%") for key in keys if key in instruction.attrs]


def group_of(attrs: Mapping[str, str], rank: int, devices: int) -> list[int] | None:
    """The ranks that take part in a collective with this one; None where its form is not known. Those of a permutation are given
    by pairs (source, target), and take part if they are linked. The forms of the others are ``{{0,1},{2,3}}``,
    ``[2,2]<=[4]``, ``[2,2]<=[2,2]T(1,0)`` and ``mesh['a'=2,'b'=2] {'b'}`` (xla/hlo/ir/replica_group.cc)."""
    if "source_target_pairs" in attrs:
        return _link_numbers(hlo.numbers(attrs["source_target_pairs"]), rank)
    text = attrs.get("replica_groups", "").strip()
    groups = _groups(text, devices)
    found = [group for group in groups or () if rank in group]
    return found[0] if len(found) == 1 else None


def _link_numbers(numbers: Sequence[int], rank: int) -> list[int] | None:
    linked, size = {rank}, 0
    while len(linked) > size:
        size = len(linked)
        linked |= {
            each for pair in zip(numbers[::2], numbers[1::2], strict=True) for each in pair if linked & set(pair)
        }
    return sorted(linked) if size > 1 else None


def _groups(text: str, devices: int) -> list[list[int]] | None:
    if text == "{}":
        return [list(range(devices))]
    if text.startswith("{{"):
        return [hlo.numbers(part) for part in text.strip("{}").split("},{")]
    if (found := _IOTA.match(text)) is not None:
        sizes, of, order = (hlo.numbers(part or "") for part in found.groups())
        whole = np.arange(devices).reshape(of)
        return [list(map(int, row)) for row in (whole.transpose(order) if order else whole).reshape(sizes)]
    if (found := _MESH.match(text)) is not None and not found[2].strip():
        axes = [axis.split("=") for axis in found[1].split(",")]
        names = [name for name, _ in axes]
        along = [names.index(name.strip()) for name in found[3].split(",") if name.strip() in names]
        if len(along) != len(found[3].split(",")):
            return None
        others = [axis for axis in range(len(names)) if axis not in along]
        lengths = [int(size) for _, size in axes]
        rows = np.arange(devices).reshape(lengths).transpose([*others, *along])
        width = int(np.prod([lengths[axis] for axis in along]))
        return [list(map(int, row)) for row in rows.reshape(-1, width)]
    return None


def mesh_of(closed: Any, arguments: Sequence[Any], devices: int) -> dict[str, Any]:
    """The finest mesh of all devices that the program names: ``names`` and ``sizes`` of its dimensions, and the ``ranks`` row by
    row. Without one they stand in a line."""
    found = [getattr(getattr(each, "sharding", None), "mesh", None) for each in arguments]
    found += list(_meshes(getattr(closed, "jaxpr", closed)))
    whole = [dict(mesh.shape) for mesh in found if mesh is not None and mesh.size == devices]
    if not whole:
        return {"names": ["device"], "sizes": [devices], "ranks": list(range(devices))}
    finest = max(whole, key=lambda shape: sum(size > 1 for size in shape.values()))
    return {"names": list(map(str, finest)), "sizes": list(finest.values()), "ranks": list(range(devices))}


def _meshes(jaxpr: Any) -> Any:
    for equation in jaxpr.eqns:
        params = equation.params
        for value in (*params.values(), *params.get("in_shardings", ()), *params.get("out_shardings", ())):
            yield getattr(value, "mesh", None)
        yield params.get("mesh")
        for inner in records.programs(params.values()):
            yield from _meshes(getattr(inner, "jaxpr", inner))
