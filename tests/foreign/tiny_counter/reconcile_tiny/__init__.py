"""The counter `tiny`, for reconcile."""

from reconcile.adapters.counters import torch_counter

COUNTERS = torch_counter(
    name="tiny", module=__name__, unit="MAC", summary="tiny: Linear and Conv2d", blind="sees the forward pass only"
)
