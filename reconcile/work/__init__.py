"""Work formulas: ``work_of(op)`` gives the integer components of one call of one op record, ``known_part`` the known ones.

One registry, exact op names; an op without a formula is unknown, never 0. Two rules hold for ops without a formula: an op
that has only tensors of integers and booleans does no work except its multiply-adds; a pointwise op has no multiply-adds, and
its other components are unknown.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, partial
from threading import RLock
from typing import NamedTuple

from ..core.errors import ReconcileError, UsageError, describe_error, short
from ..core.framework import Framework, absolute
from ..core.records import CUT, INSIDE, PARTS, POINTWISE, REGISTERED, REST, STORED, UNENTERED, Op, Tensor, op_from
from ..core.registry import frameworks
from ..core.work import (
    COMPONENTS,
    GIVEN,
    MASKED,
    SINGLE_COMPONENTS,
    ZERO,
    Formula,
    NoWork,
    UnknownWork,
    Work,
    check_work,
    find,
    formula,
    is_opaque,
    is_pointwise,
    known_shape,
    no_arithmetic,
    numel,
    prod,
    registered_formulas,
    restore_registry,
    sum_works,
)

_loaded: set[str] = set()
"""The modules whose formulas are registered."""
_loading = RLock()
_ours: dict[str, Formula] = {}
"""The formulas that come with the frameworks: pure functions of a record's signature."""
_parts: dict[Hashable, Known] = {}
"""The known part of an op's work, by signature, if no user's formula gives it."""
MOST_PARTS = 100_000


def load(names: Iterable[str] | None = None) -> None:
    """Import the formulas of these frameworks, or of every registered one with those that products add (each once). Names that
    are not registered have none.

    Raises UsageError if another package's formulas are broken.
    """
    with _loading:
        for name in frameworks() if names is None else names:
            if record := frameworks().get(name):
                for module in (record.formulas, *(record.more_formulas if names is None else ())):
                    if module not in _loaded:
                        _loaded.add(module)
                        _import(record, module)
                        _ours.update(registered_formulas())  # a counter's rules may have imported some of them before


def _import(record: Framework, module: str) -> None:
    try:
        importlib.import_module(absolute(module))
    except Exception as error:
        if not record.folder:
            raise
        raise UsageError(
            f"the formulas of {record.title} ({module}) cannot be used: {describe_error(error)}."
        ) from error


def formula_of(op: str, kind: str = "") -> Formula | None:
    """The formula of exactly this op and kind of record, or None. Frameworks whose formulas are not loaded yet are asked one
    after another, then products."""
    entry = find(op, kind)
    if entry is None and not _loaded.issuperset(
        module for record in frameworks().values() for module in (record.formulas, *record.more_formulas)
    ):
        with _loading:
            for names in (*((name,) for name in frameworks()), None):
                load(names)
                entry = find(op, kind)
                if entry is not None:
                    break
    return entry


_FLOATING = ("float", "bfloat", "double", "half")
_WHOLE = ("int", "uint", "bool")


@lru_cache(maxsize=64)
def is_floating(dtype: str) -> bool:
    """Whether a dtype is float16/32/64, bfloat16 or float8_*; complex is floating too."""
    return dtype.startswith((*_FLOATING, "complex"))


def is_complex(dtype: str) -> bool:
    """Whether a dtype is complex; ops on complex numbers have their own formulas."""
    return dtype.startswith("complex")


def is_integer_op(op: Op) -> bool:
    """Whether op is bookkeeping: it has only integers or booleans, and multiplies no matrices."""
    return _is_of_integers(op) and not known_part(op).work


def _is_of_integers(op: Op) -> bool:
    """Whether op computes on integers, booleans or quantised numbers only: its inputs decide, since a comparison of ints gives
    bool. For an op without tensor inputs its outputs decide.
    """
    tensors = [t for t in op.inputs if t.dtype not in ("resource", "variant")] or list(op.outputs)
    return bool(tensors) and not any(is_floating(t.dtype) for t in tensors)


def is_whole(op: Op) -> bool:
    """Whether every tensor of an op, of its inputs and its outputs, holds integers or booleans. False if it has none."""
    tensors = (*op.inputs, *op.outputs)
    return bool(tensors) and all(t.dtype.startswith(_WHOLE) for t in tensors)


class Known(NamedTuple):
    """The known part of an op's work: ``work`` is 0 in the components that are ``unknown``; ``reason`` says why they are."""

    work: Work
    unknown: frozenset[str] = frozenset()
    reason: str = ""


def signature(op: Op) -> Hashable:
    """The fields of a record that say what one call of the op computes: ops of one signature have the same work."""
    return op.op, op.inputs, op.outputs, repr(op.attrs)


