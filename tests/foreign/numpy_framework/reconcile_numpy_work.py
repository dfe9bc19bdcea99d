"""The work of the two ops that a NumPy model is traced by."""

from reconcile.work import Work, formula, prod


@formula("numpy.matmul", source="numpy.org/doc/stable/reference/generated/numpy.matmul.html")
def _matmul(op):
    # (..., m, k) @ (k, n) -> (..., m, n): k multiply-adds for each element
    elements = prod(op.outputs[0].shape)
    return Work(mac=elements * op.inputs[0].shape[-1], accumulators=elements)


@formula("numpy.tanh", source="numpy.org/doc/stable/reference/generated/numpy.tanh.html")
def _tanh(op):
    return Work(special=prod(op.outputs[0].shape))
