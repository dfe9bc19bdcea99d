"""Reader of Nsight Compute files: ``ncu --csv --page raw --nvtx`` around a run in autograd's NVTX ranges.

The ranges of ``torch.autograd.profiler.emit_nvtx(record_shapes=True)`` name the operators around each kernel, with the sizes of
their tensors.  The GPU counts the instructions of every kernel, independently of the counters and of the trace.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UsageError, brief
from ...core.user_files import parse_json, read_text_file
from ..shapes import COUNT, Shape, list_of

RANGES = "thread Domain:Push/Pop_Range"
"""Start of the head of the column with the ranges around a kernel."""
TENSOR = re.compile(r"sm__ops_path_tensor_src_[a-z0-9_]+\.sum")
"""Operations of tensor cores by the type of their factors, 2 per multiply-add. Of a column that is a part of another one (by the
type of the result, with sparsity) the other is read."""
FMA = tuple(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("ffma", "dfma"))
"""Multiply-adds of single threads in float32 and float64. Half precision is left out: compilers move constants by HFMA2."""
HOW_TO_RECORD = (
    "record it with: ncu --csv --page raw --nvtx --profile-from-start off --clock-control none --metrics "
    "regex:sm__ops_path_tensor_src,regex:smsp__sass_thread_inst_executed_op_[fd]fma_pred_on, around code that runs in "
    "torch.autograd.profiler.emit_nvtx(record_shapes=True) (docs/kernels.md)"
)
_OPERATOR = re.compile(
    r'"<default domain>:([\w]+::[\w.]+), (?:seq = \d+, )?op_id = (\d+)(?:, sizes = (\[.*?\]))?, input_op', re.ASCII
)
_GRID = re.compile(r"\(([1-9][0-9]*), ([1-9][0-9]*), ([1-9][0-9]*)\)")
_COUNT = re.compile(r"[0-9]{1,3}(,?[0-9]{3})*")
"""A whole number as ncu prints it, with commas."""
_SIZES = Shape(list_of(list_of(COUNT)))
"""Those of the tensors of an operator."""


@dataclass(frozen=True, slots=True)
class Range:
    """An operator around a kernel: ``aten.mm``, the number of its call, and the sizes of its tensors that have dimensions."""

    op: str
    call: int
    sizes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel, without what it counted: what a rule may know of it. ``ranges`` are outermost first."""

    name: str
    grid: tuple[int, ...]
    ranges: tuple[Range, ...]

    @property
    def short(self) -> str:
        """The name without namespaces, template arguments and parameters; of CUTLASS, the kernel that is the argument."""
        plain = self.name.removeprefix("void ").replace("<unnamed>::", "")
        before, _, arguments = plain.partition("<")
        if before.rpartition("::")[2] in ("Kernel", "Kernel2") and arguments:
            before = re.split("[<>]", arguments)[0]
        return before.partition("(")[0].rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class Counted:
    """What the GPU counted in a launch: operations of tensor cores (2 per multiply-add), multiply-adds of threads."""

    launch: Launch
    tensor: int
    fma: int


def read_launches(path: Path) -> tuple[Counted, ...]:
    """The launches of a file, in order. Raises UsageError, which says what is wrong and how to record such a file."""
    lines = [line for line in read_text_file(path, "the file of ncu").splitlines() if not line.startswith("==")]
    try:
        rows = list(csv.reader(lines, strict=True))
    except csv.Error as error:
        raise UsageError(f"{brief(path)} is no CSV file of ncu ({error}): {HOW_TO_RECORD}.") from error
    start = next((i for i, row in enumerate(rows) if {"Kernel Name", "Grid Size"} <= {*row}), None)
    if start is None:
        raise UsageError(
            f"{brief(path)} has no columns 'Kernel Name' and 'Grid Size', so it is no CSV file of ncu: {HOW_TO_RECORD}."
        )
    head = rows[start]
    ranges = next((name for name in head if name.startswith(RANGES)), "")
    types = [name.removesuffix(".sum") for name in head if TENSOR.fullmatch(name)]
    parts = {name for name in types if any(name.startswith(f"{whole}_") for whole in types)}
    tensor = [f"{name}.sum" for name in types if name not in parts]
    lacks = "" if ranges else "the NVTX ranges"
    lacks = lacks or ("" if tensor else "tensor cores (sm__ops_path_tensor_src_*)")
    if lacks or not {*FMA} <= {*head}:
        raise UsageError(f"{brief(path)} has no column of {lacks or 'FFMA and DFMA'}: {HOW_TO_RECORD}.")
    found = tuple(_count_launch(path, head, row, ranges, tensor) for row in rows[start + 1 :] if row and row[0])
    if not found:
        raise UsageError(
            f"{brief(path)} lists no kernel: call torch.cuda.profiler.start() before what you want counted."
        )
    if not any(each.sizes for one in found for each in one.launch.ranges):
        raise UsageError(f"the ranges of {brief(path)} have no sizes of tensors: {HOW_TO_RECORD}.")
    return found


def _count_launch(path: Path, head: Sequence[str], row: Sequence[str], ranges: str, tensor: Sequence[str]) -> Counted:
    """The launch of a row. Raises UsageError for one that is cut short, and for what is no count."""
    try:
        cells = dict(zip(head, row, strict=True))
        grid = tuple(map(int, _match(_GRID, cells["Grid Size"]).groups()))
        launch = Launch(cells["Kernel Name"], grid, tuple(_ranges(cells[ranges])))
        return Counted(launch, sum(_number(cells[name]) for name in tensor), sum(_number(cells[name]) for name in FMA))
    except ValueError:
        raise UsageError(f"{brief(path)} has no count of kernel {brief(row[0])}: {HOW_TO_RECORD}.") from None


def _number(text: str) -> int:
    return int(_match(_COUNT, text)[0].replace(",", ""))


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """All of the text by this pattern. Raises ValueError."""
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError
    return found


def _ranges(text: str) -> Iterator[Range]:
    """Raises ValueError for sizes that are none."""
    for op, call, sizes in _OPERATOR.findall(text):
        shapes = parse_json(sizes or "[]")
        if _SIZES.find_fault(shapes):
            raise ValueError
        yield Range(op.replace("::", ".").rstrip("_"), int(call), tuple(tuple(size) for size in shapes if size))
