"""TorchModel gives every counter a fresh module and example inputs; on meta, without values, where its memory is not enough."""

import sys
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ..shared import keras_model, nested
from ..shared.refusal import FactoryError, OutOfMemory
from . import caches, compiled, decoding, exported
from .call_adapter import CallAdapter, KerasCallAdapter, is_leaf, same_numbers, tensors_out
from .inputs import Inputs, dtype_of
from .memory_estimate import MemoryNeed
from .module_tensors import is_lazy, parameter_bytes, tensors_of
from .tracing.module_path import HAS_META, module_paths
from .tracing.records import tensor_record
from .tracing.wrappers import MODEL_HAS_FAKE_TENSORS, is_fake


def versions(module: Any = None) -> Dict[str, str]:
    """Version of PyTorch, without the build's local part, and of the Keras that made the module or a part of it, if one did."""
    found = {"torch": torch.__version__.split("+")[0]}
    if module is not None and any(keras_model.keras_of(part, "Layer") for part in module.modules()):
        found["keras"] = str(sys.modules["keras"].__version__)
    return found


def unbuilt(module: torch.nn.Module) -> bool:
    """Whether a part of it has weights that get their sizes at its first call."""
    return any(map(is_lazy, tensors_of(module))) or any(
        not layer.built for layer in module_paths(module) if keras_model.keras_of(layer, "Layer")
    )


def _tell(leaf: Any) -> str:
    dtype = str(dtype_of(leaf)).replace("torch.", "")
    if getattr(leaf, "is_nested", False):
        return f"{dtype} {tensor_record(leaf).shape}, nested"
    return f"{dtype} {tuple(int(size) for size in leaf.shape)}"


class Readable:
    """A cache of what counters that do not run a model read of it: each value is computed once for all of them."""

    kept: Dict[str, Any]  # one for all counters of a model

    def once(self, name: str, find: Callable[[], Any]) -> Any:
        """What ``find`` returned when it was first called under that name."""
        if name not in self.kept:
            self.kept[name] = find()
        return self.kept[name]


class TorchModel(Readable):
    """A pair's PyTorch side, built from a pair module and its parameters."""

    def __init__(self, pair: Any, params: Any, device: str = "cpu", memory_need: Optional[MemoryNeed] = None) -> None:
        self.pair = pair
        self.memory_need = memory_need  # none: it may take what memory it asks for
        self.params = params
        self.device = device
        self.weightless = False
        self.trial = False  # whether it is made to find out whether it runs on the CPU with weights on meta
        self.compiled = False  # whether torch.compile has compiled it or a part of it
        self.training = ""  # the optimiser's name, where a training step is asked for
        self.quick = False  # whether it is called once, and values that were computed elsewhere are not looked for
        self.context: Optional[int] = None  # tokens in the cache before the call, where a cache is asked for
        self.arguments: nested.Arguments = ((), {})  # known when the model has been built
        self.kept = {}

    def build(self, device: str) -> torch.nn.Module:
        """A fresh module in eval mode on that device; on meta its weights are never allocated.

        It is called with the tensors of ``example``, one by one, whatever structure its own call takes them in.
        Raises OutOfMemory where it is to be made on the CPU and does not fit into memory.
        """
        forget_compiled()
        module, self.compiled = compiled.unwrap_module(self._make_module(device))
        exported.follow_mode(module)
        compiled.dispatch_convolutions(module)
        if any(is_fake(type(tensor)) for tensor in tensors_of(module)):
            raise FactoryError(MODEL_HAS_FAKE_TENSORS)
        self.weightless = device != "meta" and not self.trial and lacks_values(module, self._try_on_cpu)
        if self.weightless:  # it runs where it is
            self.device = "meta"
            caches.went_to_meta()
            keras_model.set_device("meta")
        elif device != "cpu" or any(parameter.device.type not in (device, "meta") for parameter in module.parameters()):
            module = module.to(device)
        module.eval()
        self.arguments = self.pair.arguments(self.params)
        if self.context is not None:
            self.arguments = decoding.arguments(
                module, self.arguments, self.context, lambda arguments: self._fill_arguments(arguments, device)
            )
        if self.pair.user_model:
            (KerasCallAdapter if keras_model.keras_of(module, "Layer") else CallAdapter)(module, self.arguments)
        if unbuilt(module):
            call(module, self.example(device))  # it makes weights at its first call, which is no work of a later one
        return module

    def _try_on_cpu(self) -> Any:
        """What such a module returns on the CPU, if it is made once more; the random numbers go on as if it had not been."""
        trial = TorchModel(self.pair, self.params)
        trial.trial, trial.context = True, self.context
        with torch.random.fork_rng(devices=()):
            return run_call(trial)

    def _make_module(self, device: str) -> torch.nn.Module:
        # first of all: to find out, it may have to be made elsewhere
        if device == "cpu" and self.memory_need is not None and self.lacks_memory():
            raise OutOfMemory(self.memory_need.shortage_message(self.training))
        placed = keras_model.set_device(device)
        module = self._made_on(device)
        if not placed and keras_model.set_device(device):  # Keras came with the model and did not know where to
            return self._made_on(device)
        return module

    def _made_on(self, device: str) -> torch.nn.Module:
        same_numbers()
        caches.forget()
        if device == "meta":
            caches.went_to_meta()
        if device == "meta" and HAS_META and not self._is_theirs():
            from .tracing import meta_kernels

            meta_kernels.register()
            try:
                with torch.device("meta"), caches.imported_on("cpu"):
                    module = self.pair.build_torch(self.params)
            except Exception:
                if self.device != "meta":
                    raise
                return self._made_on("cpu")  # it takes values to make it; ``build`` moves it
            if self.memory_need is not None and self.memory_need.weights is None:
                self.memory_need.weights = parameter_bytes(module)
            return module
        if device != "cpu" or self.memory_need is None or self.memory_need.weights is not None or not HAS_META:
            return self.pair.build_torch(self.params)
        with _guard_memory(NOT_MADE_ON_META % self.memory_need.why if self.memory_need.why else "", traced=True):
            return self.pair.build_torch(self.params)

    def _is_theirs(self) -> bool:
        """Whether a function of the caller's, in their own process, makes it: what their libraries keep from one call to the
        next, and what they import, is not to be on meta."""
        return self.memory_need is not None and self.memory_need.in_caller_process and self.memory_need.weights is None

    def lacks_memory(self) -> bool:
        """Whether the model is known not to fit into memory; it is made on meta to find out."""
        if self.memory_need is None or not HAS_META:
            return False
        self.memory_need.weigh(self._weight)
        return self.memory_need.exceeds_free(self.training)

    def _weight(self) -> int:
        """Bytes of the weights, of a module on meta that is made for nothing else."""
        from .memory_guard import SkipInitOnMeta

        with SkipInitOnMeta():
            return parameter_bytes(self._make_module("meta"))

    def too_large(self) -> str:
        """Why the model cannot run on its device: its weights do not fit into memory; '' if nothing is known against it."""
        lacks = self.device == "cpu" and self.memory_need is not None and self.lacks_memory()
        return self.memory_need.shortage_message(self.training) if lacks and self.memory_need is not None else ""

    def guard_memory(self) -> Any:
        """Within this, OutOfMemory is raised before a tensor is made that does not fit into the CPU's memory."""
        return ExitStack() if self.memory_need is None else _guard_memory()

    def spare(self) -> Tuple[str, ...]:
        """Let a counter run on meta if the model does not fit into memory; what the ledger is to say of that."""
        if not self.too_large() or self.memory_need is None:
            return ()
        self.device = "meta"
        return (self.memory_need.note(self.training),)

    def example(self, device: str) -> List[torch.Tensor]:
        """Tensors for one call of the module built last: copies of those at hand, which share what those share, else fixed
        pseudo-random numbers, integers as zeros and ones."""
        made = Inputs("meta" if self.weightless else device)
        return [made.tensor(leaf) for leaf in nested.leaves(self.arguments, is_leaf)]

    @property
    def trains_inputs(self) -> bool:
        """Whether a tensor that it is called with requires a gradient."""
        return any(getattr(leaf, "requires_grad", False) for leaf in nested.leaves(self.arguments, is_leaf))

    def _fill_arguments(self, arguments: nested.Arguments, device: str) -> nested.Arguments:
        """These arguments with a tensor for every leaf, as ``example`` makes them."""
        return nested.change_leaves(arguments, is_leaf, Inputs("meta" if self.weightless else device).tensor)

    def called_with(self) -> str:
        """What the module built last is called with, in a line."""
        arguments = decoding.describe_arguments(self.arguments, self.context) if self.context else self.arguments
        return nested.describe_arguments(arguments, is_leaf, _tell)


