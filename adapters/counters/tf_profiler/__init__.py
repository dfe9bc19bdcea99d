"""The counters tf.profiler@*: its float_operation count, called in three ways on TensorFlow 2, and by published recipes.

Python 3.6.
"""

from typing import Tuple

from ....core.counter import Counter
from ....core.records import FLOP

FORWARD_ONLY = "sees the forward pass only"


def _counter(
    variant: str,
    summary: str,
    default: bool,
    blind: str,
    recipe: str = "",
    title: str = "",
    leads: Tuple[str, ...] = (),
) -> Counter:
    return Counter(
        name="tf.profiler@" + variant,
        module=__name__,
        framework="tf",
        unit=FLOP,
        package="",
        distribution="",
        versions_key="tensorflow",
        summary=summary,
        default=default,
        blind=blind,
        recipe=recipe,
        title=title,
        checked=("1.12.0", "2.21.0"),
        leads=leads,
    )


COUNTERS = (
    _counter(
        "function",
        "tf.profiler on the concrete function's graph, not frozen",
        default=True,
        blind="",
        title="tf.profiler on the concrete function",
    ),
    _counter(
        "frozen",
        "tf.profiler on the frozen function's graph, loops lowered",
        default=True,
        blind="needs a graph whose variables are constants, and a training step writes them",
        title="tf.profiler on the frozen function",
        leads=("call",),
    ),
    _counter(
        "runmeta",
        "tf.profiler on the frozen graph with one run's metadata",
        default=True,
        blind="",
        title="tf.profiler with one run's metadata",
    ),
    _counter(
        "session",
        "tf.profiler on a v1 session's graph, initialisers and all",
        default=False,
        blind=FORWARD_ONLY,
        recipe="session",
    ),
    _counter(
        "batch_none",
        "tf.profiler on a v1 session's graph of the model with its batch left open (None)",
        default=False,
        blind=FORWARD_ONLY,
        recipe="batch_none",
    ),
    _counter(
        "built_twice",
        'the same with the model built a second time and its gradients: "backward" by subtraction',
        default=False,
        blind=FORWARD_ONLY,
        recipe="built_twice",
    ),
    _counter(
        "frozen_pb",
        "tf.profiler on a v1 session's graph frozen into a .pb file and read back with import_graph_def",
        default=False,
        blind=FORWARD_ONLY,
        recipe="frozen_pb",
    ),
    _counter(
        "keras_flops",
        "keras-flops: tf.profiler on the frozen function's graph, always of a batch of 1",
        default=False,
        blind=FORWARD_ONLY,
        recipe="keras_flops",
    ),
)
