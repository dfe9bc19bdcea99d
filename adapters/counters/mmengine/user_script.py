"""Source of the shortest user program for mmengine's counter; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
from mmengine.analysis import get_model_complexity_info

{model}
reported = int(get_model_complexity_info(net, inputs=(x,), show_table=False, show_arch=False)["flops"])
"""
TABLE = "mmengine/analysis/complexity_analysis.py:20"
