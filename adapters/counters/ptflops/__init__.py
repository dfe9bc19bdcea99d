"""ptflops: hooks and patched functions, or ops at the dispatcher. Python 3.6, as every folder's statement."""

from ....core.counter import Counter
from ....core.records import MAC

AVERAGE = "ptflops.average"
"""Not an op: the division by the batch. ``modules`` is what the hooks counted, ``functions`` and ``products`` what the patched
functions of torch.nn.functional and those of torch and its tensors counted, ``batch`` what divides the first of them."""
COUNTERS = tuple(
    Counter(
        name="ptflops@" + backend,
        module=__name__,
        framework="torch",
        unit=MAC,
        package="ptflops",
        distribution="ptflops",
        versions_key="ptflops",
        summary="ptflops, backend %s: %s" % (backend, how),
        default=False,
        blind="runs the forward pass alone",
        title="ptflops (%s)" % backend,
    )
    for backend, how in (
        ("pytorch", "hooks on modules and patched functions"),
        ("aten", "ops at the dispatcher"),
    )
)
