"""Names that a program may call: operators that do nothing but compute."""

from __future__ import annotations

import pytest

from reconcile.products.files.pytorch.operators import OPERATORS
from reconcile.products.files.pytorch.program import is_operator


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten.save.default", "torch.ops.aten._print.default", "torch.ops.aten.set_.source_Storage",
        "torch.ops.aten.backward",
        "torch.ops.aten._cslt_compress.default", "torch.ops.aten.from_blob.default",
        "torch.ops.aten._sparse_coo_tensor_unsafe.default",
        "torch.ops.inductor._reinterpret_tensor.default", "torch.ops.profiler._record_function_enter.default",
        "torch.ops.load_library",
        "torch.ops._c10d_functional.broadcast.default", "torch.ops.mkldnn.data_ptr.default", "torch.ops.higher_order.print",
        "torch.ops.higher_order.call_torchbind", "torch.ops.higher_order.cond.x", "torch.ops.aten", "torch.ops", "torch.load",
        "torch.sym_int.x", "math.__loader__.load_module", "math.factorial", "_operator.attrgetter", "_operator.methodcaller",
        "_operator.call", "operator.add", "os.system", "", ".", "torch.ops.aten.add.Tensor.x",
    ],
)  # fmt: skip
def test_what_is_no_operator(target: str) -> None:
    assert not is_operator(target)


def test_the_list_holds_what_computes() -> None:
    """Neither what reaches out of a program nor what a family of such names would be known by."""
    names = {name.partition("::")[2] for name in OPERATORS}
    parts = (
        "file",
        "save",
        "load",
        "print",
        "library",
        "rpc",
        "fork",
        "await",
        "blob",
        "ptr",
        "storage",
        "cslt",
        "unsafe_csr",
    )
    held = {name for name in names for part in parts if part in name.lower()}
    assert held == {"storage_offset", "sym_storage_offset", "isprintable"}  # numbers, and a question to a text
    assert {
        f"aten::{name}" for name in ("linear", "conv2d", "gru", "lstm", "scaled_dot_product_attention", "add_")
    } <= OPERATORS
