"""Maps the nodes that TensorFlow ran, after it rewrote the graph, to the ops of the graph as it was written.

Before it runs a graph, TensorFlow rewrites it: a product, its bias and its activation become one node with the name of the last,
a transpose goes into the product behind it, a call is inlined. So a node is looked up by its name; a fused one is the nearest
product before the op whose name it has, and a call that was not inlined stands for the products within it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ....core.records import Op
from ...tensorflow.graphs.graph import CALLS, canonical
from ...tensorflow.trace import Tracer
from ...tensorflow.training import TrainingTracer
from ..cpu_libraries import PRODUCTS
from ..cpu_libraries.log_lines import Product
from .convolution_sizes import UNPADDED
from .executor_log import ExecutedNode
from .logged_products import REMOVED, agrees, is_product, products_of, with_zeros

_REWRITTEN = re.compile(r"(?:ArithmeticOptimizer|ConstantFolding)/\w+?_")
_KIND = re.compile(r"^_(?:Mkl(?:Native)?)?(PadWith)?(?:Fused)?")
PADS = ("Pad", "PadV2")
FARTHEST = 6
"""Ops that TensorFlow fuses behind one product: a reshape, a bias, a sum, an activation of a few ops."""


class Graph:
    """The ops of a walk, by id, and the nodes of the graphs that they are."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}

    def note(self, graph: Any, name: str, id: str) -> None:
        """An op of the walk is this node."""
        self.nodes[id] = graph.get_operation_by_name(name)

    def before(self, id: str) -> Iterator[str]:
        """Ids of the ops whose results the op takes, and of those before them, the nearest first."""
        node = self.nodes.get(id)
        if node is None:
            return
        prefix = id[: len(id) - len(canonical(node.name))]
        wave, seen = [node], {node.name}
        for _ in range(FARTHEST):
            wave = [t.op for n in wave for t in n.inputs if t.op.name not in seen]
            seen.update(n.name for n in wave)
            yield from (canonical(prefix + n.name) for n in wave)

    def padding(self, id: str) -> list[int] | None:
        """Positions that a Pad adds before the first one of each axis; None if the graph has no constant of them."""
        import tensorflow as tf

        node = self.nodes.get(id)
        values = None if node is None else tf.get_static_value(node.inputs[1])
        return None if values is None else [int(before) for before, _ in values]


class InferenceWalk(Tracer):
    """The walk of a call, with its nodes."""

    edges: Graph

    def layer_and_phase(self, graph: Any, name: str, id: str, layer: str, within: tuple[str, ...]) -> tuple[str, str]:
        """See Tracer.layer_and_phase."""
        self.edges.note(graph, name, id)
        return super().layer_and_phase(graph, name, id, layer, within)


class TrainingWalk(TrainingTracer):
    """The walk of a training step, with its nodes."""

    edges: Graph

    def layer_and_phase(self, graph: Any, name: str, id: str, layer: str, within: tuple[str, ...]) -> tuple[str, str]:
        """See Tracer.layer_and_phase."""
        self.edges.note(graph, name, id)
        return super().layer_and_phase(graph, name, id, layer, within)