def is_ours(op: str) -> bool:
    """Whether no user's formula gives the work of ops of this name: such a formula may read the layer."""
    return op not in GIVEN and find(op) is _ours.get(op)


def known_part(op: Op) -> Known:
    """As ``work_of``, but for an op of unknown work it returns the known components. Computed once for equal ops."""
    if INSIDE in op.attrs or not is_ours(op.op):  # a user's formula may be that of an op inside
        return _known_part(op)
    key = signature(op)
    part = _parts.get(key)
    if part is None:
        if len(_parts) >= MOST_PARTS:
            _parts.clear()
        part = _parts[key] = _known_part(op)
    return part


class FormulaError(UsageError):
    """A user's formula, or the file of it, that cannot be used."""


def _known_part(op: Op, compute: Callable[[Op], Work] | None = None) -> Known:
    try:
        return Known((compute or work_of)(op))
    except UnknownWork as error:
        return Known(error.known, error.components, str(error))


def work_of(op: Op) -> Work:
    """Work of ONE call of ``op``. For an op on integers these are its multiply-adds: the rest is bookkeeping.

    Raises UnknownWork for an op without a formula, also on complex numbers, unknown shapes, and if a formula cannot read the
    record or returns invalid work. Any other error in a user's formula becomes a UsageError (formula_files.py). Such a formula
    is called for every record of its op whose work is not that of its parts, or none at all.
    """
    given, entry, kind = GIVEN.get(op.op), formula_of(op.op), _kind(op)
    if entry is not None and REST in op.attrs:
        return ZERO
    if entry is given:
        entry = None
    zero = entry and entry.zero_reason
    variant = kind and not (zero or (entry and kind == "sparse" and not op.op.startswith("aten.")))
    own = formula_of(op.op, kind) if variant else entry
    tool = partial(_work_by_tool, entry=own, missing_for=kind if entry else "")
    if given is None or (zero and UNENTERED not in op.attrs):
        return tool(op)
    if PARTS in op.attrs:
        return _work_of_parts(op)
    if own is not None:
        return _complete(own, given, _known_part(op, tool), _known_part(op, partial(_compute, entry=given)))
    return ZERO if given.zero_reason else _compute(op, given)


def _work_by_tool(op: Op, entry: Formula | None, missing_for: str) -> Work:
    """The work by the tool's own formula for such a record, if there is one."""
    if UNENTERED in op.attrs:
        raise UnknownWork(str(op.attrs[UNENTERED]))
    if entry is None:
        if isinstance(op.attrs.get(INSIDE), list):
            return _work_inside(op)
        if is_whole(op) and not is_opaque(op.op):
            if _is_foreign(op):
                raise UnknownWork(
                    f"no work formula for {op.op}, which may multiply its integers", ("mac", "accumulators")
                )
            return ZERO
        raise _without_formula(op, f"no work formula for {op.op}{_ON[missing_for]}")
    if entry.zero_reason:
        return ZERO
    if PARTS in op.attrs:
        return _work_of_parts(op)
    if CUT in op.attrs and not _is_of_integers(op):
        raise UnknownWork(f"{op.op}: {op.attrs[CUT]}", SINGLE_COMPONENTS)
    return _compute(op, entry)


def _compute(op: Op, entry: Formula) -> Work:
    if _is_of_integers(op):
        return _products_of_integers(op, entry)
    try:
        return check_work(entry.compute(op))
    except (UnknownWork, ReconcileError):
        raise
    except NoWork as error:
        raise UnknownWork(f"the formula for {op.op} does not fit this record: {error}") from error
    except Exception as error:
        raise UnknownWork(f"the formula for {op.op} does not fit this record: {describe_error(error)}") from error


def _complete(own: Formula, given: Formula, known: Known, added: Known) -> Work:
    """What the tool knows, and what a user's formula gives of the rest. Both agree on the components that both know."""
    for component in COMPONENTS:
        ours, theirs = getattr(known.work, component), getattr(added.work, component)
        if ours != theirs and component not in known.unknown | added.unknown:
            raise FormulaError(
                f"{given.compute}: it returned {component}={short(theirs)}, but {component} is {short(ours)} by the formula "
                f"of this tool ({own.source}). Return the same where that is known, or raise UnknownWork."
            )
    unknown = known.unknown & added.unknown
    rest = known.unknown - added.unknown
    work = known.work + added.work.only((*rest, MASKED) if "mac" in rest else rest)
    if unknown:
        raise UnknownWork(known.reason if added.unknown >= known.unknown else added.reason, unknown, work)
    return work


