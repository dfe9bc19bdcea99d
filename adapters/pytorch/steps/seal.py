"""The seal of a program's own step: tells memory that something else than an operator wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ....core.message import first_line
from ....core.records import Problem
from ..tracing.groups import is_shared
from ..tracing.records import storage_of, tensors_in
from ..tracing.seal import CALLED, CHANGED_MEMORY, COMPUTED, Entry, Seal, name_reader

NOT_LOOKED_AT = "nothing shows that operators alone wrote the step's memory, which cannot be read: %s"


class StepSeal(Seal):
    """Of a program's step, which cannot be made twice: tells memory that an operator left, or that is a model's own, and that
    something else wrote. Other memory is the program's data, which it may load anew. It never raises into the program.

    ``is_state(key)`` says whether a storage is of a model's weights or buffers.
    """

    is_repeated = False

    def __init__(self, layer: Callable[[], str], is_state: Callable[[int], bool]) -> None:
        super().__init__(memory=not is_shared())
        self.layer, self.is_state = layer, is_state
        self._loaded: set[int] = set()  # storages of the program's data
        self._failed = ""

    def hold_inputs(self, tensors: list[torch.Tensor]) -> None:
        """A model is called with these."""
        self.check(tensors, CALLED)

    def problems(self) -> list[Problem]:
        """What was computed outside, or why that cannot be told."""
        if self._failed:
            return [Problem("", COMPUTED, "", self._failed)]
        return list(dict.fromkeys(entry.problem() for entry in self.entries))

    def check_call(self, func: Any, args: Any, kwargs: Any, within: bool) -> None:
        """See Seal."""
        if not within:
            self.check(tensors_in([*args, *kwargs.values()]), func)

    def keep_call(self, func: Any, args: Any, kwargs: Any, out: Any, within: bool) -> None:
        """See Seal."""
        try:
            super().keep_call(func, args, kwargs, out, within)
        except Exception as error:
            self._fail(error)

    def check(self, tensors: Any, reader: Any) -> None:
        """See Seal."""
        try:
            super().check(tensors, reader)
        except Exception as error:
            self._fail(error)

    def _meet(self, tensor: torch.Tensor, key: int, size: int, found: int, reader: Any) -> None:
        if not self.is_state(key):
            self._loaded.add(key)

    def _enter(self, tensor: torch.Tensor, layer: str, reader: Any, reason: str) -> None:
        if reason == CHANGED_MEMORY and storage_of(tensor)[0] not in self._loaded:
            self.entries.append(Entry(layer, name_reader(reader), reason, None))

    def _fill(self, tensors: list[torch.Tensor]) -> None:
        """See Seal: there is no other call."""

    def _fail(self, error: Exception) -> None:
        self.memory, self._failed = False, NOT_LOOKED_AT % f"{type(error).__name__}: {first_line(error)}"
