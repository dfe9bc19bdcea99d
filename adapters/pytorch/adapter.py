"""PyTorch's adapter: recognizes and copies modules, keeps the process's defaults, takes traces and ledgers.

Python 3.8, torch 1.x and later.
"""

import importlib
import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, Dict, FrozenSet, Iterator, Optional, Tuple

from ...core.framework import Framework, absolute
from ...core.message import first_line
from ..shared import adapter, keras_model
from ..shared.refusal import FactoryError
from . import LAUNCHES_COUNTED_BY, caches, memory_estimate, module_tensors

FOLDER = "TORCHINDUCTOR_CACHE_DIR"
"""The variable with the folder of what torch.compile made."""


class Adapter(adapter.Adapter):
    """See adapters/shared/adapter.py."""

    def __init__(self, framework: Framework) -> None:
        super().__init__(framework)
        LAUNCHES_COUNTED_BY[:] = framework.launches

    def before_import(self) -> None:
        """See Adapter.before_import."""
        caches.watch()
        for module in self.framework.declared_by:
            importlib.import_module(absolute(module)).watch()

    def is_model(self, value: Any) -> bool:
        """See Adapter.is_model."""
        import torch

        return isinstance(value, torch.nn.Module)

    def as_model(self, value: Any, inputs: Any) -> Tuple[Any, Any]:
        """A program of torch.export as modules, by default with the inputs that it was exported with."""
        from . import exported

        if not exported.is_program(value):
            return value, inputs
        return exported.as_module(value), exported.inputs_of(value) if inputs is None else inputs

    def is_made(self, value: Any) -> bool:
        """See Adapter.is_made."""
        from . import exported

        return self.is_model(value) or exported.is_program(value)

    def makes_one(self, function: Callable[..., Any], has_inputs: bool) -> bool:
        """A function is never a module."""
        return True

    def default_dtype(self) -> str:
        """The floating-point dtype of a module that says none, as its factory has left it."""
        import torch

        return str(torch.get_default_dtype()).replace("torch.", "")

    def fuse_model(self, model: Any) -> Any:
        """See Adapter.fuse_model."""
        from .deployed import fuse_modules

        return fuse_modules(model)

    def entry(self, model: Any) -> Any:
        """A module's ``forward``: its ``__call__`` takes anything."""
        return getattr(model, "call", model) if keras_model.keras_of(model, "Layer") else model.forward

    def copy(self, model: Any) -> Any:
        """A copy of a module; if new tensors are made on meta, without a copy of its weights."""
        from .compiled import still_compiled
        from .module_copy import copy_module

        return still_compiled(model, copy_module(model))

    def defaults(self) -> Dict[str, Any]:
        """Default dtype, whether gradients are on, and the default device, which is None if none was set."""
        if "torch" not in sys.modules:
            return {}
        import torch

        device = getattr(sys.modules.get("torch.utils._device"), "CURRENT_DEVICE", None)
        return {"dtype": torch.get_default_dtype(), "grad": torch.is_grad_enabled(), "device": device}

    def restore(self, defaults: Dict[str, Any]) -> None:
        """See Adapter.restore."""
        if not defaults or self.defaults() == defaults:
            return
        import torch

        torch.set_default_dtype(defaults["dtype"])
        torch.set_grad_enabled(defaults["grad"])
        if defaults["device"] != self.defaults()["device"]:
            torch.set_default_device(defaults["device"])

    @contextmanager
    def keep_state(self) -> Iterator[None]:
        """The caller's random numbers go on as if nothing had run in between; Keras makes its tensors where it did; no folder
        stays that PyTorch made."""
        import torch

        with ExitStack() as stack:
            stack.callback(_forget_folder, os.environ.get(FOLDER), frozenset(os.listdir(tempfile.gettempdir())))
            stack.enter_context(torch.random.fork_rng())
            stack.callback(keras_model.set_device, "")
            stack.callback(caches.forget_meta)
            yield

    def capture(self, request: Any, pair: Any) -> "Capture":
        """See Adapter.capture. Raises FactoryError for a device that is not there, before anything runs."""
        _check_device(request.device)
        return Capture(request, pair)


def _forget_folder(given: Optional[str], there: FrozenSet[str]) -> None:
    """Remove the folder that importing torch._dynamo made, and its variable; it makes both again when it needs them."""
    if given is None and FOLDER in os.environ:
        made = os.environ.pop(FOLDER)
        if os.path.basename(made) not in there:
            with suppress(OSError):  # something is in it
                os.rmdir(made)


def _check_device(name: str) -> None:
    if name == "cpu":
        return
    import torch

    try:
        torch.empty(0, device=torch.device(name))
    except Exception as error:  # of any kind: each device has its own
        raise FactoryError(f"the device {name!r} cannot be used: {first_line(error).rstrip('.')}.") from error


class Capture(adapter.Capture):
    """See adapters/shared/adapter.py. Every trace is of a fresh module, and every ledger of a counter that runs it."""

    _memory: Any = None
    _moved_to = ""  # the device that a trace had to go to, from the one that was asked for

    def __init__(self, request: Any, pair: Any) -> None:
        super().__init__(request, pair)
        self._kept: Dict[str, Any] = {}

    def trace(self, params: Any) -> Any:
        """See Capture.trace."""
        from . import compiled

        model = self._model(params)
        if model.training:
            from .training import run_step as run_call
            from .training import trace
        else:
            from .model import run_call
            from .trace import trace
        with adapter.refuse_out_of_memory(self.pair), compiled.eagerly() as eager:
            with adapter.blame_model(self.pair, lambda: run_call(model), model.called_with):
                taken = trace(model, self.request.died)
            if self.request.device == "meta" != model.device:
                self._moved_to = model.device
            if model.compiled or eager.called:
                taken = taken._replace(notes=taken.notes + (compiled.COUNTED_AS_WRITTEN,))
            if model.context is not None:
                from . import decoding

                taken = taken._replace(notes=taken.notes + (decoding.note(model.context),))
            return adapter.add_call_notes(taken, self.pair, model.called_with)

    def ledger(self, take: Callable[[Any], Any], params: Any) -> Any:
        """See Capture.ledger."""
        from . import compiled

        model = self._model(params)
        with adapter.refuse_out_of_memory(self.pair), compiled.eagerly():
            spared = model.spare()
            ledger = take(model)
            return ledger._replace(notes=ledger.notes + spared)

    def plain_call(self, params: Any) -> Tuple[Callable[[], Any], str]:
        """See Capture.plain_call."""
        from . import model as models

        plain = models.TorchModel(self.pair, params, memory_need=self._memory_need())
        plain.context = self.request.context
        with adapter.refuse_out_of_memory(self.pair):
            module = plain.build("cpu")
        return lambda: models.call(module, plain.example("cpu")), plain.called_with()

    def _model(self, params: Any) -> Any:
        from . import model as models

        model = models.TorchModel(self.pair, params, self._moved_to or self.request.device, self._memory_need())
        model.training = self.request.training
        model.context = self.request.context
        model.quick = self.request.quick
        model.kept = self._kept
        return model

    def _memory_need(self) -> Any:
        """What is known of the model's need for memory; None for a file, whose memory is limited where it is loaded."""
        if self._memory is None and self.request.file is None:
            import torch

            here = self.pair.here
            made = here and isinstance(self.pair.model, torch.nn.Module)
            self._memory = memory_estimate.MemoryNeed(
                here, module_tensors.parameter_bytes(self.pair.model) if made else None
            )
        return self._memory
