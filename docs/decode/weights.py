"""What flopscope takes for a random number."""

from reconcile.work import Work, formula, prod


@formula("numpy.randn", source="flopscope: 16 for each number that is drawn")
def randn(op):
    return Work(special=16 * prod(op.outputs[0].shape))
