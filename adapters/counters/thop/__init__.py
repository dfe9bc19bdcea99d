"""The counter thop, thop.profile: hooks on modules of the classes that it knows. Python 3.8."""

from ....core.records import MAC
from .. import torch_counter

ONE_LINE_SUMMARY = "thop.profile: hooks on modules of known classes"
COUNTERS = (
    torch_counter(
        "thop",
        __name__,
        MAC,
        ONE_LINE_SUMMARY,
        default=True,
        title="thop.profile",
        checked=("", "0.1.1.post2209072238"),
        leads=("call",),
    ),
)
