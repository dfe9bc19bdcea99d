"""Runs a model's TensorFlow graph with oneDNN's log on, and returns the ledger of the log, one entry per layer and op.

Environment variables turn the log on when this process starts (the counter's ``variables``), and no other counter runs in it. The
graph runs twice on the same input: TensorFlow rewrites it in the first run, and the log of the second one is read.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....core.records import MAC, Entry, Ledger, Op, Sighting
from ...shared.refusal import BeyondCounter
from ...tensorflow.graphs import graph as tf_graph
from ...tensorflow.model import TfModel
from ...tensorflow.training import TrainingModel
from ..cpu_libraries import PRODUCTS
from ..cpu_libraries.algorithm_notes import notes_of
from ..cpu_libraries.log_lines import Product
from . import COUNTERS
from .executor_log import ExecutedNode, nodes_in
from .logged_products import products_of
from .node_mapping import Graph, InferenceWalk, MappedNodes, TrainingWalk

LOG_CAME_LATE = (
    "oneDNN's log has to be on before TensorFlow starts: run it as `reconcile run --witness`, or with isolated=True, which give "
    "it a process of its own"
)
NOTHING_WRITTEN_HERE = (
    "TensorFlow's oneDNN writes nothing of a product here (a build or a CPU without it): nothing witnesses it"
)
MARK = b"reconcile: the run that is read begins\n"
SIDE = 64
"""Rows and columns of a product that oneDNN takes."""


def capture(counter: str, model: TfModel) -> Ledger:
    """Run the graph of a call or of a training step on the CPU, and record what oneDNN wrote. Raises BeyondCounter."""
    if any(os.environ.get(name) != value for name, value in COUNTERS[0].variables):
        raise BeyondCounter(LOG_CAME_LATE)
    if not _talks():
        raise BeyondCounter(NOTHING_WRITTEN_HERE)
    ops, edges = _walk_graph(model)
    placed = MappedNodes(ops, edges, _execute_model(model))
    ran = list(placed.ops())
    entries, total = entries_of(ran, placed.strays, model.layers())
    sightings = tuple(Sighting(op, _entry(op.layer, op.op)) for op in ran)
    notes = notes_of(sightings)
    return Ledger(
        counter, "tf", MAC, "cpu", model.versions(), total, tuple(entries), tuple(sightings), notes=tuple(notes)
    )


def _walk_graph(model: TfModel) -> tuple[list[Op], Graph]:
    """The ops of the graph as the tracer walks it, and its nodes."""
    outputs = tf_graph.graph_outputs(model.concrete.graph)
    walk = (
        TrainingWalk(model)
        if isinstance(model, TrainingModel)
        else InferenceWalk(model.layers(), model.count_runs, model.observed_shapes)
    )
    walk.edges = Graph()
    walk.trace(model.concrete.graph, outputs)
    return walk.ops, walk.edges


def _execute_model(model: TfModel) -> list[ExecutedNode]:
    import tensorflow as tf

    function = model.concrete
    given = [tf.constant(value) for value in model.feeds().values()]
    return _collect_lines(lambda: function(*given))


def _collect_lines(run: Callable[[], Any]) -> list[ExecutedNode]:
    """What the second of two runs writes. Both logs go to one file: oneDNN's is standard output, TensorFlow's standard error."""
    with tempfile.TemporaryFile() as file:
        with _written_to(file.fileno()):
            run()
            _flush()
            os.write(1, MARK)
            run()
            _flush()
        file.seek(0)
        lines = iter(file)
        for line in lines:
            if line.endswith(MARK):
                break
        return nodes_in(line.decode("utf-8", "replace") for line in lines)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)


@contextmanager
def _written_to(file: int) -> Iterator[None]:
    _flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    for number, _ in kept:
        os.dup2(file, number)
    try:
        yield
    finally:
        _flush()
        for number, before in kept:
            os.dup2(before, number)
            os.close(before)


def _talks() -> bool:
    """Whether a product is written here."""
    import tensorflow as tf

    ones = tf.ones((SIDE, SIDE))
    return any(
        node.lines for node in _collect_lines(tf.function(lambda: tf.matmul(ones, ones)).get_concrete_function())
    )


def _entry(layer: str, op: str) -> str:
    return f"{layer}|{op}"


def entries_of(ran: Sequence[Op], strays: Sequence[ExecutedNode], layers: Any) -> tuple[tuple[Entry, ...], int]:
    """An entry for each layer and op with lines, and for each node with lines that is no op of the walk; and their sum."""
    amounts: dict[tuple[str, str], list[int]] = {}
    for op in ran:
        if PRODUCTS in op.attrs:
            amount = sum(p.macs for p in products_of(op))
            _add(amounts, op.layer, op.op, amount * op.calls, op.calls)
    for node in strays:
        layer = layers.layer(tf_graph.canonical(node.name))
        for text, calls in node.lines.items():
            amount = sum(Product(*line).macs for line in node.products[text])
            _add(amounts, layer, f"{node.kind} ({node.name})", amount * calls, calls)
    entries = tuple(Entry(_entry(*key), *key, value, calls) for key, (value, calls) in amounts.items())
    return entries, sum(entry.value for entry in entries)


def _add(amounts: dict[tuple[str, str], list[int]], layer: str, op: str, value: int, calls: int) -> None:
    held = amounts.setdefault((layer, op), [0, 0])
    held[0] += value
    held[1] += calls
