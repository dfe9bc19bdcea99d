"""The counter tf_libraries: products that oneDNN, TensorFlow's math library on the CPU, writes into its log."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="tf_libraries",
        module=__name__,
        framework="tf",
        unit=MAC,
        package="",
        distribution="",
        versions_key="tensorflow",
        summary="the log of oneDNN in TensorFlow: the products that it was asked for",
        default=False,
        blind="",
        title="log of oneDNN in TensorFlow",
        leads=("witness",),
        variables=(
            ("TF_ENABLE_ONEDNN_OPTS", "1"),
            ("ONEDNN_VERBOSE", "1"),
            ("TF_CPP_VMODULE", "executor=1"),
            ("TF_CPP_MIN_LOG_LEVEL", "0"),
            ("TF_NUM_INTEROP_THREADS", "1"),
        ),
    ),
)
