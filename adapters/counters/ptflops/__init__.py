"""The counters ptflops@*, one for each backend: hooks and patched functions ("pytorch"), or ops at the dispatcher ("aten")."""

from ....core.records import MAC
from .. import torch_counter

AVERAGE = "ptflops.average"
"""Not an op: the division by the batch. ``modules`` is what the hooks counted, ``functions`` and ``products`` what the patched
functions of torch.nn.functional and those of torch and its tensors counted, ``batch`` what divides the first of them."""
BACKENDS = {"pytorch": "hooks on modules and patched functions", "aten": "ops at the dispatcher"}
COUNTERS = tuple(
    torch_counter(
        "ptflops@" + backend,
        __name__,
        MAC,
        f"ptflops, backend {backend}: {how}",
        "runs the forward pass alone",
        title=f"ptflops ({backend})",
        checked=("", "0.7.5"),
    )
    for backend, how in BACKENDS.items()
)
