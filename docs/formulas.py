"""The page of formulas, docs/ops.md: every operation with a formula, its source, and the tests that hold it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconcile.core.escaping import markdown
from reconcile.core.work import Formula
from reconcile.work import load, registered_formulas

HELD = {
    "aten.distances": ("aten/distances", "loops"),
    "aten.elementwise": ("tables, elements, by_index", "the expression of each row, run on counting numbers"),
    "aten.foreach": ("aten/foreach", "what PyTorch runs for one tensor, and for an optimiser that is not fused"),
    "aten.fused_gradients": ("gradient_recurrent, gradient_attention", "what autograd dispatches, which loops hold"),
    "aten.gradients": ("gradient_elements, gradient_formulas, gradient_windows", "loops, whose values are PyTorch's"),
    "aten.layers": ("layers, composites, fused_of_the_zoo", "loops, and the ops that PyTorch dispatches for them"),
    "aten.linalg": ("linalg", "loops, and the polynomials of LAPACK working note 41"),
    "aten.losses": ("gradient_elements, composites", "the expression of each row, and its parts"),
    "aten.ordering": ("ordering", "tournaments and searches that are really played"),
    "aten.no_products": ("linalg", "nothing but the absence of matrix products"),
    "aten.products": ("aten/products, composites, naive_convolution", "loops"),
    "aten.recurrent": ("recurrent, fused_of_the_zoo", "the ops that PyTorch dispatches for them, which loops hold"),
    "aten.reductions": ("elements, composites", "loops"),
    "aten.sampling": ("sampling", "loops, and for other gradients their parts"),
    "attention_kernels": ("attention_kernels", "loops over the pairs that see each other"),
    "ranks.collectives": ("collectives", "rings in which parts are really passed and added"),
    "complex_numbers": ("complex, lax, tf_linalg", "loops over pairs of numbers"),
    "jax.formulas.elementwise": ("lax", "the expression of each row, and loops, run on counting numbers"),
    "jax.formulas.linalg": (
        "lax",
        "the formulas of the other frameworks; for the rest only the absence of matrix products is said",
    ),
    "jax.formulas.products": ("lax_products", "loops"),
    "jax.formulas.windows": ("lax", "loops"),
    "kernels.formulas": (
        "../matrix/triton",
        "blocks that kernels really ran, and what a GPU counted in the same blocks",
    ),
    "onnx.formulas.elementwise": ("onnx", "the same operation in PyTorch"),
    "onnx.formulas.layers": (
        "onnx, ../adapters/onnx/functions",
        "the same operation in PyTorch, and ONNX's own function of it",
    ),
    "onnx.formulas.quantized": ("../adapters/onnx/functions", "closed forms of the product that it stands for"),
    "onnx.formulas.runtime_attention": ("../adapters/onnx/functions", "closed forms of its products"),
    "tensorflow.elementwise": ("tables, tensorflow", "the expression of each row, run on counting numbers"),
    "tensorflow.gradients": ("gradient_formulas, gradient_elements", "loops"),
    "tensorflow.layers": ("aten/products, layers, tensorflow", "loops"),
    "tensorflow.linalg": (
        "tf_linalg",
        "the formulas of PyTorch, and closed forms of sparse, banded and complex products",
    ),
    "tensorflow.no_products": ("tf_linalg", "nothing but the absence of matrix products"),
    "tensorflow.recurrent": ("tensorflow", "loops of each cell"),
    "tensor_kinds.complex_numbers": ("complex", "loops over pairs of numbers"),
    "tensor_kinds.low_precision": ("low_precision", "the product that it stands for"),
    "tensor_kinds.mkldnn": ("aten/mkldnn", "the product and each step as PyTorch runs them apart"),
    "tensor_kinds.sparse": ("aten/sparse", "loops over the stored values"),
    "tflite.formulas": ("../adapters/tflite/formulas", "TensorFlow's op of the same name, and closed forms"),
    "torchvision.formulas": ("torchvision, regions", "loops, whose values are PyTorch's own samplers'"),
}
"""Module of formulas -> the files test_*.py of tests/work, or of tests/adapters, that hold it, and to which."""

FRAMEWORKS = {
    "PyTorch": (
        *("aten.", "bitsandbytes.", "higher_order.", "prim.", "prims.", "quantized.", "tl.", "torchvision."),
        *("mkl.", "mkldnn.", "torch_attn.", "flash_attn.", "flashattn."),
        *("c10d.", "_c10d_functional.", "_c10d_functional_autograd.", "c10d_functional.", "fsdp.", "_dtensor."),
    ),
    "ONNX": ("onnx.", "com.microsoft."),
    "TensorFlow Lite": ("tflite.",),
    "JAX": ("lax.", "hlo."),
    "TensorFlow": ("",),
}
"""Title -> how the names of its operations begin; the first that fits."""


def module_of(entry: Formula) -> str:
    """The file that registers it, below reconcile/work or the folder of its framework or product, dots between folders."""
    return re.split(r"\.work\.|\.adapters\.|\.products\.", entry.compute.__module__)[-1]


def formulas() -> Iterator[str]:
    """Lines of the page."""
    load()
    yield (
        "The work of one call of each operation that has a formula, with its source. Above each table stand the tests that hold "
        "it: to loops over numbers that count their own operations and whose values are the framework's, or to the parts that "
        "it is made of. `R` rows, `N` elements read, `O` elements written."
    )
    yield ""
    yield (
        "An operation without a formula is unknown, never 0. Two rules hold for all of them: an operation on integers and "
        "booleans alone does no work but the multiply-adds of a product, and one that PyTorch tags as pointwise has no "
        "multiply-adds. A formula may know some components only: such an operation is known under `matmul`, and under "
        "`all` the trace names it."
    )
    for title in FRAMEWORKS:
        yield from _tables(title, _of(title, registered_formulas()))
        for kind, tensors in (("complex", "complex numbers"), ("sparse", "sparse tensors")):
            entries = _of(title, registered_formulas(kind))
            if entries:
                yield from _computed(f"{title}, on {tensors}", entries)
    yield ""


def _of(title: str, entries: Mapping[str, Formula]) -> dict[str, Formula]:
    """Those of one framework."""
    return {
        op: entry
        for op, entry in entries.items()
        if title == next(t for t, s in FRAMEWORKS.items() if op.startswith(s))
    }


def _tables(title: str, entries: Mapping[str, Formula]) -> Iterator[str]:
    yield from _computed(title, {op: entry for op, entry in entries.items() if not entry.zero_reason})
    yield from ("", f"### {title}: no arithmetic", "", "| operations | reason |", "|:--|:--|")
    by_reason: dict[str, list[str]] = {}
    for op, entry in entries.items():
        if entry.zero_reason:
            by_reason.setdefault(entry.zero_reason, []).append(op)
    # by their words: which module was imported first depends on what this process has counted
    yield from (f"| {_names(ops)} | {markdown(reason)} |" for reason, ops in sorted(by_reason.items()))


def _computed(title: str, entries: Mapping[str, Formula]) -> Iterator[str]:
    """A table for each module, with a row for all operations of one source."""
    modules: dict[str, dict[str, list[str]]] = {}
    for op, entry in entries.items():
        modules.setdefault(module_of(entry), {}).setdefault(entry.source, []).append(op)
    yield from ("", f"## {title}")
    for module, rows in sorted(modules.items()):
        tests, to = HELD[module]
        files = ", ".join(_test(name) for name in tests.split(", "))
        yield from ("", f"Held by {files} to {to}:", "", "| operations | formula and source |", "|:--|:--|")
        yield from (f"| {_names(ops)} | {markdown(source)} |" for source, ops in rows.items())


def _test(name: str) -> str:
    """A link to a file of tests/work, or of tests/adapters."""
    folder, _, stem = f"{'' if name.startswith('adapters/') else 'work/'}{name}".rpartition("/")
    return f"[{stem}](../tests/{folder}/test_{stem}.py)"


def _names(ops: list[str]) -> str:
    return ", ".join(f"`{op}`" for op in sorted(ops))
