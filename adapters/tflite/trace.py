"""The trace of a TensorFlow Lite model: its operators in the order in which they run, with their shapes.

Nothing runs. Constants give the turns of a loop and the branch that is taken; if they do not, the trace is incomplete and says
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.records import UNENTERED, Op, Shape, Tensor, Trace
from ...products.files.model_file import FileError
from .load import Graph, Model, Operator, Value, pick, refuse_damage
from .shapes import compute, infer, merge

MOST_TURNS = 1000
"""The most turns of a loop that are followed."""
MOST_OPS = 200_000
"""The most operators of a trace, those of graphs that are called several times each time: a large language model has fewer than a
tenth of them."""


def versions() -> dict[str, str]:
    """Version of TensorFlow, whose schema and shape functions are used."""
    import tensorflow as tf

    return {"tensorflow": str(tf.__version__)}


CALLEES = {
    "CALL": ("subgraph",),
    "STABLEHLO_COMPOSITE": ("decomposition_subgraph_index",),
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
}
"""Operators that call graphs -> the attributes that say which."""


def choose(items: Sequence[Any], indices: Sequence[int]) -> list[Any]:
    """The items of these indices, but of those that are left out."""
    return [pick(items, index) for index in indices if index != -1]


class State:
    """What is known of the tensors of a graph while its operators are followed: their shapes, and values of small constants."""

    def __init__(self, graph: Graph, shapes: Sequence[Shape], values: Sequence[Any]) -> None:
        self.graph = graph
        self.shapes = [value.shape for value in graph.values]
        self.values = [value.constant for value in graph.values]
        for index, shape, value in zip(graph.inputs, shapes, values, strict=True):
            self.shapes[index] = merge(pick(self.shapes, index), shape)
            self.values[index] = value

    def fold(self, operator: Operator) -> None:
        """Find the values of what an operator makes."""
        values, shapes = choose(self.values, operator.inputs), choose(self.shapes, operator.inputs)
        made = compute(operator, values, shapes, choose(self.graph.values, operator.outputs))
        for index, value in zip(operator.outputs, made, strict=True):
            self.values[index] = value

    def infer(self, operator: Operator) -> None:
        """Find the shapes of what an operator makes."""
        read, shapes, values = (
            choose(items, operator.inputs) for items in (self.graph.values, self.shapes, self.values)
        )
        made = infer(operator, read, shapes, values, choose(self.shapes, operator.outputs))
        for index, shape in zip(operator.outputs, made, strict=True):
            self.shapes[index] = shape


class Tracer:
    """Follows a graph and the graphs that it calls."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ops: list[Op] = []
        self.untaken: list[str] = []

    def walk(self, state: State, prefix: str, calls: int, within: tuple[str, ...], open_: tuple[int, ...]) -> None:
        """Record every operator of a graph, which runs ``calls`` times; ``open_`` are the graphs that it is inside of."""
        taken: set[str] = set()
        for number, operator in enumerate(state.graph.operators):
            state.fold(operator)
            state.infer(operator)
            name = next((pick(state.graph.values, index).name for index in operator.outputs), "")
            id = prefix + (name if name and name not in taken else f"{name or operator.name}#{number}")
            taken.add(name)
            self.ops.append(_record(operator, id, name, state, calls, within))
            if len(self.ops) > MOST_OPS:
                raise FileError(f"{self.model.where} runs more than {MOST_OPS:,} operators: convert a smaller model.")
            if operator.name in CALLEES:
                self.enter(operator, id, state, calls, (*within, id), open_)

    def enter(
        self, operator: Operator, id: str, state: State, calls: int, within: tuple[str, ...], open_: tuple[int, ...]
    ) -> None:
        """Record what a call, a branch or a loop runs, or why that is not known."""
        callees = [operator.attrs[name] for name in CALLEES[operator.name]]
        graphs = [pick(self.model.graphs, index) for index in callees]
        if set(callees) & set(open_):
            raise FileError(f"{self.model.where} is damaged: a graph in it calls itself.")
        shapes, values = choose(state.shapes, operator.inputs), choose(state.values, operator.inputs)
        times: list[int] | None = [1]
        if operator.name == "IF":
            (chosen, *values), shapes = values, shapes[1:]
            times = None if chosen is None else [int(chosen.all()), 1 - int(chosen.all())]
        elif operator.name == "WHILE":
            shapes = settle(graphs[1], shapes)
            times = count_turns(graphs[0], graphs[1], shapes, values)
            values = [
                v if out == into else None
                for v, out, into in zip(values, graphs[1].outputs, graphs[1].inputs, strict=True)
            ]
        if times is None:
            question = "which branch runs" if operator.name == "IF" else "how often this loop runs"
            self.ops[-1].attrs[UNENTERED] = f"{question} is not constant"
            return
        for index, graph, count in zip(callees, graphs, times, strict=True):
            inner = f"{id}/{index}/"
            if not count:
                self.untaken += [f"{inner}{each.name}#{number}" for number, each in enumerate(graph.operators)]
                continue
            entered = State(graph, shapes, values)
            self.walk(entered, inner, calls * count, within, (*open_, *callees))
            results = choose(entered.shapes, graph.outputs)
        for output, shape in zip(operator.outputs, shapes if operator.name == "WHILE" else results, strict=True):
            state.shapes[output] = merge(state.shapes[output], shape)


