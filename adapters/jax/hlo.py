"""Parser of HLO text: modules as computations of instructions, with shapes, attributes and the names that JAX gave them.

The grammar is that of ``HloModule::ToString`` (openxla/xla, xla/hlo/ir/hlo_module.cc), one instruction a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.records import Tensor

DTYPES = {
    "pred": "bool", "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128", "token": "token", "opaque": "opaque",
}  # fmt: skip
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$|^(ENTRY )?%?([\w.\-]+) \{$")
_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_COMMENT = re.compile(r"/\*.*?\*/")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\]")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')


class Instruction(NamedTuple):
    """One instruction; ``operands`` are names of instructions of the same computation, whose result is the ``root``."""

    name: str
    opcode: str
    outputs: tuple[Tensor, ...]
    operands: tuple[str, ...]
    attrs: dict[str, str]
    op_name: str
    root: bool = False


class Module(NamedTuple):
    """Computations by name, each in the order in which an analysis visits it; ``entry`` is where the program begins."""

    computations: dict[str, list[Instruction]]
    entry: str


def parse_module(text: str) -> Module:
    """The module that this text states. Raises ValueError for a text without an entry."""
    computations: dict[str, list[Instruction]] = {}
    entry, now = "", None
    for line in _COMMENT.sub("", text).splitlines():
        if now is not None and line.startswith("}"):
            now = None
        elif now is None and (head := _HEAD.match(line)) and not line.startswith("HloModule"):
            name = head[2] or head[4]
            now = computations.setdefault(name, [])
            entry = name if line.startswith("ENTRY") else entry
        elif now is not None and (found := _LINE.match(line)):
            now.append(_instruction(found[2], found[3])._replace(root=bool(found[1])))
    if not entry:
        raise ValueError("the HLO text has no entry computation")
    return Module({name: order_instructions(found) for name, found in computations.items()}, entry)


def order_instructions(instructions: list[Instruction]) -> list[Instruction]:
    """The order in which HloComputation::Accept visits them (xla/hlo/ir/hlo_computation.cc, hlo_instruction.cc: PostOrderDFS):
    operands before users, from left to right, control predecessors after operands; first what the result does not need."""
    by_name = {i.name: i for i in instructions}
    before = {
        i.name: [*i.operands, *(p.lstrip("%") for p in pieces(i.attrs.get("control-predecessors", "").strip("{}")))]
        for i in instructions
    }
    used = {name for names in before.values() for name in names}
    order: dict[str, Instruction] = {}
    for start in sorted((i for i in instructions if i.root or i.name not in used), key=lambda i: i.root):
        stack = [(start.name, False)]
        while stack:
            name, done = stack.pop()
            if name in order or name not in by_name:
                continue
            if done:
                order[name] = by_name[name]
                continue
            stack.append((name, True))
            stack += [(other, False) for other in reversed(before[name])]
    return list(order.values())


def _instruction(name: str, rest: str) -> Instruction:
    shape, rest = _cut_before(rest, " ")
    opcode, _, rest = rest.strip().partition("(")
    inside, rest = _cut_before(rest, ")")
    attrs = {}
    for part in pieces(rest.lstrip(", ")):
        key, equals, value = part.partition("=")
        if equals:
            attrs[key.strip()] = value
    label = _OP_NAME.search(attrs.pop("metadata", ""))
    operands = tuple(part.strip().split(" ")[-1].lstrip("%") for part in pieces(inside) if part.strip())
    names = label[1].partition(";")[0] if label else ""  # the compiler joins those of instructions that it merges
    return Instruction(name, opcode, tensors(shape), operands, attrs, names)


def _cut_before(text: str, end: str) -> tuple[str, str]:
    """The text before the first ``end`` outside of brackets, and the text after it."""
    depth, quoted = 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        if quoted:
            continue
        if letter == end and depth == 0:
            return text[:at], text[at + 1 :]
        depth += (letter in "([{") - (letter in ")]}")
    return text, ""


def pieces(text: str) -> Iterator[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    while text:
        piece, text = _cut_before(text, ",")
        yield piece.strip()


def tensors(shape: str) -> tuple[Tensor, ...]:
    """The arrays of a shape, those of a tuple one after the other."""
    return tuple(Tensor(_sizes(sizes), dtype(name)) for name, sizes in _ARRAY.findall(shape))


def _sizes(text: str) -> tuple[int | None, ...]:
    return tuple(int(size) if size.isdigit() else None for size in text.split(",") if size)


def dtype(name: str) -> str:
    """``s32`` as ``int32``, ``f8e4m3fn`` as ``float8_e4m3fn``."""
    if name in DTYPES:
        return DTYPES[name]
    if name[0] in "su" and name[1:].isdigit():
        return ("uint" if name[0] == "u" else "int") + name[1:]
    return "float" + name[1:].replace("e", "_e", 1) if name[0] == "f" else name


def numbers(text: str) -> list[int]:
    """``{0,1}`` as [0, 1]."""
    return [int(part) for part in re.findall(r"-?\d+", text)]


def window(text: str) -> dict[str, Any]:
    """``{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=1x1 rhs_dilate=1x1}``, with what it leaves out."""
    given = dict(part.split("=", 1) for part in text.strip("{}").split() if "=" in part)
    sizes = [int(size) for size in given["size"].split("x")] if "size" in given else []

    def each(key: str, default: int) -> list[int]:
        return [int(part) for part in given[key].split("x")] if key in given else [default] * len(sizes)

    pads = (
        [[int(p) for p in part.split("_")] for part in given["pad"].split("x")]
        if "pad" in given
        else [[0, 0]] * len(sizes)
    )
    return {
        "size": sizes,
        "stride": each("stride", 1),
        "pad": pads,
        "lhs_dilate": each("lhs_dilate", 1),
        "rhs_dilate": each("rhs_dilate", 1),
    }


def labels(text: str) -> list[list[int]]:
    """``b01f_01io->b01f`` as JAX's dimension numbers: where batch, features and axes are in lhs, rhs (out, in, axes) and out."""
    left, _, out = text.partition("->")
    lhs, _, rhs = left.partition("_")
    axes = sorted(label for label in rhs if label.isdigit())
    return [
        [lhs.index("b"), lhs.index("f"), *(lhs.index(axis) for axis in axes)],
        [rhs.index("o"), rhs.index("i"), *(rhs.index(axis) for axis in axes)],
        [out.index("b"), out.index("f"), *(out.index(axis) for axis in axes)],
    ]
