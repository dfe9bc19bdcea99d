"""JAX's adapter: recognizes models (functions, Flax, Equinox, Keras) and traces them on shapes, or with values where these
decide a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.records import UNENTERED
from ..shared import adapter, keras_model, nested, signatures


class Adapter(adapter.Adapter):
    """See adapters/shared/adapter.py."""

    functions = True
    packages = ("jaxlib", "flax", "equinox", "haiku")

    def is_model(self, value: Any) -> bool:
        """See Adapter.is_model. A module of Flax linen is one that has no ``__call__`` of its own."""
        return callable(value) and not isinstance(value, type)

    def is_made(self, value: Any) -> bool:
        """See Adapter.is_made."""
        from . import model

        if isinstance(value, type) or hasattr(
            value, "__wrapped__"
        ):  # a function that a library's jit holds is a function
            return False
        return bool(keras_model.keras_of(value, "Layer")) or model.holds_arrays(value)

    def makes_one(self, function: Callable[..., Any], has_inputs: bool) -> bool:
        """See Adapter.makes_one. With inputs, only a function that takes none."""
        return not (signatures.parameters(function) if has_inputs else signatures.needs_arguments(function))

    def maker(self, factory: Any) -> Any:
        """The factory, run on shapes where its model allows it."""
        from . import model

        return model.shape_factory(super().maker(factory))

    def examples(self, function: Callable[[], Any]) -> Any:
        """See Adapter.examples: on shapes where that is possible."""
        from . import model

        return model.on_shapes(function)

    def capture(self, request: Any, pair: Any) -> Capture:
        """See Adapter.capture."""
        return Capture(request, pair)


class Capture(adapter.Capture):
    """See adapters/shared/adapter.py."""

    def make_call(self, params: Any) -> Any:
        """See Capture.make_call. Keras names the layers of a pair's model anew: a user's factory does that itself."""
        if not self.pair.user_model:
            keras_model.rename({})
        return super().make_call(params)

    @property
    def optimizer(self) -> Any:
        """The optimizer at hand that the step is to take, None for one by its name."""
        return getattr(self.pair, "optimizer", None)

    def call(self, params: Any) -> Any:
        """A fresh model's call, or its training step, as a function of shapes."""
        from . import model

        made, positional, named = self.make_call(params)
        call = model.call(made, positional, named, bool(self.request.training))
        if not self.request.training:
            return call
        from .training import step

        return step(call, self.request.training, self.optimizer)

    def trace(self, params: Any) -> Any:
        """See Capture.trace. Where values decide how often something runs, the model is made again with them."""
        from . import model, trace

        taken = self._trace(params)
        unread = any(op.attrs.get(UNENTERED, "").startswith(trace.UNREAD) for op in taken.ops)
        if unread and model.fits_in_memory(self.call(params)):
            with model.make_values():
                taken = self._trace(params)
        return taken

    def _trace(self, params: Any) -> Any:
        made, positional, named = self.make_call(params)

        def called_with() -> str:
            return self.called_with(positional, named)

        with adapter.blame_model(self.pair, lambda: self._plainly(made, positional, named), called_with):
            from . import model, trace, training

            step, optimizer = model.call(made, positional, named, bool(self.request.training)), self.request.training
            taken = training.trace(step, optimizer, self.optimizer) if optimizer else trace.trace(step)
        taken = taken._replace(parameters=keras_model.parameters(made) or model.parameters(made, step))
        return adapter.add_call_notes(taken, self.pair, called_with)

    def called_with(self, positional: tuple[Any, ...], named: dict[str, Any]) -> str:
        """See Capture.called_with. An object with arrays, and a container with many, by their number."""
        from . import records

        def is_leaf(value: Any) -> bool:
            return adapter.is_leaf(value) or bool(records.describe_container(value))

        def tell(value: Any) -> str:
            return adapter.tell(value) if adapter.is_leaf(value) else records.describe_container(value)

        return nested.describe_arguments((positional, named), is_leaf, tell)

    def plain_call(self, params: Any) -> tuple[Callable[[], Any], str]:
        """See Capture.plain_call: on shapes, as JAX itself would trace it."""
        made, positional, named = self.make_call(params)
        return lambda: self._plainly(made, positional, named), self.called_with(positional, named)

    def ledger(self, take: Callable[[Any], Any], params: Any) -> Any:
        """See Capture.ledger."""
        return take(self.call(params))

    @staticmethod
    def _plainly(made: Any, positional: Any, named: Any) -> Any:
        import jax

        from . import model

        call = model.call(made, positional, named)
        return jax.eval_shape(call.function, *call.arguments)
