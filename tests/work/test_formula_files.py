"""Formula files of users: whatever is wrong with one is a sentence that names the file and the line, and never a number."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.errors import UsageError
from reconcile.core.records import Op, Tensor
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import (
    NoWork,
    UnknownWork,
    Work,
    check_work,
    formula_files,
    known_part,
    load,
    registered_formulas,
    restore_registry,
    work_of,
)
from reconcile.work.formula_files import load_formulas
from tests.work.records_by_hand import make

HEAD = "from reconcile.work import UnknownWork, Work, formula, no_arithmetic, work_of\n"
OP = make("mine.op", [(2, 3)], [(2, 3)])


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    load()
    with restore_registry():
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "work.py"


def returning(file: Path, body: str) -> None:
    """A file whose formula for ``mine.op`` begins in line 4, and returns in line 6."""
    file.write_text(f'{HEAD}\n\n@formula("mine.op", source="by hand")\ndef mine(op):\n    {body}\n')


def test_a_formula_that_works(file: Path) -> None:
    returning(file, "return Work(mul=op.inputs[0].shape[0])")
    load_formulas((file,))
    assert work_of(OP) == Work(mul=2)


def test_the_formula_of_the_document(file: Path) -> None:
    """One product per row of the first input, and a kernel of (5, 3) by (3, 4)."""
    text = (Path(__file__).parents[2] / "docs" / "usage.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    file.write_text("\n".join(programs))
    load_formulas((file,))
    assert work_of(make("mylib.foo", [(5, 3)], [(5, 3)])) == Work(mul=5)
    assert work_of(make("triton.product", [(5, 3), (3, 4), (5, 4)], [], N=4, K=3)) == Work(mac=5 * 4 * 3)


def test_whole_numbers_of_another_kind_are_plain_afterwards(file: Path) -> None:
    """As numpy's: whatever says that it is an index."""
    returning(file, "return Work(mul=type('Whole', (), {'__index__': lambda self: 2**80})())")
    load_formulas((file,))
    assert work_of(OP) == Work(mul=2**80)
    assert type(work_of(OP).mul) is int


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return Work(mul=2.5)", "line 4: it returned mul=2.5, but a count must be a whole number."),
        ("return Work(add=-5)", "line 4: it returned add=-5, but a count must be at least 0"),
        ("return Work(mac=True)", "line 4: it returned mac=True, but a count must be a whole number."),
        ("return Work(div=float('nan'))", "line 4: it returned div=nan, but a count must be a whole number."),
        ("return Work(accumulators=3)", "line 4: it returned accumulators=3 and mac=0, but a dot product has at least one"),
        ("return None", "line 4: it returned None, which is not a Work."),
        ("return Work(mul=10**6000)", "line 4: it returned mul=a value of type int, but a count must be at least 0"),
        ("return 'x' * 10**6", "it returned 'xxx"),
        ("return 1 // 0", "line 6: ZeroDivisionError: "),
        ("return mine(op)", "line 6: RecursionError: "),
        ("raise SystemExit(0)", "line 6: SystemExit: 0."),
        ("raise BaseException", "line 6: BaseException."),
        ("raise type('Odd', (Exception,), {'__str__': lambda self: 1 // 0})", "line 6: Odd."),
    ],
)  # fmt: skip
def test_what_a_formula_gets_wrong_is_a_sentence(file: Path, body: str, said: str) -> None:
    returning(file, body)
    load_formulas((file,))
    with pytest.raises(UsageError) as error:
        work_of(OP)
    text = str(error.value)
    assert text.startswith(f"the formula for mine.op in {file}")
    assert said in text
    assert "\n" not in text
    assert len(text) < 500 + len(str(file))


