"""ultralytics-thop's thop.profile: rules for classes of modules and for functions that multiply matrices. Python 3.6."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="ultralytics-thop",
        module=__name__,
        framework="torch",
        unit=MAC,
        package="thop",
        distribution="ultralytics-thop",
        versions_key="ultralytics-thop",
        summary="ultralytics-thop's thop.profile: hooks on modules of known classes, and functions that multiply matrices",
        default=False,
        blind="sees the forward pass only",
        title="thop.profile (ultralytics-thop)",
        requirements=("ultralytics-thop==2.2.3",),
    ),
)

FUNCTIONS = "functional"
"""The last part of the name of an entry that holds the counts of functions, after the path of the module that called them."""


def entry_of(layer):
    # type: (str) -> str
    """The entry of the functions that this module calls."""
    return "%s|%s" % (layer, FUNCTIONS)
