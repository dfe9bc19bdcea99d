"""The counter mmengine, its get_model_complexity_info: a fork of fvcore's FlopCountAnalysis."""

from ....core.records import MAC
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "mmengine",
        __name__,
        MAC,
        "mmengine's get_model_complexity_info: operators of a TorchScript trace",
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
