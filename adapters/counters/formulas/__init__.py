"""The counters formula:*, published closed-form FLOP formulas of language models such as 6 N, each of them a counter."""

from ....core.counter import Counter
from ....core.records import FLOP
from .table import FORMULAS

COUNTERS = tuple(
    Counter(
        name=f"formula:{name}",
        module=__name__,
        framework="torch",
        unit=FLOP,
        package="",
        distribution="",
        versions_key="torch",
        summary=formula.summary,
        default=False,
        blind="",
        quoted=True,
    )
    for name, formula in FORMULAS.items()
)
