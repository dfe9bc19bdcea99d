"""W&B's get_flops has no formulas of its own: tf.profiler's have cases in tf_cases.py."""

FAMILIES = {"wandb": (("0.12.21", "0.27.0"), ())}
