"""ONNX's adapter: takes the trace of a model from its file without running it, and gives counters the loaded model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...products.files.model_file import FileError
from ..shared import adapter
from ..shared.refusal import FactoryError


class Adapter(adapter.Adapter):
    """See adapters/shared/adapter.py."""

    def is_model(self, value: Any) -> bool:
        """A model is a file."""
        return False

    def capture(self, request: Any, pair: Any) -> Capture:
        """See Adapter.capture."""
        return Capture(request, pair)


class Capture(adapter.Capture):
    """See adapters/shared/adapter.py."""

    model: Any = None

    def _model(self, params: Any) -> Any:
        """The pair's own model, otherwise an export of its PyTorch side. Raises BeyondCounter if that cannot be exported."""
        if self.model is None:
            if self.pair.builder(self.request.framework.name) is not None:
                self.model = self.pair.build_onnx(params)
            else:
                from .exported import model

                self.model = model(self.pair, params)
        return self.model

    def trace(self, params: Any) -> Any:
        """See Capture.trace."""
        from .trace import trace

        model = self._model(params)
        positional = self.pair.arguments(params)[0]
        inputs = ", ".join(f"{i.name}={i.dtype} {tuple(i.shape)}" for i in positional)
        try:
            return trace(model, (f"called with {inputs or 'no input'}",))
        except FileError as error:
            raise FactoryError(str(error)) from error

    def ledger(self, take: Callable[[Any], Any], params: Any) -> Any:
        """See Capture.ledger."""
        return take(self._model(params))
