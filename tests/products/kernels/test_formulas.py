"""The work of a product of blocks: that of a product of matrices, of which a compiled kernel does not show what masks discard."""

from __future__ import annotations

from reconcile.core.work import MASKED
from reconcile.work import Work, known_part, load, work_of
from tests.work.records_by_hand import make


def test_a_product_of_blocks() -> None:
    load()
    blocks = make("tl.dot", [(2, 16, 32), (2, 32, 8)], [(2, 16, 8)])
    product = Work(mac=2 * 16 * 32 * 8, accumulators=2 * 16 * 8)
    assert known_part(blocks)[:2] == (product, {MASKED})
    assert work_of(blocks._replace(attrs={MASKED: 3})).masked == 3
