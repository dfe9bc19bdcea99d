"""The counters formula:*, published closed-form FLOP formulas of language models such as 6 N, each of them a counter."""

from ....core.records import FLOP
from .. import framework_counter
from .table import FORMULAS

COUNTERS = tuple(
    framework_counter(f"formula:{name}", __name__, FLOP, formula.summary, quoted=True)
    for name, formula in FORMULAS.items()
)
