"""Ops of other libraries: the formula that a library registers with PyTorch's counter gives their multiply-adds."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

import reconcile
from reconcile.adapters.counters.flop_counter.rules import BOOK
from reconcile.adapters.pytorch.tracing.trace_notes import BY_VALUES, COUNTED_BY_STORED_VALUES, OF_LIBRARY, depends_on
from reconcile.core.records import REGISTERED, STORED
from reconcile.core.work import COMPONENTS
from reconcile.work import Work, known_part
from tests.adapters.counters.small_nets import called
from tests.work.records_by_hand import make
from tests.work.torch_records import record

VERSIONS = {"torch": "2.13.0"}


@pytest.fixture(scope="module")
def library():
    """A library's op that multiplies matrices without any visible op."""

    @torch.library.custom_op("reconciletests::twice", mutates_args=())
    def twice(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(2 * (a.numpy() @ b.numpy()))

    return torch.ops.reconciletests.twice


@pytest.fixture
def registered(library):
    """A function that registers a formula for it."""

    def register(formula):
        register_flop_formula(library)(formula)
        return library

    yield register
    flop_registry.pop(library, None)


def test_a_registered_formula_gives_the_multiply_adds(registered):
    op_of = registered(lambda a, b, *args, out_shape=None, **kwargs: 2 * a[0] * a[1] * b[1])
    a, b = torch.ones(2, 3), torch.ones(3, 5)
    (op,) = record(op_of, a, b)
    with FlopCounterMode(display=False) as counter:
        op_of(a, b)
    assert op.attrs[REGISTERED] == counter.get_total_flops() == 2 * 2 * 3 * 5
    part = known_part(op)
    assert (part.work, part.unknown) == (Work(mac=2 * 3 * 5), frozenset(COMPONENTS) - {"mac"})
    assert "registered a formula" in part.reason
    rule = BOOK.of(op, VERSIONS)
    assert rule is not None
    assert rule.compute(op) == Work(mac=2 * 3 * 5)
    assert BOOK.find(op.op, VERSIONS) is None


def test_a_trace_says_what_its_work_rests_on_besides_shapes():
    plain, sparse = make("aten.mm", [(2, 2)], [(2, 2)]), make("aten.mm", [(2, 2)], [(2, 2)], **{STORED: [3, None]})
    taught = make("lib.op", [(2, 2)], [(2, 2)], **{REGISTERED: 8})
    assert list(depends_on((plain,))) == []
    assert list(depends_on((sparse, sparse, taught, plain, taught))) == [
        COUNTED_BY_STORED_VALUES,
        OF_LIBRARY % ("lib.op", "lib.op"),
    ]


def test_a_trace_says_where_values_decide_how_large_tensors_are():
    """A mask picks as many rows as it is true for; an index of integers picks as many as it has."""
    x, mask = torch.ones(4, 3), torch.tensor([True, False, True, True])
    masked = record(lambda: x[mask])
    assert list(depends_on(masked)) == [BY_VALUES % "aten.index with a mask"]
    assert list(depends_on(record(lambda: x[torch.tensor([0, 2])]))) == []
    assert list(depends_on((*record(lambda: mask.nonzero()), *masked))) == [
        BY_VALUES % "aten.nonzero, aten.index with a mask"
    ]


@pytest.mark.parametrize("count", [7, -2, 2.0, True, None, "many", ValueError("broken")])
def test_what_is_no_even_count_of_flops_is_unknown(registered, count):
    def formula(*args, **kwargs):
        if isinstance(count, Exception):
            raise count
        return count

    (op,) = record(registered(formula), torch.ones(2, 2), torch.ones(2, 2))
    assert known_part(op).unknown == frozenset(COMPONENTS)
    assert BOOK.of(op, VERSIONS) is None


def test_without_a_formula_the_op_is_unknown(library):
    (op,) = record(library, torch.ones(2, 2), torch.ones(2, 2))
    assert REGISTERED not in op.attrs
    assert known_part(op).unknown == frozenset(COMPONENTS)


def test_an_op_with_a_formula_here_needs_none_of_the_library():
    op = make("aten.mm", [(2, 3), (3, 5)], [(2, 5)], **{REGISTERED: 4})
    assert known_part(op).work == Work(mac=30, accumulators=10)


def test_a_sentence_does_not_confirm_what_a_library_states(registered):
    """flop_counter uses the same formula, so its agreement proves nothing: this one is wrong."""
    registered(lambda *args, **kwargs: 16)
    takes = called(lambda a, b: torch.ops.reconciletests.twice(a, b) @ b.t())
    run = reconcile.run(torch=takes, inputs=(torch.ones(2, 3), torch.ones(3, 5)), counters=["flop_counter"])
    (figure,) = run.verdict.figures
    assert figure.flops == 16 + 2 * 2 * 5 * 3
    assert "confirmed" not in figure.sentence
    assert figure.sentence.endswith(
        "; nothing confirms 16 FLOPs of reconciletests.twice: a formula of its own library states them."
    )
