"""Detects values that leave PyTorch as an array or a list: no dispatcher sees what is computed of them. In a call that can be
made twice, seal.py finds that and more. Within ``keep_numbers``, tensors on meta keep the whole numbers that the program makes
them of, and ``numbers_of`` reads them.

A tensor of floating numbers leaves by the methods of ``LEAVING``; floating data come back where PyTorch calls ``lift_fresh``
(launches.py makes such a call for DLPack and buffers). Single numbers (``item``), whole numbers and shapes do not count as data:
decisions that a program takes on them are no work of the model.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable

import torch

from .wrapped_functions import wrap_function

LEAVING = ("numpy", "tolist", "__array__", "__dlpack__")
"""Methods of tensors by which values leave."""
BY_ADDRESS = ("data_ptr", "untyped_storage", "storage", "__reduce_ex__")
"""Methods of tensors by which their memory is found, or saved."""
PACKAGE = __name__.partition(".")[0]
MAKING = ("tensor", "as_tensor", "asarray")
"""Functions that make tensors of numbers."""
NUMBERS = "_reconcile_numbers"
"""Attribute of a tensor on meta: the program's own numbers, which it was made of, and the version that had them."""


def is_data(value: Any) -> bool:
    """Whether it is a tensor of several numbers that are no whole ones."""
    if not isinstance(value, torch.Tensor) or value.is_meta or value.numel() < 2:
        return False
    return value.is_floating_point() or value.is_complex()


def list_capsules() -> list[tuple[Any, str]]:
    """Functions by which values leave as ``__dlpack__`` lets them: where each stands, and its name."""
    owners = (torch._C, torch, torch.utils.dlpack)
    return [(owner, name) for owner in owners for name in vars(owner) if "to_dlpack" in name]


@contextmanager
def watch_leaving(note: Callable[[Any], None], names: Sequence[str] = LEAVING) -> Iterator[None]:
    """Within this, ``note(tensor)`` is called where values leave by these methods, and by functions that do what these do."""

    def watch(function: Any) -> Any:
        @functools.wraps(function)
        def leave_watched(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] != PACKAGE:
                note(tensor)
            return function(tensor, *args, **kwargs)

        return leave_watched

    with ExitStack() as stack:
        methods = [(torch.Tensor, name) for name in names if hasattr(torch.Tensor, name)]
        for owner, name in methods + list_capsules() * ("__dlpack__" in names):
            stack.enter_context(wrap_function(owner, name, watch))
        yield


@contextmanager
def keep_numbers() -> Iterator[None]:
    """Within this, tensors of whole numbers on meta keep the numbers that the program makes them of.

    No mode of functions does it: PyTorch takes no fast path within one.
    """
    with ExitStack() as stack:
        for name in MAKING:
            if hasattr(torch, name):
                stack.enter_context(wrap_function(torch, name, _keep_numbers))
        yield


def _keep_numbers(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def make_kept(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        numbers = args[0] if args and isinstance(args[0], (list, tuple)) else (None,)
        if made.is_meta and not made.is_floating_point() and all(isinstance(number, int) for number in numbers):
            with suppress(RuntimeError):  # in inference mode it has no version
                setattr(made, NUMBERS, (tuple(numbers), made._version))
        return made

    return make_kept


def numbers_of(tensor: torch.Tensor) -> list[int] | None:
    """The whole numbers of a tensor of one dimension; on meta those that the program made it of, and None once it wrote others
    into it, or if it computed them."""
    if not tensor.is_meta:
        values: list[int] = tensor.tolist()
        return values
    numbers, version = getattr(tensor, NUMBERS, ((), None))
    return list(numbers) if version is not None and version == tensor._version else None
