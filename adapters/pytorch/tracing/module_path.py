"""The layer of each op: paths of all modules of a model, and process-wide hooks that tell whose forward is running."""

import sys
import threading
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch.nn.modules import module as module_hooks

from ....core.records import ASIDE, DIRECT, IN_HOOK, PRE_HOOK, UNLISTED
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


class Aside(str):
    """The path of the module that runs, where what runs is not in the forward of its call; ``tag`` is an attribute of that."""

    tag: Tuple[str, Any]


def set_aside(path: str, tag: str, value: Any) -> Aside:
    """The path, with that attribute for what runs."""
    aside = Aside(path)
    aside.tag = (tag, value)
    return aside


def class_name(cls: type) -> str:
    """Module and qualified name of a class."""
    return cls.__module__ + "." + cls.__qualname__


def forwards_of(module: torch.nn.Module) -> Dict[int, str]:
    """The class of each function that may be the module's forward, by the id of its code, as frames have it: its own, its
    class's, and those of the classes above."""
    found: Dict[int, str] = {}
    for holder in type(module).__mro__ + (module,):
        function = vars(holder).get("forward")
        while function is not None:
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            found[id(code)] = class_name(holder if isinstance(holder, type) else type(module))
            function = getattr(function, "__wrapped__", None)
    return found


CALL = id(getattr(getattr(torch.nn.Module, "_call_impl", None), "__code__", None))


class ModulePath:
    """Path of the module whose forward is running: of a shared module the first name, '' for the root.

    Hooks of the process, not of the modules: nn.TransformerEncoderLayer takes another path where a hook is attached to
    it, and a counter would see what it does not see for its users.  A module that has hooks already gets one of this class
    after them: what its own forward hooks compute is part of it, and hooks of the process would have left it by then.
    """

    always = False
    """Whether a call that an exception ends is left, too (PyTorch 2.1)."""
    sets_aside = True
    """Whether it tells what runs in a module's call, but not in its forward."""

    fails: Optional[Callable[[Exception], None]] = None
    """What is told of an error here, in the step of a program; None where it is raised."""

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
        self._forwards = {path: forwards_of(module) for module, path in self._names.items()} if self.sets_aside else {}
        self._all_forwards = {code: name for found in self._forwards.values() for code, name in found.items()}

    @property
    def modules(self) -> List[torch.nn.Module]:
        """Every module of the model, once."""
        return list(self._names)

    def count_parameters(self) -> Dict[str, int]:
        """The elements of the parameters that each layer owns, a shared one's under its first path; empty where this process has
        only a part of one (FSDP, ZeRO), or one has no size yet."""
        seen: Set[torch.Tensor] = set()
        found: Dict[str, int] = {}
        for module, path in self._names.items():
            for parameter in set(module.parameters(recurse=False)) - seen:
                if any(hasattr(parameter, name) for name in ("_fsdp_flattened", "ds_id", "materialize")):
                    return {}
                seen.add(parameter)
                found[path] = found.get(path, 0) + parameter.numel()
        return found

    @property
    def current(self) -> str:
        """Dotted path of the innermost module that this thread is running."""
        path = self.running_paths[-1]
        own = self._forwards.get(path)
        frame: Any = None if own is None or isinstance(path, Aside) else sys._getframe(1)
        while own and frame is not None:
            code = id(frame.f_code)
            if code in own or code == CALL:
                break
            if code in self._all_forwards:
                return set_aside(path, ASIDE, (DIRECT, self._all_forwards[code]))
            frame = frame.f_back
        return path

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
        push, pop = partial(self.attempt, self._push_unhooked), partial(self.attempt, self._pop_unhooked)
        after = self._after()  # before any hook is there: where this fails, nothing takes them away
        self._handles.append(module_hooks.register_module_forward_pre_hook(push))
        self._handles.append(module_hooks.register_module_forward_hook(pop, **after))
        for module in list(self._hooked):
            self._hook(module)
        return self

    def _after(self) -> Dict[str, Any]:
        return {"always_call": True} if self.always else {}

    def _hook(self, module: torch.nn.Module) -> None:
        self._hooked.add(module)
        if HAS_META and module._forward_pre_hooks and self.sets_aside:  # as old as the argument
            self._handles.append(hooked_before(module, partial(self.attempt, self._mark_before_forward), prepend=True))
        self._handles.append(hooked_before(module, partial(self.attempt, self._push)))
        if HAS_META:
            self._handles.append(hooked_after(module, partial(self.attempt, self._mark_after_forward), prepend=True))
        self._handles.append(hooked_after(module, partial(self.attempt, self._pop), **self._after()))

    def attempt(self, note: Callable[..., Any], *args: Any) -> Any:
        """The result of ``note(*args)``, which runs nothing of a program; None where it fails, which ``fails`` is told of."""
        try:
            return note(*args)
        except Exception as error:
            if self.fails is None:
                raise
            self.fails(error)
            return None

    def _push_unhooked(self, module: torch.nn.Module, inputs: Any) -> None:
        if module not in self._hooked:
            self._push(module, inputs)

    def _pop_unhooked(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        if module not in self._hooked:
            self._pop(module, inputs, outputs)

    def _push(self, module: torch.nn.Module, _inputs: Any) -> None:
        path = self._names.get(module)
        if path is None:  # made in a forward, or kept where no module looks: its caller's
            path = self.running_paths[-1]
            if self.sets_aside and not isinstance(path, Aside):
                path = set_aside(path, ASIDE, (UNLISTED, class_name(type(module))))
        if get_ident() not in self._followed:
            self.unseen.append(path)
        if isinstance(module, torch.jit.ScriptModule):
            self.scripts.setdefault(module, path)
        running = self._stacks.setdefault(get_ident(), [""])
        if getattr(running[-1], "tag", None) == (ASIDE, (PRE_HOOK, path)):
            running.pop()
        running.append(path)

    def _mark_before_forward(self, module: torch.nn.Module, _inputs: Any) -> None:
        running = self._stacks.setdefault(get_ident(), [""])
        running.append(set_aside(running[-1], ASIDE, (PRE_HOOK, self._names[module])))

    def _mark_after_forward(self, _module: Any, _inputs: Any, _outputs: Any) -> None:
        running = self._stacks[get_ident()]
        running[-1] = set_aside(running[-1], IN_HOOK, True)

    def _pop(self, _module: Any, _inputs: Any, _outputs: Any) -> None:
        self._stacks[get_ident()].pop()

    def __exit__(self, *exc: Any) -> None:
        for handle in self._handles:
            handle.remove()
