"""NumPy as a framework: a model is a function of arrays, and its trace is the products and hyperbolic tangents that it calls.

A package of its own: nothing in reconcile knows it.  Its distribution registers ``FRAMEWORK`` by an entry point of group
``reconcile.frameworks``.
"""

from contextlib import contextmanager

from reconcile.adapters.shared import adapter, nested
from reconcile.core.framework import Framework
from reconcile.core.records import Op, Tensor, Trace

FRAMEWORK = Framework(
    name="numpy",
    title="NumPy",
    package="numpy",
    adapter="reconcile_numpy",
    formulas="reconcile_numpy_work",
    model="function of arrays",
    help="A NumPy model of your own: a function that returns a function of arrays.",
    distributions=("numpy",),
)


class Adapter(adapter.Adapter):
    """A model is any function."""

    def is_model(self, value):
        """Whether it can be called."""
        return callable(value) and not isinstance(value, type)

    def capture(self, request, pair):
        """What takes the trace."""
        return Capture(request, pair)


class Capture(adapter.Capture):
    """Calls the model once, with NumPy's two functions replaced by ones that take notes."""

    def trace(self, params):
        """The trace of one call."""
        import numpy

        ops = []
        with adapter.blame_model(self.pair, *self._plain(params)):
            model, positional, named = self._arrays(params)
            with recorded(numpy, ops):
                model(*positional, **named)
        versions = {"numpy": numpy.__version__}
        layers = tuple(dict.fromkeys(op.layer for op in ops))
        trace = Trace(self.request.framework.name, versions, "cpu", tuple(ops), (), (), layers, ())
        return adapter.add_call_notes(trace, self.pair, lambda: self.called_with(positional, named))

    def plain_call(self, params):
        """A call with no notes taken."""
        call, called_with = self._plain(params)
        return call, called_with()

    def _plain(self, params):
        model, positional, named = self._arrays(params)
        return lambda: model(*positional, **named), lambda: self.called_with(positional, named)

    def _arrays(self, params):
        import numpy

        model, positional, named = self.make_call(params)
        ones = (numpy.ones(leaf.shape, str(leaf.dtype)) for leaf in nested.leaves((positional, named), adapter.is_leaf))
        return (model, *nested.fill_leaves((positional, named), adapter.is_leaf, ones))


@contextmanager
def recorded(numpy, ops):
    """Meanwhile every ``matmul`` and ``tanh`` of NumPy is noted as an op of a layer of that name and number."""
    held = {name: getattr(numpy, name) for name in ("matmul", "tanh")}

    def noting(name, function):
        def call(*arrays):
            result = function(*arrays)
            id = f"{name}{sum(op.op == f'numpy.{name}' for op in ops)}"
            tensors = [tuple(Tensor(a.shape, str(a.dtype)) for a in some) for some in (arrays, (result,))]
            ops.append(Op(id, f"numpy.{name}", id, *tensors, {}))
            return result

        return call

    for name, function in held.items():
        setattr(numpy, name, noting(name, function))
    try:
        yield
    finally:
        for name, function in held.items():
            setattr(numpy, name, function)
