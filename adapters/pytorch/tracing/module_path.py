"""The layer of each op: paths of all modules of a model, and process-wide hooks that tell whose forward is running."""

import threading
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Dict, Iterator, List, Set

import torch
from torch.nn.modules import module as module_hooks

from ...shared import keras_model
from ..call_adapter import hooked_after, hooked_before

HAS_META = hasattr(getattr(torch, "device", None), "__enter__")
"""Whether a model can be made on meta from the start, and a hook be put before others (PyTorch 2.0)."""


def module_paths(root: torch.nn.Module) -> Dict[torch.nn.Module, str]:
    """Every module with its path, of a shared one the first; '' for the root.

    A Keras layer holds others in lists, where PyTorch does not find them; below it, they go by the names that Keras gives
    them, as they do in TensorFlow. One that Keras does not list (a sequential model's functional one) is part of it.
    """
    found: Dict[torch.nn.Module, str] = {}
    stack = [("", root)]
    while stack:
        path, module = stack.pop()
        if module in found:
            continue
        found[module] = path
        below = list(module.named_children())
        if keras_model.keras_of(module, "Layer"):
            listed = [(sub.name, sub) for sub in keras_model.children(module)]
            below = listed + [("" if keras_model.keras_of(sub, "Layer") else name, sub) for name, sub in below]
        stack.extend((".".join(filter(None, (path, name))), sub) for name, sub in reversed(below))
    return found


class AfterForward(str):
    """The path of a module whose forward is done: the model's own hooks on it are running."""


class ModulePath:
    """Path of the module whose forward is running: of a shared module the first name, '' for the root.

    Hooks of the process, not of the modules: nn.TransformerEncoderLayer takes another path where a hook is attached to
    it, and a counter would see what it does not see for its users.  A module that has hooks already gets one of this class
    after them: what its own forward hooks compute is part of it, and hooks of the process would have left it by then.
    """

    always = False
    """Whether a call that an exception ends is left, too (PyTorch 2.1)."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.root = root
        self._names = module_paths(root)
        self._hooked = {m for m in self._names if m._forward_pre_hooks or m._forward_hooks}
        self._stacks: Dict[int, List[str]] = {}  # by thread
        self._followed: Set[int] = set()
        self._handles: List[Any] = []
        self.threads: Set[int] = set()  # whose ops are recorded, by the system's number
        self.unseen: List[str] = []  # modules that were called on unknown threads
        self.scripts: Dict[torch.nn.Module, str] = {}  # those of TorchScript that were called, and their paths

    @property
    def modules(self) -> List[torch.nn.Module]:
        """Every module of the model, once."""
        return list(self._names)

    @property
    def current(self) -> str:
        """Dotted path of the innermost module that this thread is running."""
        return self.running_paths[-1]

    @property
    def running_paths(self) -> List[str]:
        """Paths of the modules that this thread is running, outermost first."""
        return self._stacks.get(get_ident(), [""])

    @contextmanager
    def within(self, layer: str) -> Iterator[None]:
        """On this thread: what it runs is that module's, as far as it calls no other."""
        self._follow(layer)
        try:
            yield
        finally:
            del self._stacks[get_ident()]
            self._followed.discard(get_ident())

    def _follow(self, layer: str) -> None:
        self._stacks[get_ident()] = [layer]
        self._followed.add(get_ident())
        self.threads.add(getattr(threading, "get_native_id", get_ident)())

    def __enter__(self) -> "ModulePath":
        self._follow("")
        self._handles.append(module_hooks.register_module_forward_pre_hook(self._push_unhooked))
        self._handles.append(module_hooks.register_module_forward_hook(self._pop_unhooked, **self._after()))
        for module in list(self._hooked):
            self._hook(module)
        return self

    def _after(self) -> Dict[str, Any]:
        return {"always_call": True} if self.always else {}

    def _hook(self, module: torch.nn.Module) -> None:
        self._hooked.add(module)
        self._handles.append(hooked_before(module, self._push))
        if HAS_META:  # as old as the argument
            self._handles.append(hooked_after(module, self._mark_after_forward, prepend=True))
        self._handles.append(hooked_after(module, self._pop, **self._after()))

    def _push_unhooked(self, module: torch.nn.Module, inputs: Any) -> None:
        if module not in self._hooked:
            self._push(module, inputs)

    def _pop_unhooked(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        if module not in self._hooked:
            self._pop(module, inputs, outputs)

    def _push(self, module: torch.nn.Module, _inputs: Any) -> None:
        path = self._names.get(module, self.current)  # made in a forward: its maker's
        if get_ident() not in self._followed:
            self.unseen.append(path)
        if isinstance(module, torch.jit.ScriptModule):
            self.scripts.setdefault(module, path)
        self._stacks.setdefault(get_ident(), [""]).append(path)

    def _mark_after_forward(self, _module: Any, _inputs: Any, _outputs: Any) -> None:
        running = self._stacks[get_ident()]
        running[-1] = AfterForward(running[-1])

    def _pop(self, _module: Any, _inputs: Any, _outputs: Any) -> None:
        self._stacks[get_ident()].pop()

    def __exit__(self, *exc: Any) -> None:
        for handle in self._handles:
            handle.remove()
