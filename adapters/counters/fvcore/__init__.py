"""The counter fvcore, its FlopCountAnalysis: it counts the operators of a TorchScript trace. Python 3.8."""

from ....core.records import MAC
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "fvcore",
        __name__,
        MAC,
        "fvcore's FlopCountAnalysis: operators of a TorchScript trace",
        default=True,
        title="fvcore.nn.FlopCountAnalysis",
        checked=("", "0.1.5.post20221221"),
    ),
)
