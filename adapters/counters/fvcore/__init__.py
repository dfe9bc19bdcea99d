"""fvcore's FlopCountAnalysis: operators of a TorchScript trace. Python 3.6."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="fvcore",
        module=__name__,
        framework="torch",
        unit=MAC,
        package="fvcore",
        distribution="fvcore",
        versions_key="fvcore",
        summary="fvcore's FlopCountAnalysis: operators of a TorchScript trace",
        default=True,
        blind="sees the forward pass only",
        title="fvcore.nn.FlopCountAnalysis",
    ),
)
