"""Source of the shortest user program for xformers; ``reconcile counter reproduce`` fills in the model.

It does what xformers' profiler does with the events of a GPU's run (xformers/profiler/profiler.py:117).
"""

from ..torch_profiler.user_script import AFTER as AFTER

PROGRAM = """\
import torch
from xformers.profiler.profile_analyzer import AnalyzedTrace

{model}
cpu = [torch.profiler.ProfilerActivity.CPU]
with torch.no_grad(), torch.profiler.profile(activities=cpu, with_flops=True, record_shapes=True) as profiler:
    net(x)
found = AnalyzedTrace.from_profile(profiler.profiler.kineto_results.events())
reported = int(sum(found.compute_num_ops(dtype) for dtype in found.operations_per_dtype_fw))
"""
TABLE = "xformers/profiler/profile_analyzer.py:69"
