"""Deep copy of a user's module for one counter that keeps hooks, attributes and replaced methods working.

``copy.deepcopy`` loses a parameter's hooks and attributes, and copies no functions: a hook that a user wrote refers to the
first model's parts, and would ask ``p is model.head.weight`` of a copy.  Such a function is copied as well, with copies of the
parts that it refers to.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import ref

import torch

from .module_tensors import tensors_of

DEPTH = 4
"""Containers within containers through which a function's references are followed."""


def copy_module(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of the module; where new tensors are made on meta, without a copy of its weights."""
    memo: dict[int, Any] = {}
    if torch.empty(()).is_meta:
        memo.update(_copy_to_meta(model))
    parts = {id(part) for part in [*model.modules(), *tensors_of(model)]}
    rebound = [function for function in _functions(model) if _refers_to(function, parts)]
    for function in rebound:
        memo[id(function)] = _copy_empty(function)
    with _functions_in_memo():
        made = copy.deepcopy(model, memo)
        for function in rebound:
            _fill_copy(function, memo, parts)
        for tensor in tensors_of(model):
            if type(tensor) is torch.nn.Parameter and id(tensor) in memo:
                _copy_attributes(tensor, memo[id(tensor)], memo)
        for tensor in tensors_of(made):
            if not tensor.is_leaf:  # of a script: a clone, whose gradients would go to the caller's own weights
                tensor.detach_().requires_grad_()
    for module in made.modules():
        for name, value in vars(module).items():
            if isinstance(value, ref) and id(value()) in memo:
                vars(module)[name] = ref(memo[id(value())])
    return made


@contextmanager
def _functions_in_memo() -> Iterator[None]:
    """Within this block ``copy.deepcopy`` asks its memo for functions as well: from Python 3.14 on it would return them first."""
    atomic: set[type] = getattr(copy, "_atomic_types", set())
    if FunctionType not in atomic:
        yield
        return
    atomic.remove(FunctionType)
    copy._deepcopy_dispatch[FunctionType] = lambda function, memo: function  # type: ignore[attr-defined]
    try:
        yield
    finally:
        atomic.add(FunctionType)
        del copy._deepcopy_dispatch[FunctionType]  # type: ignore[attr-defined]


def _copy_to_meta(model: torch.nn.Module) -> dict[int, torch.Tensor]:
    """Tensor's id -> its copy on meta."""
    copies: dict[int, torch.Tensor] = {}
    for tensor in tensors_of(model):
        if type(tensor) is torch.nn.Parameter:
            copies[id(tensor)] = torch.nn.Parameter(tensor.detach().to("meta"), tensor.requires_grad)
        elif type(tensor) is torch.Tensor:
            copies[id(tensor)] = tensor.to("meta")
    return copies


def _copy_attributes(parameter: torch.nn.Parameter, made: torch.Tensor, memo: dict[int, Any]) -> None:
    """Give a copied parameter what its original has beside its values: attributes, and hooks on its gradient."""
    for name, value in vars(parameter).items():
        if name not in vars(made):
            setattr(made, name, copy.deepcopy(value, memo))
    if parameter.requires_grad:
        for hook in (parameter._backward_hooks or {}).values():
            made.register_hook(copy.deepcopy(hook, memo))
        for hook in (getattr(parameter, "_post_accumulate_grad_hooks", None) or {}).values():
            made.register_post_accumulate_grad_hook(copy.deepcopy(hook, memo))


# Functions.


def _functions(model: torch.nn.Module) -> list[FunctionType]:
    """The functions that hang on a model: hooks, and methods that were replaced."""
    found: dict[int, FunctionType] = {}
    held = [value for module in model.modules() for value in vars(module).values()]
    for tensor in tensors_of(model):
        held += [tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None), vars(tensor)]
    for value in _walk(held, DEPTH, set()):
        if isinstance(value, FunctionType):
            found[id(value)] = value
    return list(found.values())


def _walk(value: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """A value and what it holds: items of containers, parts of partial functions and methods, what functions refer to."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if depth:
        for item in _held_values(value):
            yield from _walk(item, depth - isinstance(value, (dict, list, tuple, set, frozenset)), seen)


def _held_values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, FunctionType):
        return _references(value)
    held = [
        getattr(value, name) for name in ("__func__", "__self__", "func", "args", "keywords") if _is_call(value, name)
    ]
    if isinstance(value, torch.optim.Optimizer):
        held += [group["params"] for group in value.param_groups]
    return held


def _is_call(value: Any, name: str) -> bool:
    """Whether it is a method or a partial function with that part."""
    return type(value).__name__ in ("method", "partial") and hasattr(value, name)


def _references(function: FunctionType) -> list[Any]:
    """What a function refers to: its closure, its defaults, and the globals that it names."""
    named = _named_globals(function)
    cells = [cell.cell_contents for cell in function.__closure__ or () if not _is_empty(cell)]
    return [*cells, function.__defaults__, function.__kwdefaults__, *named.values()]


def _named_globals(function: FunctionType) -> dict[str, Any]:
    """The globals that a function names and that hold data: no modules of Python, classes or functions of a library."""
    names = set(_names(function.__code__))
    data = (torch.nn.Module, torch.Tensor, torch.optim.Optimizer, dict, list, tuple, set)
    return {n: v for n, v in function.__globals__.items() if n in names and isinstance(v, data)}


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_empty(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False


def _refers_to(function: FunctionType, parts: set[int]) -> bool:
    """Whether a function refers to a part of the model."""
    return any(id(value) in parts for value in _walk(_references(function), DEPTH, set()))


def _copy_empty(function: FunctionType) -> FunctionType:
    """A copy of a function that refers to nothing yet."""
    closure = None if function.__closure__ is None else tuple(CellType() for _ in function.__closure__)
    made = FunctionType(function.__code__, dict(function.__globals__), function.__name__, None, closure)
    made.__qualname__ = function.__qualname__
    return made


def _fill_copy(function: FunctionType, memo: dict[int, Any], parts: set[int]) -> None:
    """Let the copy of a function refer to copies of what the function refers to."""
    made: FunctionType = memo[id(function)]
    made.__defaults__ = copy.deepcopy(function.__defaults__, memo)
    made.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__, memo)
    made.__dict__.update(copy.deepcopy(vars(function), memo))
    for cell, new in zip(function.__closure__ or (), made.__closure__ or (), strict=True):
        if not _is_empty(cell):
            new.cell_contents = copy.deepcopy(cell.cell_contents, memo)
    for name, value in _named_globals(function).items():
        if any(id(part) in parts for part in _walk(value, DEPTH, set())):
            made.__globals__[name] = copy.deepcopy(value, memo)
