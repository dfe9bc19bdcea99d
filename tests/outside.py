"""A framework that another package could register: NumPy functions, which no counter counts."""

from __future__ import annotations

from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.framework import Framework
from reconcile.core.records import Op, Tensor, Trace
from reconcile.core.registry import frameworks
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle_each
from reconcile.work import load, restore_registry

NUMPY = Framework(
    name="numpy",
    title="NumPy",
    package="numpy",
    adapter="numpy_flops.adapter",
    formulas=frameworks()["torch"].formulas,
    model="NumPy function",
    help="A NumPy function of your own.",
)


def matmul(framework: str, rows: int, inner: int, columns: int) -> Trace:
    """The trace of one product, in a layer called ``fc``: rows * inner * columns multiply-adds."""
    inputs = (Tensor((rows, inner), "float32"), Tensor((inner, columns), "float32"))
    op = Op("0", "aten.mm", "fc", inputs, (Tensor((rows, columns), "float32"),), {})
    return Trace(framework, {framework: "1.0"}, "calls", (op,), (), (), ("fc",), ())


def three() -> Answer:
    """The same product in TensorFlow and PyTorch, a wider one in JAX."""
    params = {"tf": "net:make", "torch": "net:make", "jax": "nets:make"}
    meta = {
        "layers": [],
        "notes": [],
        "doc": "",
        "name": "net.make+nets.make",
        "params": params,
        "frameworks": list(params),
    }
    traces = (matmul("tf", 2, 5, 4), matmul("torch", 2, 5, 4), matmul("jax", 2, 5, 6))
    load()
    with restore_registry():
        return settle_each(Collected(meta, traces, ()), Conventions(MATMUL))
