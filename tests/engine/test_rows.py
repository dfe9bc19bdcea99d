"""Every row of the layer table leads from a counter's value to the work that ran there, whichever model has which layers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.align.automatic import alignment
from reconcile.core.causes import State
from reconcile.core.conventions import ALL, MATMUL, Conventions
from reconcile.core.records import FLOP, LIVE, Entry, Ledger, Op, Sighting, Tensor, Trace
from reconcile.engine import reconcile as engine
from reconcile.engine.ledger import book_items
from reconcile.engine.reconcile import Books, books_of, gather_facts
from tests.align.models import BATCH, dense, relu

FROZEN = "tf.profiler@frozen"
STEPS, WIDTH = 5, 4
NUMBER = Tensor((), "int32")
CELL = 2 * BATCH * WIDTH * WIDTH
"""FLOPs of one turn of a cell: one product."""


def recurrent(path: str, cells: int, own: int) -> list[Op]:
    """A loop around cells, as TensorFlow has it; ``own`` are elements that the layer itself compares, beside the loop."""
    loop = Op(path + "/while", "While", path, (), (), {})
    count = Op(path + "/while/body/add", "AddV2", path, (NUMBER, NUMBER), (NUMBER,), {}, STEPS, within=(loop.id,))
    turns = [
        dense("tf", f"{path}.cell{at}", WIDTH, WIDTH)._replace(calls=STEPS, within=(loop.id,)) for at in range(cells)
    ]
    return [loop, count, *turns, *([relu("tf", path, own)] if own else [])]


KINDS = st.tuples(st.sampled_from("lcpd"), st.integers(1, 3), st.integers(0, 2), st.booleans())
"""A loop, a container, a plain layer, and one that torch lacks; how many layers it has, and elements of its own."""


def models(drawn: list[tuple[str, int, int, bool]]) -> tuple[Trace, Trace]:
    """The same network in both: torch has one layer for each, by the same name or another."""
    tf: list[Op] = []
    torch: list[Op] = []
    for at, (kind, parts, own, named) in enumerate(drawn):
        path, other = f"block_{at}", f"block_{at}" if named else f"net{at}"
        if kind == "l":
            tf += recurrent(path, parts, own)
            turns = dense("torch", other, WIDTH, WIDTH)._replace(calls=STEPS * parts)
            torch.append(turns)
        elif kind == "c":
            tf += [dense("tf", f"{path}.part{n}", WIDTH + n, WIDTH) for n in range(parts)]
            tf += [relu("tf", path, own)] if own else []
            torch.append(dense("torch", other, WIDTH, WIDTH)._replace(calls=parts))
        else:
            tf.append(dense("tf", path, WIDTH, parts))
            torch += [] if kind == "d" else [dense("torch", other, WIDTH, parts)]
    return made("tf", tf), made("torch", torch)


def made(framework: str, ops: list[Op]) -> Trace:
    return Trace(framework, {}, "", tuple(ops), (), (), tuple(dict.fromkeys(op.layer for op in ops)), ())


def frozen(trace: Trace) -> Ledger:
    """tf.profiler on the frozen graph: it counts each node once, and knows an inlined one by the layer of the call alone."""
    entries, sightings = [], []
    for op in trace.ops:
        seen = op._replace(calls=1, layer=op.layer.partition(".")[0])
        if op.op == "MatMul":
            flops = 2 * BATCH * (op.inputs[1].shape or ())[0] * (op.inputs[1].shape or ())[1]
            entries.append(Entry(op.id, seen.layer, op.op, flops, 1))
        elif op.op == "AddV2":
            entries.append(Entry(op.id, seen.layer, op.op, 1, 1))
        sightings.append(Sighting(seen, op.id, LIVE))
    total = sum(e.value for e in entries)
    versions = {"tensorflow": "2.16.0"}
    return Ledger(FROZEN, "tf", FLOP, "graph", versions, total, tuple(entries), tuple(sightings), {}, ())


def foots(books: Books) -> None:
    homes = {ledger.counter: ledger.framework for ledger in books.ledgers}
    for row in books.layers:
        for counter, home in homes.items():
            causes = sum(row.causes.get(counter, {}).values()) + row.residuals.get(counter, 0)
            assert row.counters[counter] + causes == row.work[home], (row.layer, counter)


@given(st.lists(KINDS, min_size=1, max_size=5), st.sampled_from([MATMUL, ALL]), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_every_row_foots(drawn, convention, wrong):
    """Also where the counter's number is off by something that no rule explains: the residual is in the row of its value."""
    tf, torch = models(drawn)
    ledger = frozen(tf)
    if wrong and ledger.entries:
        first, *rest = ledger.entries
        entries = (first._replace(value=first.value + wrong), *rest)
        ledger = ledger._replace(entries=entries, total=ledger.total + wrong)
    for traces in ((tf, torch), (tf,)):
        align, _ = alignment((), traces)
        books = books_of(gather_facts(traces, (ledger,), align), Conventions(convention))
        foots(books)
        (statement,) = [s for s in books.statements if s.from_ == FROZEN and s.to == "trace@tf"]
        assert -statement.residual == (wrong if ledger.entries else 0)


