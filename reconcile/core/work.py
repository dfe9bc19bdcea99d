"""``Work``: exact counts of the operations of one op (multiply-adds, adds, divisions, ...), and the registry of its formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import add, attrgetter, index, sub
from typing import Any, NamedTuple

from .errors import short
from .records import Op, Shape

COMPONENTS = ("mac", "accumulators", "add", "mul", "div", "cmp", "special")
MASKED = "masked"
"""The part of ``mac`` that a causal mask discards: no component of its own, and only a convention that leaves it out reads it."""


@dataclass(frozen=True, slots=True)
class Work:
    """Exact integer counts of the operations of one op.

    Attributes:
        mac: Multiply-adds: one multiply and one add into an accumulator that starts at 0.
        accumulators: Those accumulators (dot products): the first add of each could be saved.
        add: Additions and subtractions outside of multiply-adds.
        mul: Multiplications outside of multiply-adds.
        div: Divisions.
        cmp: Comparisons, such as those of a maximum.
        special: Calls of transcendental or rounding functions, such as exp, sqrt and tanh.
        masked: How many of ``mac`` a causal mask discards. They ran, so two works that differ in it alone are equal.
    """

    mac: int = 0
    accumulators: int = 0
    add: int = 0
    mul: int = 0
    div: int = 0
    cmp: int = 0
    special: int = 0
    masked: int = field(default=0, compare=False)

    def __add__(self, other: Work) -> Work:
        return Work(*map(add, counts(self), counts(other))) if self else other

    def __sub__(self, other: Work) -> Work:
        return Work(*map(sub, counts(self), counts(other)))

    def __mul__(self, times: int) -> Work:
        return self if times == 1 or not self else Work(*(a * times for a in counts(self)))

    __rmul__ = __mul__

    def __floordiv__(self, times: int) -> Work:
        return Work(*(a // times for a in counts(self)))

    def only(self, names: Iterable[str]) -> Work:
        """These components, and 0 for all others."""
        return Work(**{name: getattr(self, name) for name in names})

    def __iter__(self) -> Iterator[int]:
        return iter(_counts(self))

    def __bool__(self) -> bool:
        return any(counts(self))

    def items(self) -> Iterator[tuple[str, int]]:
        """Component name and count, in the order of COMPONENTS."""
        return zip(COMPONENTS, self, strict=True)


_counts: Callable[[Work], tuple[int, ...]] = attrgetter(*COMPONENTS)
counts: Callable[[Any], tuple[int, ...]] = attrgetter(*COMPONENTS, MASKED)
"""The components of a work and its masked products; of a convention, the weights of these."""

ZERO = Work()


def sum_works(works: Iterable[Work]) -> Work:
    """The sum of these works."""
    columns = list(zip(*map(counts, works), strict=True))
    return Work(*map(sum, columns)) if columns else ZERO


MAX_COUNT: int = 10**1000
"""The largest count allowed, more than any op does; Python prints no number with more than 4,300 digits."""
_INT_TYPES = {int}


PRODUCT_COMPONENTS = ("mac", "accumulators")
"""The components that only dot products have."""
SINGLE_COMPONENTS = tuple(name for name in COMPONENTS if name not in PRODUCT_COMPONENTS)
"""The components that are single operations."""


class UnknownWork(Exception):
    """The work of this op is unknown: it has no formula, or its shapes are unknown. The message says which and why.

    ``components`` names the unknown components, all of them unless some are known; ``known`` has the counts of the others.
    """

    def __init__(self, reason: str = "", components: Iterable[str] = COMPONENTS, known: Work = ZERO) -> None:
        super().__init__(reason)
        self.components = frozenset(components)
        self.known = known


class NoWork(ValueError):
    """A formula returned something that is not valid work. The message is half a sentence: "it returned ..."."""


def check_work(value: object, *, signed: bool = False) -> Work:
    """The value that a formula returned, if it is work: whole numbers of at least 0 (numpy's become ints). Raises NoWork.

    ``signed`` is for a counter's rule, which may return negative counts. Differences of two works are not checked here.
    """
    if not isinstance(value, Work):
        raise NoWork(f"it returned {short(value)}, which is not a Work")
    found = counts(value)
    if set(map(type, found)) != _INT_TYPES:
        value = Work(*map(_whole_number, (*COMPONENTS, MASKED), found))
        found = counts(value)
    least = 1 - MAX_COUNT if signed else 0
    if min(found) < least or max(found) >= MAX_COUNT:
        name, count = next(
            (n, c) for n, c in zip((*COMPONENTS, MASKED), found, strict=True) if not least <= c < MAX_COUNT
        )
        raise NoWork(f"it returned {name}={short(count)}, but a count must be at least 0 and have at most 1,000 digits")
    return value


def _whole_number(name: str, count: object) -> int:
    if not isinstance(count, bool):
        try:
            return index(count)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise NoWork(f"it returned {name}={short(count)}, but a count must be a whole number")


class Formula(NamedTuple):
    """A registered formula: pure, from one op record to the work of one call. ``zero_reason``: why that is always 0, or ''."""

    op: str
    compute: Callable[[Op], Work]
    source: str
    zero_reason: str = ""


_REGISTRIES: dict[str, dict[str, Formula]] = {"": {}, "complex": {}, "sparse": {}}
"""Formulas by op, of each kind of record: with a complex number, with a sparse tensor, '' for all others."""
GIVEN: dict[str, Formula] = {}
"""The formulas of the user's files, for ops with a formula of the tool's own as well."""
_POINTWISE: set[str] = set()
_OPAQUE: set[str] = set()

Compute = Callable[[Op], Work]


def formula(*ops: str, source: str, kind: str = "") -> Callable[[Compute], Compute]:
    """Register ``compute`` for these op names. ``source`` cites kernel, paper or decomposition.

    ``kind`` is ``complex`` or ``sparse`` for ops with such a tensor: no other formula reads such a record. Complex ones count
    operations on real numbers.

    Raises ValueError if one of them already has a formula, TypeError for names that are not text.
    """
    if not all(isinstance(name, str) for name in (*ops, source)):
        raise TypeError(f"formula() takes names of ops and a source, all of them text, not {short((*ops, source))}")

    def register(compute: Compute) -> Compute:
        for op in ops:
            _add_to_registry(Formula(op, compute, source), kind)
        return compute

    return register


complex_formula = partial(formula, kind="complex")
sparse_formula = partial(formula, kind="sparse")


def no_arithmetic(reason: str, *ops: str) -> None:
    """Register ops whose work is 0 under every convention, with the reason (moves data, makes constants)."""
    for op in ops:
        _add_to_registry(Formula(op, lambda _op: ZERO, reason, reason))


CONTROL_FLOW = "control flow or a function call: what runs inside is traced as ops of its own"
"""Why such ops do no arithmetic. If a trace could not enter one (``UNENTERED``), its work is unknown, and a user may give it."""


def pointwise(*ops: str) -> None:
    """Declare ops that compute each element of the result from the elements at its position: they have no multiply-adds."""
    _POINTWISE.update(ops)


def is_pointwise(op: str) -> bool:
    """Whether an op was declared pointwise."""
    return op in _POINTWISE


def opaque(*ops: str) -> None:
    """Declare ops that run code or graphs of their own: their dtypes do not tell whether they compute on floating numbers.

    A name that ends with ``*`` stands for all ops whose names begin with the rest.
    """
    _OPAQUE.update(ops)


def is_opaque(op: str) -> bool:
    """Whether an op was declared opaque."""
    return op in _OPAQUE or any(op.startswith(name[:-1]) for name in _OPAQUE if name.endswith("*"))


def formulas(
    rows: Mapping[str, tuple[str, Compute]],
    prefix: str = "",
    register: Callable[..., Callable[[Compute], Compute]] = formula,
) -> None:
    """Register a table of formulas: names of ops, of which each begins with ``prefix`` -> their source and their work.

    ``register`` is ``complex_formula`` or ``sparse_formula`` for formulas on complex numbers, or on sparse tensors.
    """
    for names, (source, compute) in rows.items():
        register(*(prefix + name for name in names.split()), source=source)(compute)


_collected: dict[str, Formula] | None = None
"""The formulas of the user's file that is being read; None if none is."""


@contextmanager
def collect_formulas() -> Iterator[dict[str, Formula]]:
    """Within this context, which is that of a user's file, formulas are collected here, and not registered.

    An op may have one of the tool's own, unless it does no arithmetic: then its whole work is known.
    """
    global _collected
    _collected = {}
    try:
        yield _collected
    finally:
        _collected = None


def _add_to_registry(entry: Formula, kind: str = "") -> None:
    registry = _REGISTRIES[kind]
    earlier = registry.get(entry.op)
    if _collected is not None:
        registry = _collected
        known = earlier if earlier and earlier.zero_reason not in ("", CONTROL_FLOW) else None
        earlier = _collected.get(entry.op) or GIVEN.get(entry.op) or known
    if earlier is not None:
        raise ValueError(f"op {entry.op!r} already has a work formula ({earlier.source})")
    registry[entry.op] = entry


def give_formula(entry: Formula) -> None:
    """Register a user's formula: for an op that has none it is the only one."""
    GIVEN[entry.op] = entry
    _REGISTRIES[""].setdefault(entry.op, entry)


@contextmanager
def restore_registry() -> Iterator[None]:
    """Within this context registrations are temporary: a user's formulas and declarations end with the run that loaded them."""
    before, pointwise_before, opaque_before = registered_formulas(), set(_POINTWISE), set(_OPAQUE)
    try:
        yield
    finally:
        _REGISTRIES[""].clear()
        _REGISTRIES[""].update(before)
        GIVEN.clear()
        _POINTWISE.intersection_update(pointwise_before)
        _OPAQUE.intersection_update(opaque_before)


def find(op: str, kind: str = "") -> Formula | None:
    """The formula registered for exactly this op name and kind of record, or None."""
    return _REGISTRIES[kind].get(op)


def registered_formulas(kind: str = "") -> dict[str, Formula]:
    """A copy of the registry of this kind, for listings and tests."""
    return dict(_REGISTRIES[kind])


def numel(shape: Shape) -> int:
    """Number of elements. Raises UnknownWork if any dimension is unknown."""
    return prod(known_shape(shape))


def known_shape(shape: Shape) -> tuple[int, ...]:
    """The shape as plain ints. Raises UnknownWork if any dimension is unknown or below 0."""
    if shape is None:
        raise UnknownWork("shape unknown")
    dims: list[int] = []
    for size in shape:
        if size is None or size < 0:
            raise UnknownWork(f"shape {list(shape)} not fully known")
        dims.append(size)
    return tuple(dims)


def prod(sizes: tuple[int, ...] | list[int]) -> int:
    """Product as a Python int (1 for no sizes)."""
    result = 1
    for size in sizes:
        result *= size
    return result
