"""Source of the shortest user program for keras-flops; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import tensorflow as tf
from keras_flops import get_flops

{model}
reported = get_flops(net, batch_size=x.shape[0])
"""
TABLE = "tensorflow/python/profiler/internal/flops_registry.py, keras_flops/flops_registory.py"
