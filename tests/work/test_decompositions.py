"""Formulas of kernels against torch's own reference decompositions (torch._decomp), where one computes the same way."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from reconcile.adapters.pytorch.tracing.call_records import record_dispatch  # noqa: E402
from reconcile.work import Work, work_of  # noqa: E402
from tests.work.torch_records import record, work_dispatched  # noqa: E402

aten = torch.ops.aten


def t(*shape):
    return torch.randn(shape, dtype=torch.float64)


N = 2 * 3 * 4

# op, arguments, and what the decomposition does beyond the formula, with the reason
CASES = {
    "_softmax": (aten._softmax.default, (t(2, 3, 4), 1, False), Work()),
    # keeps x - max, which the kernel computes a second time: add N less
    "_log_softmax": (aten._log_softmax.default, (t(2, 3, 4), -1, False), Work() - Work(add=N)),
    "_safe_softmax": (aten._safe_softmax.default, (t(2, 3, 4), -1), Work()),
    "gelu": (aten.gelu.default, (t(2, 3, 4),), Work()),
    "gelu, tanh": (aten.gelu.default, (t(2, 3, 4),), Work(), {"approximate": "tanh"}),
    "addmm, scaled": (aten.addmm.default, (t(2, 4), t(2, 3), t(3, 4)), Work(), {"beta": 2, "alpha": 3}),
    "hardswish": (aten.hardswish.default, (t(2, 3, 4),), Work()),
    "addcmul, value": (aten.addcmul.default, (t(2, 3), t(2, 3), t(2, 3)), Work(), {"value": 2}),
    "logsumexp": (aten.logsumexp.default, (t(2, 3, 4), [1]), Work()),
    # centres a second time (an affine group norm is folded into one scale and shift per channel there; the formula
    # counts the definition, as for layer norm) for the output: add N
    "native_layer_norm": (aten.native_layer_norm.default, (t(2, 3, 4), [4], t(4), t(4), 1e-5), Work(add=N)),
    "native_group_norm": (
        aten.native_group_norm.default, (t(2, 3, 4), None, None, 2, 3, 4, 3, 1e-5), Work(add=N),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_formula_equals_the_reference_decomposition(case):
    op, args, beyond, *options = CASES[case]
    kwargs = options[0] if options else {}
    reference = torch._decomp.decomposition_table[op]
    parts = record(reference, *args, **kwargs)
    assert parts
    assert op.name() not in {part.op.replace(".", "::") for part in parts}
    whole = record_dispatch(op, args, kwargs, op(*args, **kwargs), "x", "")
    assert work_of(whole) + beyond == work_dispatched(reference, *args, **kwargs)
