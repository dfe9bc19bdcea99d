"""Runs tf.profiler's float_operation count, in the three ways people call it on TensorFlow 2, and returns its ledger.

``@function``  the concrete function's graph;
``@frozen``    the graph of the frozen function (control flow lowered, pruned);
``@runmeta``   the frozen GraphDef imported into a graph of its own, with the RunMetadata of one traced run.

The recipes are published ways that build the model differently (session.py), and that of keras-flops.
Python 3.6, TensorFlow 1.12 and later.
"""

from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Union

from ....core.records import DEAD, FLOP, RUN_STATS_TRUNCATED, Entry, Ledger, Sighting
from ...shared.refusal import CannotCount
from ...tensorflow.graphs import graph as tf_graph
from ...tensorflow.graphs import liveness
from ...tensorflow.model import TfModel
from ...tensorflow.session import TfSession

STEP_STATS_CAP = 1 << 20
"""Step statistics stop silently at this many node records (core/common_runtime/step_stats_collector.cc, kMaxCollectedNodes)."""


def _profile(graph: Any, run_meta: Any) -> Dict[str, int]:
    """float_ops of every node of ``graph``: {node name: FLOPs}, by tf.profiler's scope view.

    A node with children in that view has its own float_ops, too.
    """
    profiler = tf_graph.v1().profiler
    builder = profiler.ProfileOptionBuilder(profiler.ProfileOptionBuilder.float_operation())
    options = builder.with_empty_output().build()
    return node_values(profiler.profile(graph, run_meta=run_meta, cmd="scope", options=options))


def node_values(root: Any) -> Dict[str, int]:
    """float_ops of every node in the tree that the profiler's scope view returns."""
    flops: Dict[str, int] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.float_ops:
            flops[node.name] = int(node.float_ops)
        stack.extend(node.children)
    if sum(flops.values()) != root.total_float_ops:
        raise CannotCount(f"tf.profiler's nodes add up to {sum(flops.values())}, its total is {root.total_float_ops}")
    return flops


def _ledger(
    counter: str,
    graph: Any,
    outputs: List[Any],
    scopes: tf_graph.Scopes,
    run_meta: Any = None,
    notes: Any = (),
    roles: Optional[Dict[str, str]] = None,
) -> Ledger:
    return graph_ledger(counter, graph, outputs, scopes, _profile(graph, run_meta), _runs(run_meta), notes, roles)


def graph_ledger(
    counter: str,
    graph: Any,
    outputs: List[Any],
    scopes: tf_graph.Scopes,
    values: Dict[str, int],
    runs: Dict[str, int],
    notes: Any = (),
    roles: Optional[Dict[str, str]] = None,
) -> Ledger:
    """The ledger of a profiled graph: ``values`` are the float_ops of its nodes by name, ``runs`` how often each ran."""
    if roles is None:
        roles = liveness.roles(graph, outputs)
    entries: List[Entry] = []
    sightings: List[Sighting] = []
    for operation in sorted(graph.get_operations(), key=lambda o: str(o.name)):  # the converter's order varies
        name = operation.name
        id = tf_graph.canonical(name)
        layer = scopes.layer(name)
        # A node that did not run keeps its static count (tensorflow/core/profiler/internal/tfprof_node.h, float_ops).
        calls = runs.get(name) or 1
        if name in values:
            entries.append(Entry(id, layer, operation.type, values[name], calls))
        if operation.type not in tf_graph.PLUMBING:
            op = tf_graph.op_record(operation, id, layer, calls)
            sightings.append(Sighting(op, id, roles.get(name, DEAD)))
    if len(entries) != len(values):
        unknown = sorted(set(values) - {o.name for o in graph.get_operations()})
        raise CannotCount(f"tf.profiler reports nodes that are not in the graph: {unknown[:5]}")
    return Ledger(
        counter, "tf", FLOP, "graph", {}, sum(values.values()), tuple(entries), tuple(sightings), notes=tuple(notes)
    )


def _runs(run_meta: Any) -> Dict[str, int]:
    runs: Dict[str, int] = Counter()
    if run_meta is not None:
        for device in run_meta.step_stats.dev_stats:
            for stats in device.node_stats:
                runs[stats.node_name] += 1
    return runs


def function(model: TfModel) -> Ledger:
    """Ledger of tf.profiler on the concrete function's graph, not frozen."""
    graph = model.concrete.graph
    return _ledger("tf.profiler@function", graph, tf_graph.graph_outputs(graph), model.layers())


def frozen(model: TfModel) -> Ledger:
    """Ledger of tf.profiler on the frozen function's graph, control flow lowered and pruned."""
    graph = model.frozen.function.graph
    return _ledger("tf.profiler@frozen", graph, tf_graph.graph_outputs(graph), tf_graph.Scopes(model.scopes))


def keras_flops(model: TfModel) -> Ledger:
    """Ledger of keras-flops' get_flops: the frozen function's graph of a batch of 1, whatever batch the model has."""
    return frozen(model)._replace(counter="tf.profiler@keras_flops")


def runmeta(model: TfModel) -> Ledger:
    """Ledger of tf.profiler on the imported frozen GraphDef, with the metadata of one traced run on the CPU."""
    graph, outputs, run_meta = model.traced_run()
    notes = list(model.run_notes)
    if sum(_runs(run_meta).values()) >= STEP_STATS_CAP:
        notes.append(RUN_STATS_TRUNCATED)
    return _ledger("tf.profiler@runmeta", graph, outputs, model.layers(), run_meta, notes)


def session(model: TfSession) -> Ledger:
    """Ledger of tf.profiler on a v1 session graph, however it was built: initialisers, random input and all."""
    scopes = tf_graph.Scopes(model.scopes)
    built = model.built
    return _ledger("tf.profiler@" + model.recipe, built.graph, built.outputs, scopes, roles=model.roles())


def frozen_pb(model: Union[TfModel, TfSession]) -> Ledger:
    """Ledger of tf.profiler on the session graph frozen into a .pb file and read back with import_graph_def."""
    if isinstance(model, TfModel):  # the file itself: the other counters take the function that TfModel made from it
        graph, inputs, outputs = model.in_file()
        roles = liveness.roles(graph, outputs, inputs)
        return _ledger("tf.profiler@frozen_pb", graph, outputs, tf_graph.Scopes(model.scopes), roles=roles)
    graph, built = model.frozen(), model.built
    outputs = [graph.get_tensor_by_name(tensor.name) for tensor in built.outputs]
    names = {operation.name for operation in graph.get_operations()}
    inputs = [graph.get_tensor_by_name(tensor.name) for tensor in built.inputs if tensor.op.name in names]
    roles = liveness.roles(graph, outputs, inputs)
    return _ledger("tf.profiler@frozen_pb", graph, outputs, tf_graph.Scopes(model.scopes), roles=roles)


CAPTURES: Dict[str, Callable[[Any], Ledger]] = {
    "tf.profiler@function": function,
    "tf.profiler@frozen": frozen,
    "tf.profiler@runmeta": runmeta,
    "tf.profiler@session": session,
    "tf.profiler@batch_none": session,
    "tf.profiler@built_twice": session,
    "tf.profiler@frozen_pb": frozen_pb,
    "tf.profiler@keras_flops": keras_flops,
}


def capture(counter: str, model: Any) -> Ledger:
    """The ledger of one of this folder's counters."""
    return CAPTURES[counter](model)._replace(versions=model.versions())
