"""ptflops: hooks and patched functions, or ops at the dispatcher. Python 3.6, as every folder's statement."""

from ....core.counter import Counter
from ....core.records import MAC


def _backend(name, summary, blind):
    # type: (str, str, str) -> Counter
    return Counter(
        name="ptflops@" + name,
        module=__name__,
        framework="torch",
        unit=MAC,
        package="ptflops",
        distribution="ptflops",
        versions_key="ptflops",
        summary=summary,
        default=False,
        blind=blind,
        title="ptflops (%s)" % name,
    )


COUNTERS = (
    _backend(
        "pytorch", "get_model_complexity_info: hooks and patched functions, per sample", "runs the forward pass alone"
    ),
    _backend("aten", "get_model_complexity_info(backend='aten'): ops at the dispatcher", "runs the forward pass alone"),
)
