"""Runs keras-flops' get_flops as its users do, and returns its ledger, from the nodes that tf.profiler counted meanwhile.

Python 3.8, TensorFlow 2.x.
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ....core.records import Ledger
from ...shared import nested
from ...shared.distribution import version_of
from ...shared.refusal import CannotCount
from ...tensorflow.graphs import graph as tf_graph
from ...tensorflow.model import TfModel, is_leaf
from ..tf_profiler.capture import graph_ledger, node_values

_registered: Dict[str, Any] = {}
"""The formulas that the import of keras_flops registers with TensorFlow, kept from the other counters of this process."""


@contextmanager
def _import_package() -> Iterator[Any]:
    """The package, whose formulas are registered within this block only. Raises CannotCount if TensorFlow is too new."""
    from tensorflow.python.framework import ops

    registry = ops._stats_registry._registry
    before = dict(registry)
    registry.update(_registered)
    try:
        try:
            import keras_flops
        except KeyError:
            raise CannotCount(
                "keras-flops registers a formula for AddV2 when it is imported, which TensorFlow 2.13 and later have already: "
                "the import ends in a KeyError; TensorFlow 2.12 is the newest with which it works, so add --environment "
                "keras_flops"
            ) from None
        yield keras_flops
    finally:
        _registered.update((name, formula) for name, formula in registry.items() if name not in before)
        registry.clear()
        registry.update(before)


@contextmanager
def _watch_profiler() -> Iterator[List[Tuple[Any, Any]]]:
    """Within this block, the graph and the result of every call of tf.profiler."""
    profiler = tf_graph.v1().profiler
    original = profiler.profile
    calls: List[Tuple[Any, Any]] = []

    def profile(graph: Any = None, **named: Any) -> Any:
        result = original(graph=graph, **named)
        calls.append((graph, result))
        return result

    profiler.profile = profile
    try:
        yield calls
    finally:
        profiler.profile = original


def batch_of(model: TfModel) -> int:
    """The batch that the model is called with. Raises CannotCount if get_flops would call it with other inputs."""
    net = model.called_model
    tensors = nested.leaves(model.arguments, is_leaf)
    inputs = getattr(net, "inputs", None)
    if not inputs or not tensors:
        raise CannotCount("get_flops takes a Sequential or functional Keras model, which knows its inputs")
    batch = int(tensors[0].shape[0]) if len(tensors[0].shape) else 1
    called = [tuple(int(size) for size in t.shape) for t in tensors]
    own = [(batch,) + tuple(i.shape[1:]) for i in inputs]
    if len(own) != len(called) or any(not _fits(*pair) for pair in zip(own, called)):
        raise CannotCount(f"get_flops calls the model with inputs of {own}, and the run with {called}")
    return batch


def _fits(own: Tuple[Any, ...], called: Tuple[int, ...]) -> bool:
    return len(own) == len(called) and all(a is None or a == b for a, b in zip(own, called))


def profiled_once(counter: str, model: TfModel, count: Callable[[], Any]) -> Tuple[Ledger, Any]:
    """The ledger of the only call of tf.profiler that ``count`` makes, and what ``count`` returns."""
    with _watch_profiler() as calls:
        returned = count()
    ((graph, root),) = calls
    outputs = tf_graph.graph_outputs(graph)
    ledger = graph_ledger(counter, graph, outputs, model.layers(), node_values(root), {})
    return ledger._replace(versions=model.versions()), returned


def capture(counter: str, model: TfModel) -> Ledger:
    """The ledger of one get_flops, with the batch of the run."""
    with _import_package() as keras_flops:
        batch = batch_of(model)
        ledger, total = profiled_once(
            counter, model, lambda: keras_flops.get_flops(model.called_model, batch_size=batch)
        )
    versions = dict(ledger.versions, **{"keras-flops": version_of("keras-flops", keras_flops)})
    return ledger._replace(total=int(total), versions=versions)
