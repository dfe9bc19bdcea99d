"""The counters ultralytics-thop, its thop.profile, and ultralytics-thop@get_flops, which profiles a smaller image.

It has rules for classes of modules and for functions that multiply matrices. Python 3.9.
"""

from ....core.records import MAC
from .. import torch_counter

GET_FLOPS = "ultralytics-thop@get_flops"
"""The number that the package ultralytics prints: one small image, multiplied by the area."""

_PROFILE = torch_counter(
    "ultralytics-thop",
    __name__,
    MAC,
    "ultralytics-thop's thop.profile: hooks on modules of known classes, and functions that multiply matrices",
    package="thop",
    title="thop.profile (ultralytics-thop)",
    requirements=("ultralytics-thop==2.2.3",),
)
COUNTERS = (
    _PROFILE,
    _PROFILE._replace(
        name=GET_FLOPS,
        summary="the same on an image of one stride, multiplied by the area, as get_flops of ultralytics did",
        title="ultralytics' get_flops",
    ),
)

FUNCTIONS = "functional"
"""The last part of the name of an entry that holds the counts of functions, after the path of the module that called them."""


def entry_of(layer: str) -> str:
    """The entry of the functions that this module calls."""
    return f"{layer}|{FUNCTIONS}"
