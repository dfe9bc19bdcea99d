"""mmengine's get_model_complexity_info: a fork of fvcore's FlopCountAnalysis. Python 3.6."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="mmengine",
        module=__name__,
        framework="torch",
        unit=MAC,
        package="mmengine",
        distribution="mmengine",
        versions_key="mmengine",
        summary="mmengine's get_model_complexity_info: operators of a TorchScript trace",
        default=False,
        blind="sees the forward pass only",
        title="mmengine.analysis.get_model_complexity_info",
        # Its import needs these; opencv and matplotlib are imported by other parts of mmengine only.
        requirements=(
            "mmengine==0.10.7",
            "addict==2.4.0",
            "yapf==0.43.0",
            "platformdirs>=4",
            "tomli>=2",
            "termcolor>=2",
            "pyyaml>=6",
        ),
    ),
)
