"""The committed table of every counter on every pair: it is whole, nothing in it is open, and its page is made from it."""

from __future__ import annotations

from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery import training

from . import every_counter as table


def test_every_counter_has_a_row_for_every_pair() -> None:
    """A counter that the table does not know is new: `make counters` adds it, and nothing else fails until then."""
    rows = table.read()
    counters = {counter for counter, _ in rows}
    assert len(counters) >= 19
    assert [(c, pair) for c in sorted(counters) for pair in zoo_names() if (c, pair) not in rows] == []


def test_nothing_is_open() -> None:
    """Closed under every convention with every entry covered, or a reason why there is no number."""
    rows = table.read().values()
    assert [row for row in rows if row.state in table.CLOSED and row.open != "0"] == []
    assert [row for row in rows if row.state not in (*table.CLOSED, *table.CANNOT)] == []
    assert [row for row in rows if row.state in table.CANNOT and not row.reason] == []


def test_the_page_is_made_from_the_table() -> None:
    text = table.DATA.with_suffix(".md").read_text(encoding="utf-8")
    assert text == table.page(list(table.read().values()), training.read_training()), (
        "run `make counters` and commit what changed"
    )
