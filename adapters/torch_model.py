"""One PyTorch model under study: built afresh for every counter, with example inputs and module paths."""

from typing import Any, Dict, List

import torch
from torch.nn.modules import module as module_hooks


def versions():
    # type: () -> Dict[str, str]
    """Version of PyTorch, without the build's local part."""
    return {"torch": torch.__version__.split("+")[0]}


class ModulePath(object):
    """Path of the module whose forward is running: of a shared module the first name, '' for the root.

    Hooks of the process, not of the modules: nn.TransformerEncoderLayer takes another path where a hook is attached to
    it, and a counter would see what it does not see for its users.
    """

    def __init__(self, root):
        # type: (torch.nn.Module) -> None
        self._names = {module: name for name, module in root.named_modules()}
        self._stack = [""]
        self._handles = []  # type: List[Any]

    @property
    def modules(self):
        # type: () -> List[torch.nn.Module]
        """Every module of the model, once."""
        return list(self._names)

    @property
    def current(self):
        # type: () -> str
        """Dotted path of the innermost running module."""
        return self._stack[-1]

    def __enter__(self):
        # type: () -> ModulePath
        self._handles.append(module_hooks.register_module_forward_pre_hook(self._push))
        self._handles.append(module_hooks.register_module_forward_hook(self._pop))
        return self

    def _push(self, module, _inputs):
        # type: (torch.nn.Module, Any) -> None
        self._stack.append(self._names.get(module, self.current))  # made in a forward: its maker's

    def _pop(self, _module, _inputs, _outputs):
        # type: (Any, Any, Any) -> None
        self._stack.pop()

    def __exit__(self, *exc):
        # type: (*Any) -> None
        for handle in self._handles:
            handle.remove()


class TorchModel(object):
    """A pair's PyTorch side, built from a pair module and its parameters."""

    def __init__(self, pair, params, device="cpu"):
        # type: (Any, Any, str) -> None
        self.pair = pair
        self.params = params
        self.device = device
        self.input_specs = pair.inputs(params)

    def build(self, device):
        # type: (str) -> torch.nn.Module
        """A fresh module in eval mode on that device; on meta its weights are never allocated."""
        torch.manual_seed(0)
        set_device = getattr(torch, "device", None)
        if device == "meta" and hasattr(set_device, "__enter__"):
            with torch.device("meta"):
                module = self.pair.build_torch(self.params)
        else:
            module = self.pair.build_torch(self.params)
        if device != "cpu":
            module = module.to(device)
        module.eval()
        return module

    def example(self, device):
        # type: (str) -> List[torch.Tensor]
        """Example inputs: fixed pseudo-random numbers, integers as zeros and ones."""
        found = []
        for spec in self.input_specs:
            dtype = getattr(torch, spec.dtype)
            if device == "meta":
                found.append(torch.empty(spec.shape, dtype=dtype, device="meta"))
                continue
            generator = torch.Generator().manual_seed(0)
            if dtype.is_floating_point:
                value = torch.randn(spec.shape, generator=generator, dtype=dtype)
            else:
                value = torch.randint(0, 2, spec.shape, generator=generator, dtype=dtype)
            found.append(value.to(device))
        return found
