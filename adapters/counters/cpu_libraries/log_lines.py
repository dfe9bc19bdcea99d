"""Parser of MKL_VERBOSE and ONEDNN_VERBOSE lines: each logged matrix product, convolution or recurrent layer, with its sizes.

MKL writes ``MKL_VERBOSE SGEMM(T,N,128,8,64,0x...`` with M, N, K in the order of BLAS, for column-major matrices.  The sizes of
``?GEMM_BATCH`` are addresses there, and unknown unless batch_sizes.py has read them.  oneDNN writes
``onednn_verbose,v1,primitive,exec,cpu,KIND,IMPLEMENTATION,PASS,LAYOUTS,...``: after the layouts come attributes, the algorithm
(``alg:``), the problem and a time (oneDNN, src/common/verbose.cpp, the template line of its own log).  Of the flags before a
layout, ``p`` says that it is padded.  Only ``exec`` of a product counts: ``create`` runs nothing, and a reorder copies.
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

MKL = "MKL_VERBOSE "
ONEDNN = "onednn_verbose,"

_CALL = re.compile(r"MKL_VERBOSE ([A-Z0-9_]+)\(([^)]*)\)")
_PADDED = re.compile(r"\b(src|wei|dst):[a-z0-9]+:[a-z]*p[a-z]*:blocked:(\w+)")
_ADDED = re.compile(r" sizes:(\d+),(\d+),(\d+),(\d+)$")
_SIZE = re.compile(r"([a-z]+)(\d+)")
BOTH_GRADIENTS = "rnn:backward"
"""The line of a recurrent layer's gradients: those of its activations and those of its weights, as many products each."""
BY_ROWS = ("matmul", "gemm_api", "inner_product")
"""Products of matrices that oneDNN writes row by row."""
_INNER = "inner_product"
_GATES = {"vanilla_rnn": 1, "vanilla_lstm": 4, "vanilla_gru": 3, "lbr_gru": 3}


class Product(NamedTuple):
    """One product that a library was asked for; ``sizes`` is empty if the line does not say them.

    ``padded`` has the tensors whose layout is padded to whole blocks, such as ``wei ABcd16b16a``.
    """

    routine: str
    sizes: dict[str, int]
    algorithm: str
    dtype: str
    padded: str = ""

    @property
    def macs(self) -> int:
        """Multiply-adds by the sizes in the line; 0 if it has none."""
        return _macs(self.routine, self.sizes, self.algorithm)


def is_of_library(line: str) -> bool:
    """Whether MKL or oneDNN wrote this line."""
    return line.startswith((MKL, ONEDNN))


def product_of(line: str) -> Product | None:
    """The product in a line, or None if it is about none."""
    if line.startswith(MKL):
        return _of_mkl(line)
    if line.startswith(ONEDNN):
        return _of_onednn(line)
    return None


_PRECISIONS = {"S": "float32", "D": "float64", "C": "complex64", "Z": "complex128"}


def _of_mkl(line: str) -> Product | None:
    found = _CALL.match(line)
    if found is None:
        return None
    name, arguments = found[1], found[2].split(",")
    dtype = _PRECISIONS.get(name[0], "")
    if "BATCH" in name:
        added = _ADDED.search(line)
        return Product(name, dict(zip("mnkb", map(int, added.groups()), strict=True)) if added else {}, "", dtype)
    if "GEMM" in name:
        sizes = arguments[2:5]
        known = len(sizes) == 3 and all(s.isdigit() for s in sizes)
        return Product(name, dict(zip("mnk", map(int, sizes), strict=True)) if known else {}, "", dtype)
    if name[1:] == "GEMV":
        m, n = map(int, arguments[1:3])
        return Product(name, {"m": m, "n": 1, "k": n} if arguments[0] == "N" else {"m": n, "n": 1, "k": m}, "", dtype)
    if name[1:] in ("DOT", "DOTU", "DOTC"):
        return Product(name, {"m": 1, "n": 1, "k": int(arguments[0])}, "", dtype)
    return None


def _of_onednn(line: str) -> Product | None:
    fields = line.rstrip("\n").split(",")
    if "exec" not in fields[:5]:
        return None
    at = fields.index("exec")
    if len(fields) < at + 6:
        return None
    kind, problem = fields[at + 2], fields[-2]
    algorithm = next((w[4:] for f in fields for w in f.split() if w.startswith("alg:")), "")
    dtype = next((w[4:].partition(":")[0] for f in fields for w in f.split() if w.startswith(("src:", "src_"))), "")
    padded = ", ".join(f"{name} {layout}" for name, layout in _PADDED.findall(line))
    if kind in ("convolution", "deconvolution"):
        sizes = {name: int(size) for name, size in _SIZE.findall(problem)}
        return Product(f"{kind}:{fields[at + 4]}", sizes, algorithm, dtype, padded)
    if kind in BY_ROWS:
        return Product(kind, (_of_layer if kind == _INNER else _of_matmul)(problem), algorithm, dtype, padded)
    if kind == "rnn":
        sizes = {name: int(size) for name, size in _SIZE.findall(problem)}
        both = "unidirectional" not in line
        return Product(f"rnn:{fields[at + 4]}", dict(sizes, directions=2 if both else 1), algorithm, dtype, padded)
    return None


def _of_matmul(problem: str) -> dict[str, int]:
    """Sizes of ``8x64:64x128`` or ``6x8x64:6x64x128``; batches are broadcast."""
    left, right = ([int(d) for d in side.split("x")] for side in problem.split(":")[:2])
    batch = prod(max(a, b) for a, b in zip(left[:-2], right[:-2], strict=True))
    return {"b": batch, "m": left[-2], "n": right[-1], "k": left[-1]}


def _of_layer(problem: str) -> dict[str, int]:
    """Sizes of ``mb8ic64oc128``, or ``mb8ic64ih7iw7oc128``: rows by all that they hold."""
    sizes = {name: int(size) for name, size in _SIZE.findall(problem)}
    held = prod(size for name, size in sizes.items() if name.startswith("i"))
    return {"m": sizes["mb"], "n": sizes["oc"], "k": held}


def _macs(routine: str, sizes: dict[str, int], algorithm: str) -> int:
    if not sizes:
        return 0
    if routine.startswith(("convolution", "deconvolution")):
        plane = "o" if routine.startswith("convolution") else "i"
        space = prod(sizes.get(plane + axis, 1) * sizes.get("k" + axis, 1) for axis in "dhw")
        return sizes["mb"] * sizes["oc"] * (sizes["ic"] // sizes.get("g", 1)) * space
    if routine.startswith("rnn:"):
        gates = _GATES.get(algorithm, 0) * (2 if routine == BOTH_GRADIENTS else 1)
        one = gates * sizes["dhc"] * (sizes["slc"] + sizes["sic"])
        return sizes["l"] * sizes["directions"] * sizes["t"] * sizes["mb"] * one
    complex_product = 4 if routine[:1] in "CZ" else 1
    return complex_product * sizes.get("b", 1) * sizes["m"] * sizes["n"] * sizes["k"]
