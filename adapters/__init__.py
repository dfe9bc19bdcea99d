"""Counters: one folder each, with ``capture`` (beside the framework), ``rules`` and ``bridge`` (at home). Python 3.6."""

from typing import NamedTuple


class Counter(NamedTuple):
    """What is known of a counter before it runs. ``unit`` is what one multiply-add adds to its total: MAC 1, FLOP 2.

    ``recipe`` names another way of building the model than the framework's present one: such a counter has a trace of
    its own and runs only when asked for.  ``title`` is what to call the counter in print, where its name is ours.
    ``blind`` says why it cannot count a training step; '' where it can.
    """

    name: str
    framework: str
    unit: str
    folder: str
    summary: str
    recipe: str = ""
    title: str = ""
    blind: str = "sees the forward pass only"


COUNTERS = {
    counter.name: counter
    for counter in (
        Counter(
            "tf.profiler@function",
            "tf",
            "FLOP",
            "tf_profiler",
            "tf.profiler on the concrete function's graph, not frozen",
            title="tf.profiler on the concrete function",
            blind="",
        ),
        Counter(
            "tf.profiler@frozen",
            "tf",
            "FLOP",
            "tf_profiler",
            "tf.profiler on the frozen function's graph, loops lowered",
            title="tf.profiler on the frozen function",
            blind="needs a graph whose variables are constants, and a training step writes them",
        ),
        Counter(
            "tf.profiler@runmeta",
            "tf",
            "FLOP",
            "tf_profiler",
            "tf.profiler on the frozen graph with one run's metadata",
            title="tf.profiler on the frozen function with one run's metadata",
            blind="",
        ),
        Counter(
            "tf.profiler@session",
            "tf",
            "FLOP",
            "tf_profiler",
            "tf.profiler on a v1 session's graph, initialisers and all",
            "session",
        ),
        Counter(
            "tf.profiler@batch_none",
            "tf",
            "FLOP",
            "tf_profiler",
            "tf.profiler on a v1 session's graph of the model with its batch left open (None)",
            "batch_none",
        ),
        Counter(
            "tf.profiler@built_twice",
            "tf",
            "FLOP",
            "tf_profiler",
            'the same with the model built a second time and its gradients: "backward" by subtraction',
            "built_twice",
        ),
        Counter(
            "tf.profiler@frozen_pb",
            "tf",
            "FLOP",
            "tf_profiler",
            "tf.profiler on a v1 session's graph frozen into a .pb file and read back with import_graph_def",
            "frozen_pb",
        ),
        Counter(
            "tf.profiler@keras_flops",
            "tf",
            "FLOP",
            "tf_profiler",
            "keras-flops: tf.profiler on the frozen function's graph, always of a batch of 1",
            "keras_flops",
        ),
        Counter(
            "thop", "torch", "MAC", "thop", "thop.profile: hooks on modules of known classes", title="thop.profile"
        ),
        Counter(
            "fvcore",
            "torch",
            "MAC",
            "fvcore",
            "fvcore's FlopCountAnalysis: operators of a TorchScript trace",
            title="fvcore.nn.FlopCountAnalysis",
        ),
        Counter(
            "flop_counter",
            "torch",
            "FLOP",
            "flop_counter",
            "torch.utils.flop_counter: ops at the dispatcher",
            title="torch.utils.flop_counter",
            blind="",
        ),
    )
}