def _work_of_parts(op: Op) -> Work:
    """The work of an op on nested tensors: that on their first parts, on their second ones, and so on."""
    sizes, tensors = op.attrs[PARTS], (*op.inputs, *op.outputs)
    attrs = {name: value for name, value in op.attrs.items() if name != PARTS}
    known: list[Known] = []
    for number in range(max(len(parts or ()) for parts in sizes)):
        cut = [t if p is None else Tensor((1, *p[number]), t.dtype) for t, p in zip(tensors, sizes, strict=True)]
        inputs, outputs = tuple(cut[: len(op.inputs)]), tuple(cut[len(op.inputs) :])
        known.append(known_part(op._replace(inputs=inputs, outputs=outputs, attrs=attrs)))
    return _sum_known(known)


def ops_inside(op: Op) -> list[Op]:
    """The ops that ran in the kernel of another library's op; none where they are not all of its work."""
    inside = op.attrs.get(INSIDE)
    return [op_from(data)._replace(layer=op.layer) for data in inside] if isinstance(inside, list) else []


def _work_inside(op: Op) -> Work:
    parts = [(part, known_part(part)) for part in ops_inside(op)]
    return _sum_known([Known(known.work * part.calls, known.unknown, known.reason) for part, known in parts])


def _sum_known(known: list[Known]) -> Work:
    work, unknown = sum_works(part.work for part in known), frozenset[str]().union(*(part.unknown for part in known))
    if unknown:
        raise UnknownWork(next(part.reason for part in known if part.unknown), tuple(unknown), work)
    return work


def _products_of_integers(op: Op, entry: Formula) -> Work:
    """The multiply-adds of an op on integers; an op that cannot multiply matrices has none, whatever its shapes are."""
    if is_pointwise(op.op):
        return ZERO
    try:
        work = check_work(entry.compute(op))
    except UnknownWork as error:
        work = error.known
        if _is_quantised(op) or ("mac" in error.components and _may_multiply(op)):
            raise
    except Exception as error:
        if _may_multiply(op):
            raise UnknownWork(f"the formula for {op.op} does not fit this record: {describe_error(error)}") from error
        return ZERO
    return Work(mac=work.mac, accumulators=work.accumulators, masked=work.masked)


def _may_multiply(op: Op) -> bool:
    """Whether two of its inputs may be matrices."""
    return sum(t.shape is None or len(t.shape) > 1 for t in op.inputs) > 1


def _is_quantised(op: Op) -> bool:
    """Whether its integers represent real numbers (quantised, with scales)."""
    return any(t.dtype.startswith(("qint", "quint")) for t in op.inputs)


_OURS = frozenset(
    ("aten", "higher_order", "hlo", "lax", "onnx", "prim", "prims", "quantized", "quantized_decomposed", "torchvision")
)
"""Prefixes of op names (before the dot) whose products all have formulas here."""


def _is_foreign(op: Op) -> bool:
    """Whether another library's op may be a product of integers: nothing known excludes it."""
    space, dot, _ = op.op.partition(".")
    return bool(dot) and space not in _OURS and not op.attrs.get(POINTWISE) and _may_multiply(op)


_ON = {"": "", "complex": " on complex numbers", "sparse": " on sparse tensors"}


def _kind(op: Op) -> str:
    """Which formulas read this record: those of sparse tensors, those of complex numbers, or the others."""
    if STORED in op.attrs:
        return "sparse"
    return "complex" if any(is_complex(t.dtype) for t in (*op.inputs, *op.outputs)) else ""


def _without_formula(op: Op, reason: str) -> UnknownWork:
    reason += f": {op.attrs[INSIDE]}" if op.attrs.get(INSIDE) else ""
    flops = op.attrs.get(REGISTERED)
    if isinstance(flops, int) and flops >= 0 and flops % 2 == 0:
        reason += ": its library registered a formula with torch.utils.flop_counter, which gives the multiply-adds, and no more"
        return UnknownWork(reason, (*SINGLE_COMPONENTS, "accumulators"), Work(mac=flops // 2))
    if is_pointwise(op.op) or op.attrs.get(POINTWISE) is True:
        return UnknownWork(
            f"{reason}: it is pointwise, so it has no multiply-adds, and nothing else is known", SINGLE_COMPONENTS
        )
    return UnknownWork(reason)


__all__ = [
    "COMPONENTS", "MASKED", "ZERO", "Known", "NoWork", "UnknownWork", "Work", "check_work", "find", "formula", "formula_of",
    "is_complex", "is_floating", "is_integer_op", "is_ours", "known_part", "known_shape", "no_arithmetic", "numel", "prod",
    "registered_formulas", "restore_registry", "signature", "sum_works", "work_of",
]  # fmt: skip
