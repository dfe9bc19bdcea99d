"""The rule of tf_libraries: an op counts the multiply-adds that the lines of oneDNN's log state for it."""

from __future__ import annotations

from ....core.records import Op
from ....work import Work
from ..cpu_libraries import PRODUCTS
from ..rulebook import RuleBook
from .logged_products import products_of

BOOK = RuleBook("tf_libraries", "tensorflow", {"onednn": "src/common/verbose.cpp"})


@BOOK.pattern(
    "an op with lines in the log",
    lambda op: PRODUCTS in op.attrs,
    source="onednn:1",
    formula="M N K of each line that oneDNN wrote",
)
def logged_work(op: Op) -> Work:
    """Multiply-adds of the lines."""
    return Work(mac=sum(p.macs for p in products_of(op)))
