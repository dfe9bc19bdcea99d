"""Detects tensors that leave PyTorch for numpy or DLPack and come back: no dispatcher sees the operations in between.

A tensor of floating numbers leaves by ``numpy()``, ``__array__`` or ``__dlpack__``; data come back where PyTorch calls
``lift_fresh`` on data that are no constant of the program (launches.py makes such a call for DLPack and buffers).  Single
numbers (``item``), lists (``tolist``) and shapes do not count as data: decisions that a program takes on them are no work of
the model.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable

import torch

from .wrapped_functions import wrap_function

VALUES_LEFT_PYTORCH = (
    "its values left PyTorch here, for numpy or by DLPack, and data came back later in the call: the work done in between is "
    "not recorded"
)
LEAVING = ("numpy", "__array__", "__dlpack__")
MAKING = ("tensor", "as_tensor", "asarray")
NUMBERS = "_reconcile_numbers"
"""Attribute of a tensor on meta: the program's own numbers, which it was made of, and the version that had them."""


class Crossings:
    """Where values left, in the order of the call, and which of these layers got arrays back."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.back: list[str] = []
        self.constant = False  # whether the program makes a tensor of its own numbers now
        methods = [getattr(torch.Tensor, name, None) for name in LEAVING]
        makers = [getattr(torch, name, None) for name in MAKING]
        # A mode of functions meets the originals, and another trace or step of this process may have wrapped them.
        self._leaving = {inspect.unwrap(method) for method in methods if method is not None}
        self._making = {inspect.unwrap(maker) for maker in makers if maker is not None}

    def concerns(self, func: Any) -> bool:
        """Whether a function takes values out of PyTorch or makes a tensor."""
        return func in self._leaving or func in self._making

    def call(
        self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], layer: str, leaves: bool | None = None
    ) -> Any:
        """Call such a function, and note that values left; a tensor that it makes of anything but an array is a constant.
        ``leaves`` says which of both it is, if that is known."""
        value = args[0] if args else None
        if func in self._leaving if leaves is None else leaves:
            if isinstance(value, torch.Tensor) and is_data(value) and (value.is_floating_point() or value.is_complex()):
                self.left.append(layer)
            return func(*args, **kwargs)
        self.constant = not type(value).__module__.startswith("numpy")
        try:
            return func(*args, **kwargs)
        finally:
            self.constant = False

    def note_lifted(self, value: Any) -> None:
        """A tensor was made of fresh data: of an array, if it is no constant."""
        if self.left and not self.constant and isinstance(value, torch.Tensor) and is_data(value):
            self.back, self.left = self.back + self.left, []


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


def is_data(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds more than one number."""
    return not tensor.is_meta and tensor.numel() > 1
