"""The counter wandb, Weights & Biases' get_flops of a Keras model: tf.profiler on the frozen function of one sample."""

from ....core.records import FLOP
from .. import package_counter

COUNTERS = (
    package_counter(
        "wandb",
        __name__,
        FLOP,
        "Weights & Biases: WandbCallback.get_flops of a Keras 2 model, one sample, before it divides by 2 x 10^9",
        framework="tf",
        title="W&B's get_flops",
        checked=("0.12.21", "0.27.0"),
        requirements=(
            "wandb==0.27.0",
            # What it imports.
            "gitpython==3.1.45",
            "gitdb==4.0.12",
            "smmap==5.0.2",
            "sentry-sdk==2.42.0",
            "pydantic==2.12.3",
            "pydantic-core==2.41.4",
            "annotated-types==0.7.0",
            "typing-inspection==0.4.2",
            # The newest TensorFlow with Keras 2, and the packages that it needs in other versions than the newest.
            "tensorflow-cpu==2.15.1",
            "tensorflow-estimator==2.15.0",
            "keras==2.15.0",
            "ml-dtypes==0.3.2",
            "numpy==1.26.4",
            "protobuf==4.25.9",
            "wrapt==1.14.2",
        ),
    ),
)
