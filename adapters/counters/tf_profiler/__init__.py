"""The counters tf.profiler@*: its float_operation count, called in three ways on TensorFlow 2, and by published recipes.

Python 3.6.
"""

from typing import Any

from ....core.counter import Counter
from ....core.records import FLOP
from .. import FORWARD_ONLY, framework_counter


def _counter(variant: str, summary: str, blind: str = "", **more: Any) -> Counter:
    return framework_counter(
        "tf.profiler@" + variant,
        __name__,
        FLOP,
        summary,
        blind,
        framework="tf",
        versions_key="tensorflow",
        checked=("1.12.0", "2.21.0"),
        **more,
    )


def _recipe(variant: str, summary: str) -> Counter:
    """One that builds the model in its own way."""
    return _counter(variant, summary, FORWARD_ONLY, recipe=variant)


COUNTERS = (
    _counter(
        "function",
        "tf.profiler on the concrete function's graph, not frozen",
        default=True,
        title="tf.profiler on the concrete function",
    ),
    _counter(
        "frozen",
        "tf.profiler on the frozen function's graph, loops lowered",
        "needs a graph whose variables are constants, and a training step writes them",
        default=True,
        title="tf.profiler on the frozen function",
        leads=("call",),
    ),
    _counter(
        "runmeta",
        "tf.profiler on the frozen graph with one run's metadata",
        default=True,
        title="tf.profiler with one run's metadata",
    ),
    _recipe("session", "tf.profiler on a v1 session's graph, initialisers and all"),
    _recipe("batch_none", "tf.profiler on a v1 session's graph of the model with its batch left open (None)"),
    _recipe("built_twice", 'the same with the model built a second time and its gradients: "backward" by subtraction'),
    _recipe(
        "frozen_pb",
        "tf.profiler on a v1 session's graph frozen into a .pb file and read back with import_graph_def",
    ),
    _recipe("keras_flops", "keras-flops: tf.profiler on the frozen function's graph, always of a batch of 1"),
)
