"""ultralytics-thop's thop.profile: rules for classes of modules and for functions that multiply matrices. Python 3.6."""

from ....core.counter import Counter
from ....core.records import MAC

GET_FLOPS = "ultralytics-thop@get_flops"
"""The number that the package ultralytics prints: one small image, multiplied by the area."""


def _counter(name, summary, title):
    # type: (str, str, str) -> Counter
    return Counter(
        name=name,
        module=__name__,
        framework="torch",
        unit=MAC,
        package="thop",
        distribution="ultralytics-thop",
        versions_key="ultralytics-thop",
        summary=summary,
        default=False,
        blind="sees the forward pass only",
        title=title,
        requirements=("ultralytics-thop==2.2.3",),
    )


COUNTERS = (
    _counter(
        "ultralytics-thop",
        "ultralytics-thop's thop.profile: hooks on modules of known classes, and functions that multiply matrices",
        "thop.profile (ultralytics-thop)",
    ),
    _counter(
        GET_FLOPS,
        "the same on an image of one stride, multiplied by the area, as get_flops of ultralytics did",
        "ultralytics' get_flops",
    ),
)

FUNCTIONS = "functional"
"""The last part of the name of an entry that holds the counts of functions, after the path of the module that called them."""


def entry_of(layer):
    # type: (str) -> str
    """The entry of the functions that this module calls."""
    return "%s|%s" % (layer, FUNCTIONS)
