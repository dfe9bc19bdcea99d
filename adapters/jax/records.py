"""Parts of op records from a jaxpr's equations (tensors, JSON attributes, the layer from the name scopes), and how jaxprs nest.

``programs`` are the jaxprs inside an equation, and ``scan_constants`` and ``carried_inputs`` tell a loop's inputs apart.
``describe_container`` shows an argument with many arrays in a line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any

import jax

from ...core.records import Op, Tensor
from ..shared import adapter
from . import layers
from .layers import LAYER

JAXPR_PARAMS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
MAX_ARRAYS_SHOWN = 16
"""More arrays in one argument than these are shown as a count."""
SCOPES_WITHOUT_LAYER = ("rematted_computation", "step:optimizer")
"""Scopes that say when something runs (phases.py)."""


def tensor(aval: Any) -> Tensor:
    """The shape and dtype of an abstract value; a token, or a reference, gets its type's name as dtype."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        return Tensor((), type(aval).__name__)
    name = str(getattr(dtype, "name", dtype))
    sizes = tuple(size if isinstance(size, int) else None for size in shape)
    return Tensor(sizes, "key" if name.startswith("key<") else name)


def attributes(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an equation that JSON can hold."""
    found = {}
    for name, value in params.items():
        given = plain(value)
        if given is not _NOT_JSON:
            found[name] = given
    return found


_NOT_JSON = object()


def plain(value: Any) -> Any:
    """Numbers, strings and lists of them as they are; a dtype or an enumeration by its name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Integral):  # of numpy: JAX 0.4 pads by such numbers
        return int(value)
    if isinstance(value, (tuple, list)):
        items = [plain(item) for item in value]
        return _NOT_JSON if any(item is _NOT_JSON for item in items) else items
    if hasattr(value, "lhs_spec"):
        return [list(value.lhs_spec), list(value.rhs_spec), list(value.out_spec)]
    if hasattr(value, "rhs_group_dimensions"):
        return plain((value.dot_dimension_numbers, value.lhs_ragged_dimensions, value.rhs_group_dimensions))
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and not hasattr(value, "eqns") else _NOT_JSON


def scopes(equation: Any) -> tuple[str, ...]:
    """The names of the scopes that an equation was made in, outermost first, without those of transformations."""
    stack = getattr(equation.source_info.name_stack, "stack", ())
    return tuple(part.name for part in stack if type(part).__name__ == "Scope")


def transformations(equation: Any) -> tuple[str, ...]:
    """The names of the transformations that an equation was made by, outermost first: ``("transpose", "jvp")`` in a backward
    pass. Those of a ``vmap`` are left out: it changes nothing but shapes."""
    stack = getattr(equation.source_info.name_stack, "stack", ())
    return tuple(part.name for part in stack if type(part).__name__ == "Transform" and part.name != "vmap")


def layer_of(names: Iterable[str], root: str) -> str:
    """The path of a layer, dots between levels: the scopes below the root's, a method without its name, none twice in a row.

    >>> layer_of(["Net/rnn", "GRUCell_0.scan_fn", "GRUCell_0", "in"], "Net")
    'rnn.GRUCell_0.in'
    """
    path: list[str] = []
    for name in names:
        if name.startswith(LAYER):
            path = [name[len(LAYER) :]] if name != LAYER else []
            continue
        for part in name.split("/"):
            if "->" in part or part in SCOPES_WITHOUT_LAYER:  # jnp.einsum calls its scope by its subscripts
                continue
            own = part.partition(".")[0] if root else part
            if not path or path[-1] != own:
                path.append(own)
    if root and path and path[0] == root:
        path = path[1:]
    return ".".join(path)


def scan_constants(params: Mapping[str, Any]) -> int:
    """How many inputs of a ``scan`` are the same at each step: the first ones. JAX 0.12 keeps a tree of its inputs: the
    constants, the carry and the slices (jax/_src/lax/control_flow/loops.py, ``ft_in``), in the place of their numbers."""
    if "num_consts" in params:
        return int(params["num_consts"])
    return len(params["ft_in"].unpack()[0])


def carried_inputs(params: Mapping[str, Any]) -> slice:
    """Which inputs of a loop's body its results are given to in the next iteration: none without a loop."""
    if "cond_nconsts" in params:
        return slice(int(params["body_nconsts"]), None)
    if "length" not in params:
        return slice(0, 0)
    first = scan_constants(params)
    return slice(first, first + int(params["num_carry"] if "num_carry" in params else len(params["ft_in"].unpack()[1])))


def is_program(value: Any) -> bool:
    """Whether a parameter is a jaxpr, or has some in it."""
    if isinstance(value, (tuple, list)):
        return any(map(is_program, value))
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")


def elements(atom: Any) -> int:
    """The number of elements of a variable or a literal."""
    return math.prod(atom.aval.shape)


def has_non_integer_values(closed: Any) -> bool:
    """Whether a program, or one inside it, has values that are neither integers nor booleans."""
    return any(
        getattr(getattr(variable.aval, "dtype", None), "kind", "f") not in "biu"
        or any(has_non_integer_values(inner) for inner in programs(equation.params.values()))
        for equation in getattr(closed, "jaxpr", closed).eqns
        for variable in equation.outvars
    )


def programs(values: Iterable[Any]) -> Iterator[Any]:
    """The jaxprs among these parameters of an equation."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from programs(value)
        elif is_program(value):
            yield value


def identity_key(op: Op) -> tuple[Any, ...]:
    """What two op records share if they are calls of the same op."""
    return (op.op, op.layer, op.phase, op.inputs, op.outputs, repr(sorted(op.attrs.items())))


def describe_container(value: Any) -> str:
    """``TrainState of 9 arrays, 131 numbers``, for an object with arrays and a container of many; '' for anything else."""
    nnx = sys.modules.get("flax.nnx")
    tree = nnx.state(value) if layers.is_object(value) and nnx is not None else value
    arrays = [leaf for leaf in jax.tree.leaves(tree) if adapter.is_leaf(leaf)]
    few = isinstance(value, (dict, tuple, list)) and len(arrays) <= MAX_ARRAYS_SHOWN
    if few or not arrays or adapter.is_leaf(value):
        return ""
    count = sum(math.prod(leaf.shape) for leaf in arrays)
    return (
        f"{type(value).__name__} of {len(arrays)} array{'s' * (len(arrays) > 1)}, {count:,} number{'s' * (count != 1)}"
    )
