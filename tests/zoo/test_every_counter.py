"""The committed table of every counter on every pair: it is whole, nothing in it is open, and its page is made from it."""

from __future__ import annotations

from reconcile.core.registry import known_counters
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery import training
from reconcile.products.gallery.run import read_gallery

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


def test_an_exact_counter_says_the_work_that_ran() -> None:
    rows = [row for row in table.read().values() if row.state == "equal"]
    assert len(rows) >= 100
    assert [row for row in rows if row.total != row.work] == []
    assert [
        row for row in table.read().values() if row.state == "explained" and row.total == row.work and not row.causes
    ] == []


def test_every_counter_of_a_training_step_closes_on_every_pair() -> None:
    """The rows are open if an entry has no rule, or is not what its rule says, under any convention: ``rows.open_``."""
    steps = training.read_training()
    counters = {counter for counter, _ in table.read()}
    seeing = {name for name in counters if name in known_counters() and not known_counters()[name].blind}
    numbers = {(name, pair): row.cells.get(name) for name in seeing for pair, row in steps.items()}
    assert {"tf.profiler@function", "tf.profiler@runmeta", "flop_counter"} <= seeing
    assert set(steps) == set(zoo_names())
    assert [(pair, row.open) for pair, row in steps.items() if row.open or any(row.states.values())] == []
    assert [where for where, cell in numbers.items() if cell is not None and cell.state not in table.CLOSED] == []
    defaults = [
        (name, pair) for (name, pair), cell in numbers.items() if cell is None and known_counters()[name].default
    ]
    assert defaults == []


def test_the_page_is_made_from_the_table() -> None:
    text = table.DATA.with_suffix(".md").read_text(encoding="utf-8")
    assert text == table.page(list(table.read().values()), training.read_training()), (
        "run `make counters` and commit what changed"
    )


MORE_ON_JAX = {
    # at stride 1 a transposed convolution is one of a padded input there, whose work goes by its larger output
    "dcgan": 2 * (4 * 4 - 1) * 16 * 100 * (8 * 64),
    "family_transposed": 2 * 2 * 4 * (6 * 3 * (7 - 5) + 3 * 9 * (7 * 6 - 5 * 4) + 3 * 8 * (4 * 5 * 4 - 3 * 4 * 3)),
    # bilinear interpolation is two products there: 9 rows to 18 of 7 columns, then 7 columns to 14
    "family_pooling": 2 * 2 * 4 * (18 * 9 * 7 + 18 * 14 * 7),
}
"""FLOPs under ``matmul`` that a pair's JAX side does and its TensorFlow side does not."""


def test_the_jax_sides_do_the_work_of_tensorflow_s() -> None:
    """In family_convolution TensorFlow is the one that differs, from PyTorch as well; see its notes."""
    work = {row.pair: int(row.work) for row in table.read().values() if row.counter == "xla@lowered" and row.work}
    gallery = {name: row.work for name, row in read_gallery().items()}
    assert len(work) >= 25
    expected = {pair: gallery[pair]["tf"] + MORE_ON_JAX.get(pair, 0) for pair in work}
    expected["family_convolution"] = gallery["family_convolution"]["torch"]
    assert work == expected
