"""The counter keras_flops: tf.profiler on the frozen function of a Keras model, with three formulas of its own. Python 3.8."""

from ....core.records import FLOP
from .. import package_counter

COUNTERS = (
    package_counter(
        "keras_flops",
        __name__,
        FLOP,
        "keras-flops: get_flops of a Sequential or functional Keras model, on TensorFlow 2.12 or older",
        framework="tf",
        distribution="keras-flops",
        versions_key="keras-flops",
        title="keras-flops",
        requirements=(
            "keras-flops==0.1.2",
            # The newest TensorFlow with which it can be imported, and the packages that this TensorFlow needs in other versions
            # than the newest.
            "tensorflow-cpu==2.12.1",
            "tensorflow-estimator==2.12.0",
            "keras==2.12.0",
            "numpy==1.24.3",
            "protobuf==4.25.9",
            "gast==0.4.0",
            "wrapt==1.14.2",
        ),
    ),
)
