"""The counter tf_libraries: products that oneDNN, TensorFlow's math library on the CPU, writes into its log."""

from ....core.records import MAC
from .. import framework_counter

COUNTERS = (
    framework_counter(
        "tf_libraries",
        __name__,
        MAC,
        "the log of oneDNN in TensorFlow: the products that it was asked for",
        framework="tf",
        versions_key="tensorflow",
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
