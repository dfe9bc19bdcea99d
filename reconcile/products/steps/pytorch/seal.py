"""The seal of a program's own step: tells what something else than an operator computed, as far as one call can tell."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from ....adapters.pytorch.tracing.groups import is_shared
from ....adapters.pytorch.tracing.launches import is_launching
from ....adapters.pytorch.tracing.numpy_crossings import is_data
from ....adapters.pytorch.tracing.operator_facts import find_facts
from ....adapters.pytorch.tracing.records import storage_of
from ....adapters.pytorch.tracing.seal import (
    CALLED,
    CHANGED_MEMORY,
    COMPUTED,
    FEW,
    Entry,
    Seal,
    name_reader,
    never_raise,
)
from ....core.records import Problem

VALUES_LEFT_PYTORCH = (
    "its values left PyTorch here, as an array or a list, and data came back later: the work in between is not recorded"
)


class Crossings:
    """Where values left, in the order of the step, and which of these layers got data back."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.back: list[str] = []

    def note_left(self, value: Any, layer: str) -> None:
        """The values of a tensor leave in this layer."""
        if is_data(value):
            self.left.append(layer)

    def note_lifted(self, value: Any) -> None:
        """A tensor was made of fresh data."""
        if self.left and is_data(value):
            self.note_returned()

    def note_returned(self) -> None:
        """Data came back."""
        self.back, self.left = self.back + self.left, []


class StepSeal(Seal):
    """Of a program's step, which cannot be made twice. Memory that an operator left, or that is a model's own, must not change in
    between. Other memory is the program's data, which it may load anew, but not after values left PyTorch (``crossings``):
    they would be these values. It never raises into the program.
    """

    is_repeated = False

    def __init__(self, recorder: Any) -> None:  # a StepRecorder, whose file imports this one
        super().__init__(memory=not is_shared())
        self.recorder, self.layer, self.crossings = recorder, recorder.where, recorder.crossings
        self._loaded: set[int] = set()  # storages of the program's data
        self._taken = Counter[int]()  # numbers that left by item(), by storage
        self._numbers: set[Any] = set()  # that came in after values left
        self._steps_leave = False  # whether values left within an optimizer's step, whose numbers are else its settings

    def hold_inputs(self, tensors: list[torch.Tensor]) -> None:
        """A model is called with these."""
        self.check(tensors, CALLED)

    @never_raise
    def note_left(self, tensor: Any) -> None:
        """See Seal. The program may compute with its own data as it likes, but not within a model."""
        if isinstance(tensor, torch.Tensor) and (not self.memory or self.recorder.is_within or self._is_made(tensor)):
            self._steps_leave |= self.recorder.is_stepping
            self.crossings.note_left(tensor, self.layer())

    _note_array = note_left

    @never_raise
    def note_address(self, tensor: Any) -> None:
        """The memory of a tensor is asked for. That of weights is, where a program saves them, and any by a launch."""
        saved = isinstance(tensor, torch.Tensor) and self.recorder.is_weight(storage_of(tensor)[0])
        if self.memory and not saved and not is_launching():
            self.note_left(tensor)

    def problems(self) -> list[Problem]:
        """What was computed outside, or why that cannot be told."""
        if self.failed:
            return [Problem("", COMPUTED, "", self.failed)]
        return list(dict.fromkeys(entry.problem() for entry in self.entries))

    @never_raise
    def check_call(self, func: Any, args: Any, kwargs: Any, within: bool) -> None:
        """See Seal."""
        if within:
            return
        if find_facts(func).takes_number and self._is_made(args[0]):
            key, _ = storage_of(args[0])
            self._taken[key] += 1
            if self._taken[key] == FEW + 1:
                self.crossings.left.append(self.layer())
        if self._may_return:
            self.check_numbers(func, args, kwargs)
        self.check_tensors(func, args, kwargs)

    def check_wrapped(self, values: Any, reader: Any) -> None:
        """See Seal: there is no other call."""

    @property
    def _may_return(self) -> bool:
        """Whether what comes in may be values that left."""
        return bool(self.crossings.left) and (self._steps_leave or not self.recorder.is_stepping)

    def _is_made(self, tensor: torch.Tensor) -> bool:
        """Whether an operator left it, or it is a model's own."""
        key, _ = storage_of(tensor)
        return key is not None and (self.recorder.is_weight(key) or (key in self._held and key not in self._loaded))

    def _meet(self, tensor: torch.Tensor, key: int, size: int, found: int, reader: Any) -> None:
        if not self.recorder.is_weight(key):
            self._loaded.add(key)
            self._note_data(tensor, found)

    def _enter(self, tensor: torch.Tensor, layer: str, reader: Any, reason: str, seen: bool = False) -> None:
        if storage_of(tensor)[0] in self._loaded:
            self._note_data(tensor, None)
        elif reason == CHANGED_MEMORY:
            self.entries.append(Entry(layer, name_reader(reader), reason, None))

    def _note_data(self, tensor: torch.Tensor, found: Any) -> None:
        """The program's data came in, or others into its memory: single numbers, or several."""
        if self._may_return:
            if tensor.numel() == 1 and tensor.is_floating_point():
                self._add_number(found)
            self.crossings.note_lifted(tensor)

    def _add(self, entry: Entry, seen: bool = False) -> None:
        if isinstance(entry.value, (float, complex)) and (type(entry.value), entry.value) not in self.left:
            self._add_number(entry.value)

    def _add_number(self, value: Any) -> None:
        self._numbers.add(value)
        if len(self._numbers) == FEW + 1:
            self.crossings.note_returned()

    def _fill(self, tensors: list[torch.Tensor]) -> None:
        """See Seal: there is no other call."""
