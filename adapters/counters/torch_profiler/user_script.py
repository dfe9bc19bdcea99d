"""Source of the shortest user program for torch.profiler; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch

{model}
cpu = [torch.profiler.ProfilerActivity.CPU]
with torch.no_grad(), torch.profiler.profile(activities=cpu, with_flops=True, record_shapes=True) as profiler:
    net(x)
reported = sum(event.flops or 0 for event in profiler.events())
"""
TABLE = "torch/csrc/profiler/util.cpp (computeFlops)"
AFTER = {
    "MultiheadAttention": "torch.backends.mha.set_fastpath_enabled(False)  # attention op by op, as it is counted here"
}
