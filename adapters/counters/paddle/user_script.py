"""Source of the shortest user program for paddle.flops; ``reconcile counter reproduce`` fills in the model.

X2Paddle writes the code of a layer, and paddle.flops counts that.
"""

PROGRAM = """\
import sys
import tempfile

import torch
import paddle
from x2paddle.convert import pytorch2paddle

{model}
folder = tempfile.mkdtemp()
pytorch2paddle(net, folder, jit_type="trace", input_examples=[x], disable_feedback=True)
sys.path.insert(0, folder)
import x2paddle_code

layer = next(made for made in vars(x2paddle_code).values() if isinstance(made, type))
reported = int(paddle.flops(layer(), list(x.shape)))
"""
TABLE = "paddle/hapi/dynamic_flops.py:214"