def forget_compiled() -> None:
    """Reset the compiler, which skips in later runs what failed in an earlier one (an attempt on meta, or a counter)."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


def run_call(model: TorchModel) -> Any:
    """One plain inference call of a fresh module on the CPU."""
    return call(model.build("cpu"), model.example("cpu"))


def call(module: torch.nn.Module, tensors: List[torch.Tensor]) -> Any:
    """One plain inference call."""
    with torch.no_grad():
        return module(*tensors)


@contextmanager
def _guard_memory(advice: str = "", traced: bool = False) -> Iterator[None]:
    """Meanwhile OutOfMemory is raised before a tensor is made that does not fit, where PyTorch can be watched so.

    ``traced`` says whether what runs may call torch.jit.trace, whose calls are not checked.
    """
    try:
        from .memory_guard import BypassJitTrace, MemoryGuard
    except ImportError:  # before PyTorch 2.0
        yield
        return
    with MemoryGuard(advice), BypassJitTrace() if traced else ExitStack():
        yield


NOT_MADE_ON_META = "; it cannot be made on meta, where nothing is allocated (%s): mend that, or run it smaller"


# Weights that are on meta by design: hooks bring each module's when it is called (accelerate's cpu_offload and disk_offload,
# transformers' device maps). Such a model runs where its inputs are, like any other; without values anywhere
# it can only run on meta.


def lacks_values(module: torch.nn.Module, run: Callable[[], Any]) -> bool:
    """Whether weights of this module are on meta, and nothing brings them: ``run()`` calls a module that was made as it was, with
    inputs that have values, and is asked only where something could bring them."""
    if not any(weight.is_meta for weight in module.parameters()):
        return False
    return not any(map(_is_changed, module.modules())) or not _has_values(run)


def _is_changed(part: torch.nn.Module) -> bool:
    """Whether something of this module's own runs before or instead of its forward; a call adapter is ours."""
    forward = part.forward
    while isinstance(getattr(forward, "__self__", None), CallAdapter):
        forward = forward.__self__.forward
    return bool(part._forward_pre_hooks) or getattr(forward, "__func__", None) is not type(part).forward


def _has_values(run: Callable[[], Any]) -> bool:
    try:
        return not any(tensor.is_meta for tensor in tensors_out(run()))
    except Exception:  # whatever their code and PyTorch do with weights that have no values
        return False
