"""The counter alone, as its users run it."""

PROGRAM = """\
import tensorflow as tf
from keras_flops import get_flops

{model}
reported = get_flops(net, batch_size=x.shape[0])
"""
TABLE = "tensorflow/python/profiler/internal/flops_registry.py, keras_flops/flops_registory.py"
