"""Advice that can be followed: for every op whose work is asked for, a file that gives it is called, whatever the record is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.records import CUT, PARTS, STORED, UNENTERED, Op, Tensor
from reconcile.core.work import CONTROL_FLOW
from reconcile.work import UnknownWork, Work, known_part, load, registered_formulas, restore_registry, work_of
from reconcile.work.formula_files import load_formulas
from tests.work.records_by_hand import make

load()
OWN = registered_formulas()
FLOATS, COMPLEX, INTEGERS = (Tensor((2, 3), dtype) for dtype in ("float32", "complex64", "int64"))
OPEN = Tensor(None, "float32")
RECORDS = {
    "floats": ([FLOATS, FLOATS], {}),
    "integers": ([INTEGERS, INTEGERS], {}),
    "complex numbers": ([COMPLEX, COMPLEX], {}),
    "unknown shapes": ([OPEN, OPEN], {}),
    "sparse tensors": ([FLOATS, FLOATS], {STORED: [1, None]}),
    "nested tensors": ([FLOATS, FLOATS], {PARTS: [[(1, 3), (1, 3)], None, None]}),
    "a part on this device": ([FLOATS, FLOATS], {CUT: "why"}),
    "what was not entered": ([FLOATS, FLOATS], {UNENTERED: "how often it runs is not known"}),
}
NAMES = [name for name, entry in OWN.items() if entry.zero_reason in ("", CONTROL_FLOW)]
NAMES += ["mine.op", "com.example.Attention", "lax.pallas_call", "lax.while"]
called: set[str] = set()
"""The ids of the records that the file's formula was called with."""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    with restore_registry():
        yield
    called.clear()


def give(tmp_path: Path, names: list[str], body: str) -> None:
    file = tmp_path / "given.py"
    file.write_text(
        "from reconcile.work import UnknownWork, Work, formula\nfrom tests.work.test_asked_formulas import called\n\n"
        f"@formula(*{names!r}, source='by hand')\ndef give(op):\n    called.add(op.id)\n    {body}\n"
    )
    load_formulas((file,))


@pytest.mark.parametrize("kind", RECORDS)
def test_a_file_that_gives_an_op_is_called_where_its_work_is_unknown(tmp_path: Path, kind: str) -> None:
    tensors, attrs = RECORDS[kind]
    asked = [make(name, tensors, tensors[:1], **attrs)._replace(id=name) for name in NAMES]
    asked = [op for op in asked if known_part(op).unknown]
    assert asked
    give(tmp_path, NAMES, "raise UnknownWork('who knows')")
    for op in asked:
        known_part(op)
    assert [op.op for op in asked if op.id not in called] == []


FFT = make("aten._fft_r2c", [FLOATS], [COMPLEX])
LOOPS = [
    make(name, [FLOATS], [FLOATS], **{UNENTERED: "how often it runs is not constant"})
    for name in ("While", "onnx.Loop", "lax.while", "lax.pallas_call")
]


@pytest.mark.parametrize("op", [FFT, *LOOPS])
def test_what_the_file_says_is_the_work(tmp_path: Path, op: Op) -> None:
    with pytest.raises(UnknownWork):
        work_of(op)
    give(tmp_path, [op.op], "return Work(mul=6, add=2)")
    assert work_of(op) == Work(mul=6, add=2)


def test_a_loop_that_was_entered_needs_none(tmp_path: Path) -> None:
    give(tmp_path, ["While"], "return Work(mul=5)")
    assert work_of(LOOPS[0]._replace(attrs={})) == Work()
    assert not called


def test_what_does_no_arithmetic_gets_no_formula(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"op 'Reshape' already has a work formula \(another shape"):
        give(tmp_path, ["Reshape"], "return Work(mul=5)")