def test_unknown_work_is_no_error_and_passes_other_formulas(file: Path) -> None:
    returning(file, "raise UnknownWork('who knows')")
    file.write_text(
        f'{file.read_text()}\n@formula("mine.outer", source="by hand")\ndef outer(op):\n'
        '    return work_of(op._replace(op="mine.op"))\n'
    )
    load_formulas((file,))
    for name in ("mine.op", "mine.outer"):
        with pytest.raises(UnknownWork, match=r"^who knows$"):
            work_of(OP._replace(op=name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(0)\n", "cannot be used, line 2: SystemExit: 0."),
        ("raise BaseException('odd')\n", "cannot be used, line 1: BaseException: odd."),
        ("\n\n1 // 0\n", "cannot be used, line 3: ZeroDivisionError: "),
        ("def f():\n    f()\nf()\n", "cannot be used, line 2: RecursionError: "),
        ("x = (\n", "cannot be used, line 1: SyntaxError: "),
        ("(" * 5000 + ")" * 5000, "cannot be used"),
        (f'{HEAD}formula("aten.view", source="twice")(len)\n', "cannot be used, line 2: ValueError: op 'aten.view'"),
        (f'{HEAD}for _ in 1, 2:\n formula("aten.mm", source="twice")(len)\n', "cannot be used, line 3: ValueError: op 'aten.mm'"),
        (f"{HEAD}@formula(5, source='x')\ndef mine(op): ...\n", "cannot be used, line 2: TypeError: formula() takes names"),
        (f"{HEAD}@formula('mine.op')\ndef mine(op): ...\n", "cannot be used, line 2: TypeError: "),
        (f"x = '{'9' * 5000}'\nint(x)\n", "cannot be used, line 2: ValueError: "),
    ],
)  # fmt: skip
def test_what_a_file_gets_wrong_is_a_sentence(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        load_formulas((file,))
    assert str(error.value).startswith(f"the formula file {file} {said}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "said"), [(None, "No such file"), (b"\xff\xfe", "not text in UTF-8"), (b"\0", "it holds zero bytes")]
)
def test_a_file_that_is_none(file: Path, data: bytes | None, said: str) -> None:
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        load_formulas((file,))


def test_interrupting_is_no_fault_of_the_file(file: Path) -> None:
    returning(file, "raise KeyboardInterrupt")
    load_formulas((file,))
    with pytest.raises(KeyboardInterrupt):
        work_of(OP)


def test_a_loop_ends(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that goes on whatever is raised; the timer that ran before (pytest's own) runs on."""
    monkeypatch.setattr(formula_files, "LIMIT", 0.3)
    monkeypatch.setattr(formula_files, "AGAIN", 0.1)
    handler, rest = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 500)
    begun = time.monotonic()
    try:
        file.write_text(
            "x = 0\nwhile True:\n    y = x\n    try:\n        x += 1\n    except Exception:\n        pass\n"
        )
        with pytest.raises(UsageError, match=r"work\.py, line \d did not end within 0\.3 s; .* with --timeout SECONDS"):
            load_formulas((file,))
        returning(file, "while True: pass")
        load_formulas((file,))
        with pytest.raises(UsageError, match=r"mine\.op in .*work\.py, line 6 did not end within 0\.3 s"):
            work_of(OP)
        assert signal.getsignal(signal.SIGALRM) is handler
        assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rest)
    assert time.monotonic() - begun < 90


def test_the_limit_is_a_part_of_the_timeout(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    timer = signal.setitimer
    monkeypatch.setattr(
        signal, "setitimer", lambda which, rest, again=0.0: (limits.append(rest), timer(which, rest, again))[1]
    )
    file.write_text("")
    for timeout in (0.5, 600.0, 6000.0):
        load_formulas((file,), timeout)
    assert [x for x in limits if x in (10, 100)] == [10, 10, 100]


def test_without_a_timer_the_formula_is_called_all_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer")
    returning(file, "return Work(mul=4)")
    load_formulas((file,))
    assert work_of(OP) == Work(mul=4)


def test_a_user_sees_one_sentence_and_2(file: Path, tmp_path: Path) -> None:
    """Through the command line, where a formula is called long after its file was read."""
    from reconcile.drift import baselines
    from tests.drift.takes import take

    found = take()
    (trace,) = found.traces
    odd = trace._replace(ops=(*trace.ops, OP._replace(id="odd", layer="dense")))
    for name, one in (("a", trace), ("b", odd)):
        text = baselines.dumps(type(found)(found.meta, (one,), found.ledgers))
        (tmp_path / f"{name}.json").write_text(text)
    for body, said in (("return Work(mul=2.5)", "mul=2.5"), ("import sys; sys.exit(0)", "SystemExit: 0")):
        returning(file, body)
        done = CliRunner().invoke(
            cli, ["check", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--formulas", str(file)]
        )
        assert done.exit_code == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"Error: the formula for mine.op in {file}")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_no_formula_of_the_tools_own_gives_less_than_nothing() -> None:
    """Shapes below 0 and records that do not fit make the work unknown, by name."""
    assert len(registered_formulas()) > 600
    negative = make("aten.relu", [(-4, 2)], [(-4, 2)])
    with pytest.raises(UnknownWork, match=r"shape \[-4, 2\] not fully known"):
        work_of(negative)
    empty = make("aten._adaptive_avg_pool2d", [(1, 1, 0, 4)], [(1, 1, 2, 2)])
    with pytest.raises(
        UnknownWork, match=r"the formula for aten\._adaptive_avg_pool2d does not fit .*: it returned add=-4"
    ):
        work_of(empty)
    odd = make("aten.convolution", [(1, 1, 4, 4), (1, 1, 2, 2)], [(1, 1, 3, 3)], transposed=[{}])
    assert work_of(odd)  # what is truthy is true
    with pytest.raises(UnknownWork, match=r"the formula for aten\.gru does not fit this record: "):
        work_of(make("aten.gru", [(1, 2, 3)] * 6, [(1, 2, 3)], has_biases=True, num_layers="x", weights_at="y"))


def test_a_rule_may_count_below_nothing_and_a_formula_may_not() -> None:
    """A counter that takes n - o adds for the sum of nothing says -1; that is what it says."""
    assert check_work(Work(add=-1), signed=True) == Work(add=-1)
    for work, signed in ((Work(add=-1), False), (Work(add=-(10**1000)), True), (Work(add=10**1000), True)):
        with pytest.raises(NoWork):
            check_work(work, signed=signed)


BOXES = make("torchvision.nms", [(5, 4), (5,)], [Tensor((3,), "int64")])
"""An op with partly known work: it has no products, and the rest is unknown."""


def completing(file: Path, op: str, body: str) -> None:
    """A file whose formula for this op begins in line 3, and whose body is in line 5."""
    file.write_text(f"{HEAD}\n@formula({op!r}, source='by hand')\ndef rest(op):\n    {body}\n")
    load_formulas((file,))


def test_work_that_is_known_in_part_can_be_completed(file: Path) -> None:
    """Every pair of five boxes once: ten comparisons."""
    completing(file, BOXES.op, "n = op.inputs[0].shape[0]\n    return Work(cmp=n * (n - 1) // 2)")
    assert work_of(BOXES) == Work(cmp=10)


def test_a_part_can_be_added_to_a_part(file: Path) -> None:
    completing(file, BOXES.op, "raise UnknownWork('how many', ['special', 'div'], Work(cmp=10))")
    assert known_part(BOXES) == (Work(cmp=10), {"special", "div"}, "how many")


def test_what_the_tool_knows_cannot_be_contradicted(file: Path) -> None:
    completing(file, BOXES.op, "return Work(mac=7, accumulators=1)")
    with pytest.raises(
        UsageError, match=r"nms in .*, line 3: it returned mac=7, but mac is 0 by the formula of this tool \("
    ):
        work_of(BOXES)


def test_a_formula_for_known_work_has_to_agree(file: Path) -> None:
    """(2, 3) x (3, 5): 30 products into 10 sums."""
    product = make("aten.mm", [(2, 3), (3, 5)], [(2, 5)])
    body = "return Work(mac=30, accumulators=10) if op.outputs[0].shape == (2, 5) else Work()"
    completing(file, "aten.mm", body)
    assert work_of(product) == Work(mac=30, accumulators=10)
    with pytest.raises(UsageError, match=r"it returned mac=0, but mac is 8 by"):
        work_of(make("aten.mm", [(2, 2), (2, 2)], [(2, 2)]))


@pytest.mark.parametrize(
    ("op", "unknown"), [(BOXES, set(SINGLE_COMPONENTS)), (make("aten.mm", [(2, 3), (3, 5)], [(2, 5)]), set())]
)
def test_a_formula_that_knows_no_more_changes_nothing(file: Path, op: Op, unknown: set[str]) -> None:
    before = known_part(op)
    completing(file, op.op, "raise UnknownWork('who knows')")
    assert known_part(op) == before
    assert before.unknown == unknown


@pytest.mark.parametrize("op", [BOXES.op, OP.op])
@pytest.mark.parametrize("files", [1, 2])
def test_an_op_gets_one_formula_of_the_users(tmp_path: Path, op: str, files: int) -> None:
    line = f"formula({op!r}, source='by hand')(lambda op: Work())\n"
    paths = tuple(tmp_path / f"{index}.py" for index in range(files))
    for path in paths:
        path.write_text(HEAD + line * (2 if files == 1 else 1))
    with pytest.raises(UsageError, match=rf"line {4 - files}: ValueError: op '{op}' already has a work formula"):
        load_formulas(paths)
