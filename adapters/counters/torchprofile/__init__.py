"""The counter torchprofile, its profile_macs: operators of a TorchScript trace, multiply-adds and some elementwise work."""

from ....core.records import MAC
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "torchprofile",
        __name__,
        MAC,
        "torchprofile's profile_macs: operators of a TorchScript trace",
        title="torchprofile.profile_macs",
        requirements=("torchprofile==0.1.0",),
        checked=("0.1.0", "0.1.0"),
    ),
)