class MappedNodes:
    """What was written, at the ops of the walk; ``strays`` are nodes with products that no op of the walk is."""

    def __init__(self, ops: Sequence[Op], edges: Graph, nodes: Sequence[ExecutedNode]) -> None:
        self._ops = {op.id: op for op in ops}
        self._edges = edges
        self._nodes = nodes
        self._own: dict[str, ExecutedNode] = {}
        self._inside: dict[str, list[Op]] = {}
        for op in ops:
            for call in op.within if is_product(op) else ():
                self._inside.setdefault(call, []).append(op)
        self.strays: list[ExecutedNode] = []
        self._runs: dict[str, list[ExecutedNode]] = {}
        self._unpadded: dict[str, list[list[int]]] = {}
        self._compiled: set[str] = set()
        self._place()

    def _place(self) -> None:
        left = []
        for node in self._nodes:
            op = self._find_op(node.name)
            if op is not None and is_product(op) and op.id not in self._runs:
                self._runs[op.id] = [node]
                self._pads(node, op)
            else:
                left.append((node, op))
        for node, op in left:
            fused = self._find_product(node, op)
            if fused is not None:
                self._runs[fused.id] = [node]
                self._pads(node, fused)
            elif op is not None and op.op in CALLS and op.id in self._inside:
                self._place_compiled(node, self._inside[op.id])
            elif node.lines:
                self.strays.append(node)

    def _find_op(self, name: str) -> Op | None:
        """The op of a node's name; of a rewritten node's, of the name that it had."""
        id = canonical(name)
        return self._ops.get(id) or self._ops.get(_REWRITTEN.sub("", id))

    def _find_product(self, node: ExecutedNode, op: Op | None) -> Op | None:
        """The product before the op whose name a fused node has: the nearest one of its type that no other node is."""
        if op is None or op.op in CALLS:
            return None
        kind = _KIND.sub("", node.kind)
        for id in self._edges.before(op.id) if kind != node.kind else ():
            found = self._ops.get(id)
            if (
                found is not None
                and is_product(found)
                and kind in (found.op, found.op + "WithBias")
                and id not in self._runs
            ):
                return found
        return None

    def _pads(self, node: ExecutedNode, op: Op) -> None:
        """A node that pads its data, too, has the shape before that."""
        found = _KIND.match(node.kind)
        if found is not None and found[1]:
            before = (self._ops.get(id) for id in self._edges.before(op.id))
            pad = next((each for each in before if each is not None and each.op in PADS), None)
            first = None if pad is None else self._edges.padding(pad.id)
            if pad is not None and first is not None:
                self._unpadded[op.id] = [[size or 0 for size in pad.inputs[0].shape or ()], first]

    def _place_compiled(self, node: ExecutedNode, inside: list[Op]) -> None:
        """Products of a call that is compiled as a whole: each is of the op that it can be of, and the rest is of none."""
        self._compiled.update(op.id for op in inside if node.calls)
        rest: dict[str, list[Any]] = dict(node.products)
        for op in inside:
            own = {text: taken for text, lines in rest.items() if (taken := _part(op, lines, len(inside)))}
            if own:
                self._runs[op.id] = [node._replace(lines={text: node.lines[text] for text in own}, products=own)]
            rest = {text: _without(lines, own.get(text, [])) for text, lines in rest.items()}
        left = {text: lines for text, lines in rest.items() if lines}
        if left:
            self.strays.append(node._replace(lines={text: node.lines[text] for text in left}, products=left))

    def ops(self) -> Iterator[Op]:
        """The ops of the walk, each product with what was written and as often as it ran."""
        for op in self._ops.values():
            if not is_product(op):
                yield op
                continue
            if op.id not in self._runs and op.id in self._compiled:
                yield op
            elif op.id not in self._runs:
                yield op._replace(attrs=dict(op.attrs, **{REMOVED: True}))
            if op.id in self._unpadded:
                op = op._replace(attrs=dict(op.attrs, **{UNPADDED: self._unpadded[op.id]}))
            for node in self._runs.get(op.id, ()):
                yield from _runs(op, node)


def _runs(op: Op, node: ExecutedNode) -> Iterator[Op]:
    for text, calls in node.lines.items():
        yield op._replace(calls=calls, attrs=dict(op.attrs, **{PRODUCTS: node.products[text]}))
    silent = node.calls - sum(node.lines.values())
    if silent > 0:
        yield op._replace(calls=silent)


ALIKE: tuple[Callable[[Product], Any], ...] = (
    lambda _: (),
    lambda product: product.sizes,
    lambda product: (product.sizes.get("n"), product.sizes.get("k")),
    lambda product: (product.sizes.get("m"), product.sizes.get("k")),
)
"""What the lines of one op have in common: all of a call, those of one size, and those that one side of a matrix was cut into."""


def _part(op: Op, lines: list[Any], ops: int) -> list[Any]:
    """Those of the lines that are just the products of the op, which is one of ``ops``; none if no such lines are."""
    for alike in ALIKE:
        groups: dict[str, list[Any]] = {}
        for line in lines:
            groups.setdefault(repr(alike(Product(*line))), []).append(line)
        for group in groups.values():
            for equal in range(1, ops + 1):  # ops of one size share a group
                part = _share(group, equal)
                products = products_of(op._replace(attrs={PRODUCTS: part}))
                if part and (agrees(op, products) or with_zeros(op, products)):
                    return part
    return []


def _share(lines: list[Any], parts: int) -> list[Any]:
    """One of ``parts`` equal parts of the lines; none if there are no such parts."""
    counts = Counter(map(repr, lines))
    if any(count % parts for count in counts.values()):
        return []
    left = Counter({text: count // parts for text, count in counts.items()})
    taken = []
    for line in lines:
        left[repr(line)] -= 1
        if left[repr(line)] >= 0:
            taken.append(line)
    return taken


def _without(lines: list[Any], taken: list[Any]) -> list[Any]:
    """The lines that are not taken."""
    left = Counter(map(repr, taken))
    rest = []
    for line in lines:
        left[repr(line)] -= 1
        if left[repr(line)] < 0:
            rest.append(line)
    return rest
