"""Runs mmengine's FlopAnalyzer, a fork of fvcore's, whose total is the ``flops`` of get_model_complexity_info.

``graph_ledger`` of fvcore/capture.py makes the ledger.
"""

from ....core.records import Ledger
from ...pytorch.model import TorchModel
from ..fvcore.capture import graph_ledger


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run FlopAnalyzer on a fresh module (eval, no_grad) on ``model.device``."""
    from mmengine.analysis import FlopAnalyzer, jit_analysis

    return graph_ledger(counter, model, FlopAnalyzer, jit_analysis)
