"""Source of the shortest user program for Ultralytics' use of thop; ``reconcile counter reproduce`` fills in the model.

get_flops makes its image itself, of the size of one stride.
"""

PROGRAM = {
    "ultralytics-thop": """\
import thop
import torch

{model}
macs, _ = thop.profile(net, (x,), verbose=False)
reported = int(macs)
""",
    "ultralytics-thop@get_flops": """\
import thop
import torch

{model}
height, width = x.shape[2:]
try:  # an image of one stride on each side, multiplied by the area
    stride = max(int(net.stride.max()), 32) if hasattr(net, "stride") else 32
    macs, _ = thop.profile(net, (x.new_zeros(1, x.shape[1], stride, stride),), verbose=False)
    reported = int(macs * height / stride * width / stride)
except Exception:  # or one of the full size, if the model cannot run that
    macs, _ = thop.profile(net, (x,), verbose=False)
    reported = int(macs)
""",
}
TABLE = "thop/profile.py:42"
PLACES = {
    "extrapolated": "ultralytics/utils/torch_utils.py (get_flops, before pull request 25468): the count times the area"
}
BATCH = {"ultralytics-thop@get_flops": 1}
