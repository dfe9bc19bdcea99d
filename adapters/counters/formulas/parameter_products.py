"""Sorts the products of a trace by what a parameter formula counts: those that read each parameter, and those that read none.

It also finds the experts that ran, and names the cause where a parameter's products differ from the formula's.  Products that
read none are attention's, or those of a recurrence; an indexer's and an image encoder's are told apart.

A product reads a parameter if it ran in the parameter's module (or in the module around it, for a function that is given the
weights of its children) and one of its inputs has the parameter's shape, in any order of dimensions.  The product that computes
a weight's gradient has that shape as its output.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ....core.causes import Cause
from ....core.records import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Op, Shape, Tensor
from ..bridge import by_layer, sum_of
from .terms import ATTENTION, EXPERT, INDEXER, SCORES

Facts = Mapping[str, Any]
PASSES = (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
"""The three passes of a training step that a factor of 3 stands for."""
IN_PROJECTION = "in_proj_weight"
"""Three weights of nn.MultiheadAttention in one, which are read apart where queries and keys are those of different tokens."""


def key_of(shape: Shape) -> tuple[int, ...]:
    """A shape without dimensions of 1, in any order of the others."""
    return tuple(sorted(n for n in shape or () if n is not None and n != 1))


def _shapes(facts: Facts) -> set[tuple[int, ...]]:
    """The shapes under which a product may read it: an expert's share of a stack of experts, the part that a rank has, and, read
    ``apart``, one or two of the three weights that attention's projection is made of."""
    shapes: list[Sequence[int]] = [facts["shape"], facts.get("part", facts["shape"])]
    if facts.get("apart"):
        shapes += [[facts["shape"][0] * n // 3, facts["shape"][1]] for n in (1, 2)]
    return {key_of(tuple(shape[cut:])) for shape in shapes for cut in ((0, 1) if facts["routed"] else (0,))}


def scopes_of(facts: Facts) -> Iterable[str]:
    """The modules that hold the parameter, then the modules around these."""
    owners: list[str] = facts["owners"]
    return (*owners, *(owner.rpartition(".")[0] for owner in owners))


def _have_shape(tensors: Iterable[Tensor], facts: Facts) -> bool:
    """Whether one of these tensors has the parameter's shape."""
    shapes = _shapes(facts)
    return any(key_of(tensor.shape) in shapes for tensor in tensors)


def reads_parameter(op: Op, facts: Facts) -> bool:
    """Whether an op reads this parameter, or makes its gradient."""
    both = (*op.inputs, *op.outputs)
    return _have_shape({WEIGHT_GRADIENT: op.outputs, BACKWARD: both}.get(op.phase, op.inputs), facts)


def _set_phase(op: Op, facts: Facts) -> Op:
    """The product with its gradient's phase, where the trace says of the backward pass alone: one that takes the parameter makes
    the input's gradient, and one that gives a tensor of its shape makes its own. Both at once leaves it open."""
    takes, gives = (_have_shape(tensors, facts) for tensors in (op.inputs, op.outputs))
    if op.phase != BACKWARD or takes == gives:
        return op
    return op._replace(phase=INPUT_GRADIENT if takes else WEIGHT_GRADIENT)


def copies_of(facts: Facts) -> int:
    """How many equal layers have such a parameter, or are such a layer (configured/equal_layers.py)."""
    return int(facts.get("copies", 1))


def is_part(facts: Facts, counted: int, ran: int) -> bool:
    """Whether these products are those of the part of a parameter that this rank has, and ``counted`` are those of the whole."""
    whole, part = prod(facts.get("shape", ())), prod(facts.get("part", ()))
    return "part" in facts and 0 < part < whole and counted * part == ran * whole


def has_other_token_count(facts: Facts, ran: int) -> bool:
    """Whether products read a parameter a number of times that is no multiple of the tokens: once for an image, or a patch."""
    parts = 3 if facts["name"].endswith(IN_PROJECTION) else 1
    times, rest = divmod(ran * parts, copies_of(facts) * int(facts["numel"]) or 1)
    return not (rest or facts["routed"]) and times % (parts * int(facts["tokens"])) > 0


def cause_of(facts: Facts, counted: int, ran: int, balanced: Iterable[str], partial: Iterable[str]) -> Cause:
    """Why products of a parameter are others than ``counted`` multiply-adds; ``balanced`` are experts that share all tokens as
    the configuration states, and ``partial`` those used a constant number of times per token that it does not state."""
    if facts["name"] in partial:
        return Cause.ALL_EXPERTS_COUNTED
    if facts["routed"] and facts.get("capacity"):
        return Cause.EXPERT_CAPACITY
    if facts["name"] in balanced:
        return Cause.BALANCE_ASSUMED
    if is_part(facts, counted, ran):
        return Cause.GLOBAL_SHAPE
    return Cause.TOKENS_ASSUMED if has_other_token_count(facts, ran) else Cause.FORMULA_DIFFERS


def as_unsharded(facts: Facts) -> Facts:
    """The facts of a parameter of which this rank has a part alone, as if it had all of it."""
    whole = prod(facts["shape"]) if "numel" in facts and "padding" not in facts else facts.get("numel")
    return facts if whole == facts.get("numel") else dict(facts, numel=whole)


def products_by_parameter(weights: Iterable[Facts], products: Iterable[Op]) -> dict[str, list[Op]]:
    """The products that read each parameter of two or more dimensions, by the parameter's name. A product that reads several
    goes to the first of them."""
    ran = by_layer(products)
    taken = set[str]()
    ops: dict[str, list[Op]] = {}
    for facts in weights:
        ops[facts["name"]] = []
        if len(facts["shape"]) < 2:
            continue
        own = [op for scope in facts["owners"] for op in ran.get(scope, ())]
        near = own or [op for scope in scopes_of(facts) for op in ran.get(scope, ())]
        if facts["name"].endswith(IN_PROJECTION) and not any(reads_parameter(op, facts) for op in near):
            facts = dict(facts, apart=True)
        for op in near:
            if op.id not in taken and reads_parameter(op, facts):
                ops[facts["name"]].append(_set_phase(op, facts))
                taken.add(op.id)
    return ops


def experts_that_ran(weights: Iterable[Facts], ops: Mapping[str, list[Op]]) -> tuple[set[str], set[str]]:
    """The parameters of experts of which, with those of the other experts beside them, a share ran forward.

    The first are routed, and exactly the share that the configuration states ran, or less where experts have a capacity. Of the
    others no share is stated: they ran a whole number of times for all tokens, and fewer times than there are experts.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Facts]] = defaultdict(list)
    for facts in weights:
        if facts["expert"] or facts["routed"]:
            groups[re.sub(EXPERT, ".experts.", facts["name"]), tuple(facts["shape"])].append(facts)
    balanced, partial = set[str](), set[str]()
    for (_, shape), group in groups.items():
        once = sum(int(as_unsharded(w)["numel"]) * int(w["tokens"]) * copies_of(w) for w in group)
        ran, one = sum_of(op for w in group for op in ops[w["name"]] if op.phase == FORWARD).mac, group[0]
        if one["routed"]:
            short = once * int(one["a"]) - ran * int(one["E"])
            if ran and (not short or (short > 0 and one.get("capacity"))):
                balanced.update(w["name"] for w in group)
        else:
            experts = len(group) if len(group) > 1 else shape[0] if len(shape) == 3 else 1
            times, rest = divmod(ran * experts, once or 1)
            if not rest and 0 < times < experts:
                partial.update(w["name"] for w in group)
    return balanced, partial


def output_mixed_with_queries(facts: Facts, ops: Mapping[str, list[Op]]) -> bool:
    """Whether products of this weight, attention's output, are with those of the queries: both are as large, and read apart."""
    before, found, _ = facts["name"].partition("out_proj.weight")
    near = ops.get(before + IN_PROJECTION, ()) if found else ()
    return any(reads_parameter(op, facts) for op in near)


def was_read(facts: Facts, layers: Mapping[str, list[Op]]) -> bool:
    """Whether any op of the trace read this parameter at all: by its shape, in the modules that hold it or around them."""
    shape = key_of(tuple(facts["shape"]))
    return any(
        key_of(tensor.shape) == shape
        for scope in scopes_of(facts)
        for op in layers.get(scope, ())
        for tensor in op.inputs
    )


def in_indexer(op: Op) -> bool:
    """Whether a product is one of an indexer, which chooses the keys of sparse attention; transformers names all so."""
    return INDEXER in op.layer.split(".")


def in_image_encoder(op: Op, facts: Facts) -> bool:
    """Whether an op is one of the encoder of images beside a language model."""
    return any(f"{op.layer}.".startswith(f"{path}.") for path in facts.get("vision", ()))


def passes_of(kind: str, passes: int) -> list[tuple[int, tuple[str, ...]]]:
    """The phases that a term stands for, with the passes for each: both gradients of products without a weight are of inputs, and
    an indexer, whose input is detached, has that of its weights alone."""
    if kind in (ATTENTION, SCORES) and passes == len(PASSES):
        return [(1, PASSES[:1]), (2, PASSES[1:])]
    order = (FORWARD, WEIGHT_GRADIENT, INPUT_GRADIENT) if kind == INDEXER else PASSES
    return [(1, (phase,)) for phase in order[:passes]]