def count_turns(condition: Graph, body: Graph, shapes: Sequence[Shape], values: Sequence[Any]) -> list[int] | None:
    """How often the condition and the body of a loop run; None if constants do not decide it within MOST_TURNS."""
    for turns in range(MOST_TURNS + 1):
        (goes_on,) = _fold_graph(condition, shapes, values)
        if goes_on is None:
            return None
        if not goes_on.all():
            return [turns + 1, turns]
        values = _fold_graph(body, shapes, values)
    return None


def _fold_graph(graph: Graph, shapes: Sequence[Shape], values: Sequence[Any]) -> list[Any]:
    """The values of a graph's outputs."""
    state = State(graph, shapes, values)
    for operator in graph.operators:
        state.fold(operator)
    return choose(state.values, graph.outputs)


def settle(body: Graph, shapes: list[Shape]) -> list[Shape]:
    """The sizes of a loop's tensors that are the same in every turn, of those that it starts with."""
    while True:
        state = State(body, shapes, [None] * len(shapes))
        for operator in body.operators:
            state.fold(operator)
            state.infer(operator)
        after = [_common(*pair) for pair in zip(shapes, choose(state.shapes, body.outputs), strict=True)]
        if after == shapes:
            return shapes
        shapes = after


def _common(before: Shape, after: Shape) -> Shape:
    """The sizes that both shapes have."""
    if before is None or after is None or len(before) != len(after):
        return None
    return tuple(size if size == other else None for size, other in zip(before, after, strict=True))


def _record(operator: Operator, id: str, name: str, state: State, calls: int, within: tuple[str, ...]) -> Op:
    inputs, outputs = (_tensors(state, indices) for indices in (operator.inputs, operator.outputs))
    attrs = dict(operator.attrs)
    if -1 in operator.inputs:
        attrs["places"] = [place for place, index in enumerate(operator.inputs) if index != -1]
    values: list[Value] = choose(state.graph.values, operator.inputs)
    if any(value.sparse for value in values):
        attrs["sparse"] = True
    if operator.name == "DEQUANTIZE" and values[0].scales:  # what makes it arithmetic on floating numbers
        inputs.append(Tensor((values[0].scales,), "float32"))
    layer = name.partition(";")[0].rpartition("/")[0].replace("/", ".")
    return Op(id, f"tflite.{operator.name}", layer, tuple(inputs), tuple(outputs), attrs, calls, "forward", within)


def _tensors(state: State, indices: Sequence[int]) -> list[Tensor]:
    """The types of these tensors; one that is quantised begins with q."""
    pairs = zip(choose(state.graph.values, indices), choose(state.shapes, indices), strict=True)
    return [Tensor(shape, f"{'q' if v.scales and 'int' in v.dtype else ''}{v.dtype}") for v, shape in pairs]


def trace(model: Model, notes: tuple[str, ...] = ()) -> Trace:
    """Trace of one call of a model with its inputs fixed."""
    tracer = Tracer(model)
    with refuse_damage(model.where):
        graph = model.graphs[model.main]
        tracer.walk(State(graph, model.shapes, [None] * len(graph.inputs)), "", 1, (), (model.main,))
    layers = tuple(dict.fromkeys(op.layer for op in tracer.ops))
    return Trace("tflite", versions(), "graph", tuple(tracer.ops), (), tuple(tracer.untaken), layers, notes)
