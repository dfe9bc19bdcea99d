"""Makes operators of launches that bypass PyTorch's dispatcher: Triton kernels, programs of Inductor, CUDA graph replays.

Each launch becomes a call of an operator that launches it: ``triton::name``, ``inductor::program``, ``aoti::program``,
``cuda_graph::replay``.  A Triton kernel's operator has its name, its arguments and its grid.  So every recorder and counter
sees it, and within an operator of a library it belongs to that one, as any other call does.
Data that come in by DLPack or a buffer become a call of ``aten::lift_fresh``, as numpy's data are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from os import environ
from threading import Lock, local
from typing import Any, NamedTuple

import torch

from ....core.framework import absolute
from .. import LAUNCHES_COUNTED_BY

SPACE = "triton"
"""The namespace of the operators of its kernels: ``triton.name`` in a trace and in files of formulas."""
LAUNCHES = (SPACE, "inductor", "aoti", "cuda_graph")
"""The namespaces of all these operators."""
NOT_READ = "nothing here reads what it multiplies"
KINDS = {bool: "bool", int: "int", float: "float", str: "str"}
"""Types of arguments that stand in a record, and how a schema calls them."""
LARGEST = 1 << 63
"""What an ``int`` of a schema is less than."""

_now = local()
_lock = Lock()
_depth: list[int] = []
_held: list[tuple[Any, str, Any]] = []
_operators: dict[tuple[str, str, str], Any] = {}
_libraries: list[Any] = []


class CountedLaunch(NamedTuple):
    """What is known of a launch's work: ``inside``, as of an operator of another library (opened_kernels.py)."""

    inside: Any
    parts: tuple[()] = ()


def count_launch() -> CountedLaunch:
    """What the launch of a kernel that has ended on this thread multiplied, where something counts that."""
    return next((reader.count_launch() for reader in _readers()), CountedLaunch(NOT_READ))


def _readers() -> list[Any]:
    return [import_module(absolute(name)) for name in LAUNCHES_COUNTED_BY]


def may_launch() -> bool:
    """Whether a kernel of Triton can be launched here: on a GPU, or in its interpreter."""
    return SPACE in sys.modules or (
        (torch.cuda.is_initialized() or environ.get("TRITON_INTERPRET") == "1") and find_spec(SPACE) is not None
    )


def see() -> None:
    """From now on each launch is a call of an operator, until ``unsee`` was called as often."""
    with _lock:
        held = {(kind, name) for kind, name, _ in _held}
        for kind, name, around in _doors():
            if name in vars(kind) and (kind, name) not in held:
                _held.append((kind, name, vars(kind)[name]))
                setattr(kind, name, _wrap(vars(kind)[name], around))
        _depth.append(1)


def _wrap(run: Callable[..., Any], around: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: around(run, *args, **kwargs)


def is_launching() -> bool:
    """Whether something is being launched on this thread: at the first launch Triton starts its compiler."""
    return getattr(_now, "launch", None) is not None


def unsee() -> None:
    """See ``see``."""
    with _lock:
        _depth.pop()
        while _held and not _depth:
            kind, name, run = _held.pop()
            setattr(kind, name, run)


def _doors() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Each class and its method that launches, and what makes an operator of a call: it gets the method, then the arguments."""
    kernels = [door for reader in (_readers() if may_launch() else []) for door in reader.list_doors()]
    programs = [(kind, name, partial(_run_program, "aoti")) for kind in _runners() for name in ("run", "boxed_run")]
    programs += [(kind, "__call__", partial(_run_program, "inductor")) for kind in _graphs()]
    others = [(torch.cuda.CUDAGraph, "replay", _replay)]
    back = [(torch._C, "_from_dlpack", _lift), (torch, "frombuffer", _lift)]
    return [*kernels, *programs, *others, *back]


def _runners() -> list[Any]:
    """PyTorch's classes that run what AOTInductor compiled (torch/csrc/inductor/aoti_package/pybind.cpp)."""
    module = getattr(torch._C, "_aoti", None)
    return [kind for kind in vars(module).values() if isinstance(kind, type) and "run" in vars(kind)] if module else []


def _graphs() -> list[Any]:
    """Inductor's class of compiled graphs, if it is loaded. A graph that torch.compile holds runs as it is written instead; one
    that was compiled ahead (``torch._inductor.compile``, ``standalone_compile``) has fused kernels that are in no operator."""
    kind = getattr(sys.modules.get("torch._inductor.output_code"), "CompiledFxGraph", None)
    return [] if kind is None else [kind]


def _run_program(space: str, run: Callable[..., Any], self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    if is_launching():
        return run(self, inputs, *args, **kwargs)
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    return call_as_operator(space, "program", {"inputs": tensors}, lambda: run(self, inputs, *args, **kwargs))


def _replay(replay: Callable[..., Any], self: Any) -> Any:
    return replay(self) if is_launching() else call_as_operator("cuda_graph", "replay", {}, lambda: replay(self))


def _lift(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return torch.ops.aten.lift_fresh.default(make(*args, **kwargs))


def call_as_operator(space: str, name: str, given: dict[str, Any], launch: Callable[[], Any]) -> Any:
    """What ``launch`` returns, called by an operator of that name with these arguments."""
    results: list[Any] = []

    def launch_program() -> Any:
        results.append(launch())
        return results[0]

    _now.launch = launch_program
    try:
        _call(space, name, given)
    finally:
        _now.launch = None
    return results[0] if results else None


def kind_of(value: Any) -> str:
    """The type of an argument in a schema; '' for one that no schema takes."""
    if isinstance(value, torch.Tensor):
        return "Tensor"
    if isinstance(value, list) and value and all(isinstance(each, torch.Tensor) for each in value):
        return "Tensor[]"
    if isinstance(value, list) and all(isinstance(size, int) for size in value):
        return "int[]"
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:  # an address, say
        return ""
    return KINDS.get(type(value), "")


def _call(space: str, name: str, given: dict[str, Any]) -> None:
    """Call the operator that launches what is to be launched now; it returns the tensors that come of it."""
    schema = ", ".join(f"{kind_of(value)} {argument}" for argument, value in given.items())
    operator = _operators.get((space, name, schema))
    if operator is None:
        overload = f"of{len(_operators)}"
        library = torch.library.Library(space, "FRAGMENT")
        library.define(f"{name}.{overload}({schema}) -> Tensor[]")
        library.impl(f"{name}.{overload}", _note_launch, "CompositeExplicitAutograd")
        library.impl(f"{name}.{overload}", torch.library.fallthrough_kernel, "Autograd")  # gradients pass it by, too
        _libraries.append(library)  # an operator lives as long as its library
        operator = getattr(getattr(getattr(torch.ops, space), name), overload)
        _operators[space, name, schema] = operator
    operator(*given.values())


def _note_launch(*_: Any) -> list[torch.Tensor]:
    made = _now.launch()
    return [value for value in made if isinstance(value, torch.Tensor)] if isinstance(made, (list, tuple)) else []
