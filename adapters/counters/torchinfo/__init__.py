"""The counter torchinfo, torchinfo.summary: weights and biases of leaf modules, times positions or the batch. Python 3.9."""

from ....core.records import MAC
from .. import torch_counter

ONE_LINE_SUMMARY = "torchinfo.summary: total_mult_adds, parameters times output positions"
FORWARD_PASS_ONLY = "runs a model in eval mode and without gradients, so it sees the forward pass only"
COUNTERS = (torch_counter("torchinfo", __name__, MAC, ONE_LINE_SUMMARY, FORWARD_PASS_ONLY, checked=("", "1.8.0")),)
