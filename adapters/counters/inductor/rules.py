"""Rules of inductor's count_flops_fx: a node counts what flop_counter counts for its op, and no other node counts anything.

U = torch/_inductor/fx_utils.py of torch 2.13.0: a node is counted if its op is in flop_counter's registry (U:755), by running it
under that counter (U:728).  Unit FLOP.
"""

from __future__ import annotations

from ..flop_counter.rules import BOOK as FLOP_COUNTER
from ..flop_counter.rules import of_library
from ..rulebook import RuleBook
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family, COUNTERS[0].versions_key, {"U": "torch/_inductor/fx_utils.py"}, of_library=of_library
)
for _rule in FLOP_COUNTER.rules():
    BOOK.rule(_rule.op, source="U:728", formula=_rule.formula, versions=str(_rule.versions))(_rule.compute)