def test_loop_and_cell_are_one_row() -> None:
    """The value, the turns that were counted once, and the loop's own counting: one row, by one name or by two."""
    tf = made("tf", recurrent("gru", 1, 0))
    torch = made("torch", [dense("torch", "rnn", WIDTH, WIDTH)._replace(calls=STEPS)])
    for traces, name in (((tf, torch), "rnn"), ((tf,), "gru")):
        align, _ = alignment((), traces)
        (row,) = books_of(gather_facts(traces, (frozen(tf),), align), Conventions(MATMUL)).layers
        causes = {cause.value: amount for cause, amount in row.causes[FROZEN].items()}
        assert (row.layer, row.counters[FROZEN], row.work["tf"]) == (name, CELL + 1, STEPS * CELL)
        assert causes == {"loop-counted-once": (STEPS - 1) * CELL, "integer-op": -1}


def test_an_entry_of_several_layers_has_its_share_in_each() -> None:
    """Two layers' products as one entry: each row has its share by the rules, and the entry's own what they do not say."""
    tf = made("tf", [dense("tf", "a", WIDTH, 2), dense("tf", "b", WIDTH, 3)])
    ledger = frozen(tf)
    entry = ledger.entries[0]._replace(value=ledger.total + 7)
    sightings = tuple(s._replace(entry=entry.id) for s in ledger.sightings)
    ledger = ledger._replace(entries=(entry,), sightings=sightings, total=entry.value)
    align, _ = alignment((), [tf])
    books = books_of(gather_facts((tf,), (ledger,), align), Conventions(MATMUL))
    foots(books)
    assert {row.layer: row.counters[FROZEN] for row in books.layers} == {
        "a": 2 * BATCH * WIDTH * 2 + 7,
        "b": 2 * BATCH * WIDTH * 3,
    }
    assert [e.id for e in books.ledgers[0].entries] == [entry.id] * 2


def test_what_a_bridge_books_in_another_layer_is_unexplained(monkeypatch) -> None:
    """Two rows that are off by opposite amounts add up to a right total, and are no explanation."""
    tf = made("tf", [dense("tf", "a", WIDTH, 2)._replace(calls=STEPS), dense("tf", "b", WIDTH, 3)])

    def misplaced(*given):
        done = book_items(*given)
        return replace(done, adjustments=tuple(replace(line, layer="b") for line in done.adjustments))

    monkeypatch.setattr(engine, "book_items", misplaced)
    align, _ = alignment((), [tf])
    books = books_of(gather_facts((tf,), (frozen(tf),), align), Conventions(MATMUL))
    foots(books)
    once = 2 * BATCH * WIDTH * 2
    assert {row.layer: row.residuals[FROZEN] for row in books.layers} == {
        "a": (STEPS - 1) * once,
        "b": -(STEPS - 1) * once,
    }
    assert {s.state for s in books.statements} == {State.UNEXPLAINED}
    assert books.ledgers[0].state is State.UNEXPLAINED
