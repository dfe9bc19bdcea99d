"""Reader of Nsight Compute files: ``ncu --csv --page raw --nvtx`` around a run in autograd's NVTX ranges.

The ranges of ``torch.autograd.profiler.emit_nvtx(record_shapes=True)`` name the operators around each kernel, with the sizes of
their tensors.  The GPU counts the instructions of every kernel, independently of the counters and of the trace.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UsageError, brief, reason

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
    r'"<default domain>:([\w]+::[\w.]+), (?:seq = \d+, )?op_id = (\d+)(?:, sizes = (\[.*?\]))?, input_op'
)


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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{brief(path)} cannot be read ({reason(error)}): give the file that ncu --csv wrote."
        ) from None
    rows = list(csv.reader(line for line in text.splitlines() if not line.startswith("==")))
    head = next((row for row in rows if "Kernel Name" in row), None)
    if head is None:
        raise UsageError(f"{brief(path)} has no column 'Kernel Name', so it is no CSV file of ncu: {HOW_TO_RECORD}.")
    ranges = next((i for i, name in enumerate(head) if name.startswith(RANGES)), None)
    types = [name.removesuffix(".sum") for name in head if TENSOR.fullmatch(name)]
    parts = {f"{name}.sum" for name in types if any(name.startswith(f"{whole}_") for whole in types)}
    tensor = [i for i, name in enumerate(head) if TENSOR.fullmatch(name) and name not in parts]
    fma = [i for i, name in enumerate(head) if name in FMA]
    lacks = "the NVTX ranges" if ranges is None else "tensor cores (sm__ops_path_tensor_src_*)" if not tensor else ""
    if ranges is None or not tensor or len(fma) < len(FMA):
        raise UsageError(f"{brief(path)} has no column of {lacks or 'FFMA and DFMA'}: {HOW_TO_RECORD}.")
    body = [row for row in rows[rows.index(head) + 1 :] if len(row) == len(head) and row[0]]
    found = tuple(_count_launch(path, head, row, ranges, tensor, fma) for row in body)
    if not found:
        raise UsageError(
            f"{brief(path)} lists no kernel: call torch.cuda.profiler.start() before what you want counted."
        )
    if not any(each.sizes for one in found for each in one.launch.ranges):
        raise UsageError(f"the ranges of {brief(path)} have no sizes of tensors: {HOW_TO_RECORD}.")
    return found


def _count_launch(
    path: Path, head: Sequence[str], row: Sequence[str], ranges: int, tensor: Sequence[int], fma: Sequence[int]
) -> Counted:
    name, grid = row[head.index("Kernel Name")], row[head.index("Grid Size")]
    try:
        return Counted(
            Launch(name, tuple(map(int, re.findall(r"\d+", grid))), tuple(_ranges(row[ranges]))),
            sum(_number(row[i]) for i in tensor),
            sum(_number(row[i]) for i in fma),
        )
    except ValueError:
        raise UsageError(f"{brief(path)} has no count of kernel {row[0]} ({name[:60]}): {HOW_TO_RECORD}.") from None


def _number(text: str) -> int:
    """A whole number as ncu prints it, with commas. Raises ValueError."""
    return int(text.replace(",", ""))


def _ranges(text: str) -> Iterator[Range]:
    for op, call, sizes in _OPERATOR.findall(text):
        shapes = [size for size in (json.loads(sizes) if sizes else []) if size]
        yield Range(op.replace("::", ".").rstrip("_"), int(call), tuple(map(tuple, shapes)))
