"""Source of the shortest user program for wandb; ``reconcile counter reproduce`` fills in the model.

It calls the callback's method without a run. The method gives FLOPs / (2 * 10^9); the program multiplies that back.
"""

PROGRAM = """\
import tensorflow as tf
from wandb.integration.keras.keras import WandbCallback

{model}
callback = WandbCallback.__new__(WandbCallback)  # its constructor needs a run
callback.model = net
reported = round(callback.get_flops() * 2 * 10**9)
"""
TABLE = "tensorflow/python/profiler/internal/flops_registry.py"
