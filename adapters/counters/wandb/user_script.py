"""The counter alone: the callback's method on a model, without a run. Its GFLOPs are FLOPs / 10^9 / 2."""

PROGRAM = """\
import tensorflow as tf
from wandb.integration.keras.keras import WandbCallback

{model}
callback = WandbCallback.__new__(WandbCallback)  # its constructor needs a run
callback.model = net
reported = round(callback.get_flops() * 2 * 10**9)
"""
TABLE = "tensorflow/python/profiler/internal/flops_registry.py"
