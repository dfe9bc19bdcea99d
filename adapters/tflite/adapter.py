"""TensorFlow Lite's adapter: takes the trace of a model from its file without running it."""

from __future__ import annotations

from typing import Any

from ...products.files.model_file import FileError
from ..shared import adapter
from ..shared.refusal import FactoryError


class Adapter(adapter.Adapter):
    """See adapters/shared/adapter.py."""

    def is_model(self, value: Any) -> bool:
        """A model is a file."""
        return False

    def owns(self, value: Any) -> bool:
        """What TensorFlow makes is TensorFlow's own."""
        return False

    def capture(self, request: Any, pair: Any) -> Capture:
        """See Adapter.capture."""
        return Capture(request, pair)


class Capture(adapter.Capture):
    """See adapters/shared/adapter.py."""

    def trace(self, params: Any) -> Any:
        """See Capture.trace."""
        from .trace import trace

        model, positional, named = self.make_call(params)
        try:
            return trace(model, (f"called with {self.called_with(positional, named) or 'no input'}",))
        except FileError as error:
            raise FactoryError(str(error)) from error
