"""JAX's adapter: what a model is, and its trace, taken on shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..shared import adapter, keras_model


class Adapter(adapter.Adapter):
    """See adapters/shared/adapter.py."""

    def is_model(self, value: Any) -> bool:
        """See Adapter.is_model. A module of Flax linen is one that has no ``__call__`` of its own."""
        return callable(value) and not isinstance(value, type)

    def is_made(self, value: Any) -> bool:
        """See Adapter.is_made."""
        from . import model

        return not isinstance(value, type) and (bool(keras_model.keras_of(value, "Layer")) or model.holds_arrays(value))

    def maker(self, factory: Any) -> Any:
        """The factory, run on shapes where its model allows it."""
        from . import model

        return model.shaped(super().maker(factory))

    def capture(self, request: Any, pair: Any) -> Capture:
        """See Adapter.capture."""
        return Capture(request, pair)


class Capture(adapter.Capture):
    """See adapters/shared/adapter.py."""

    def made(self, params: Any) -> Any:
        """See Capture.made. Keras names the layers of a pair's model anew: a user's factory does that itself."""
        if not self.pair.user_model:
            keras_model.rename({})
        return super().made(params)

    def call(self, params: Any) -> Any:
        """A fresh model's call, as a function of shapes."""
        from . import model

        made, positional, named = self.made(params)
        return model.call(made, positional, named)

    def trace(self, params: Any) -> Any:
        """See Capture.trace."""
        from .trace import trace

        made, positional, named = self.made(params)

        def called_with() -> str:
            return self.called_with(positional, named)

        with adapter.trying(self.pair, lambda: self._plainly(made, positional, named), called_with):
            from . import model

            taken = trace(model.call(made, positional, named))
        return adapter.noted(taken, self.pair, called_with)

    def plain_call(self, params: Any) -> tuple[Callable[[], Any], str]:
        """See Capture.plain_call: on shapes, as JAX itself would trace it."""
        made, positional, named = self.made(params)
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
