"""Sites: the layers of one trace that compute something, with the features by which partners.py matches them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..core.records import Op, Tensor, Trace
from ..work import ZERO, UnknownWork, Work, prod, work_of
from .alignment import enclosing_layers
from .layer_names import INNER, Key, Name

FILTER_FIRST = frozenset(
    ("Conv2DBackpropInput", "Conv2DBackpropInputV2", "Conv3DBackpropInput", "Conv3DBackpropInputV2",
     "DepthwiseConv2dNativeBackpropInput")
)  # fmt: skip
"""Transposed convolutions: they take (sizes, filter, input), and all others the filter last."""


@dataclass(frozen=True, slots=True)
class Site:
    """One layer's own ops.

    Attributes:
        paths: The framework's paths that are this one layer, the outermost first.
        name: Its name, as it is compared with names in the other model.
        home: The key of the innermost enclosing layer, or of the layer itself, with a namesake in the other model; () if there is
            none.
        position: Its rank in the order of execution, by its first product, else by its first op.
        work: The work of all ops and all calls, as far as it is known.
        filters: The sizes of the weights of its matrix products and convolutions, sorted and without those of 1.
        operands: The element counts of all inputs of these.
        single: Whether there is exactly one of them, run once.
        known: Whether the work of every op is known.
    """

    paths: tuple[str, ...]
    name: Name
    home: Key
    position: int
    work: Work
    filters: frozenset[tuple[int, ...]]
    operands: frozenset[int]
    single: bool
    known: bool = True

    @property
    def path(self) -> str:
        """The layer's path, the outermost if several paths are one layer."""
        return self.paths[0]

    @property
    def products(self) -> tuple[int, int]:
        """The numbers of multiply-adds and of dot products: (0, 0) if there are none."""
        return self.work.mac, self.work.accumulators


def paths_of(trace: Trace) -> tuple[str, ...]:
    """The layers of a trace that have ops with work or unknown work, in order of execution: by their first product, or by
    their first op if they have none."""
    first: dict[str, int] = {}
    ops = _ops(trace)
    order = {op.id: index for index, op in enumerate(trace.ops)}
    for path, path_ops in ops.items():
        products = [op for op, work in path_ops if work is not None and work.mac]
        first[path] = order[products[0].id if products else path_ops[0][0].id]
    return tuple(sorted(first, key=first.__getitem__))


def sites_of(trace: Trace, paths: Iterable[str], names: Mapping[str, Name], shared: Collection[Name]) -> list[Site]:
    """The sites of these paths, in order of execution. ``shared`` are the names that one layer has in each of the models.

    A scope that TensorFlow opens inside a layer belongs to that layer; removed wrappers belong to the model itself.
    """
    ops = _ops(trace)
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(_home(path, names), []).append(path)
    sites = []
    for position, members in enumerate(groups.values()):
        ordered = tuple(sorted(members, key=lambda path: (bool(path), path.count("."), path)))
        around = (names[outer] for outer in reversed(enclosing_layers(ordered[0])))
        name, home = names[members[0]], next((outer.key for outer in around if outer in shared), ())
        sites.append(_site(ordered, name, home, position, [pair for path in members for pair in ops[path]]))
    return sites


def _home(path: str, names: Mapping[str, Name]) -> str:
    """The path whose site this path belongs to: itself, except for wrappers and TensorFlow's inner scopes."""
    if not names[path].key:
        return ""
    above, _, last = path.rpartition(".")
    return _home(above, names) if above and last.lower() in INNER else path


def _ops(trace: Trace) -> dict[str, list[tuple[Op, Work | None]]]:
    ops: dict[str, list[tuple[Op, Work | None]]] = {}
    for op in trace.ops:
        try:
            work = work_of(op)
        except UnknownWork:
            ops.setdefault(op.layer, []).append((op, None))
            continue
        if work:
            ops.setdefault(op.layer, []).append((op, work))
    return ops


def _site(paths: tuple[str, ...], name: Name, home: Key, position: int, ops: list[tuple[Op, Work | None]]) -> Site:
    total = ZERO
    filters, operands, times = set(), set(), 0
    for op, work in ops:
        total = total + (work or ZERO) * op.calls
        if work is not None and work.mac:
            sizes = [size for tensor in op.inputs if (size := _sizes(tensor)) is not None]
            filters |= set(sizes[:1] if op.op in FILTER_FIRST else sizes[-1:])
            operands |= {prod(size) for size in sizes}
            times += op.calls
    known = all(work is not None for _, work in ops)
    return Site(paths, name, home, position, total, frozenset(filters), frozenset(operands), times == 1, known)


def _sizes(tensor: Tensor) -> tuple[int, ...] | None:
    """A matrix's or filter's shape independent of layout: its sizes other than 1, sorted."""
    if tensor.shape is None or len(tensor.shape) < 2:
        return None
    sizes = [size for size in tensor.shape if size is not None]
    return tuple(sorted(size for size in sizes if size != 1)) if len(sizes) == len(tensor.shape) else None
