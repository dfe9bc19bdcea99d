"""Opens operators of other libraries: records what their kernels dispatch (``torch.library.custom_op``, ``Library.impl``, C++).

The record of such an operator has the ops that ran in its kernel (``INSIDE``), provided that they are all of its work: a seal of
its own follows the kernel, and memory or numbers that no operator made end it. The record then has the reason instead. A formula
of the operator comes before both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch

from ....core.records import INPUT_GRADIENT, INSIDE, REST, Op
from .call_records import registered_places, source_folder
from .dispatched_calls import ATEN, DispatchedCall, Tally
from .followed_calls import pass_autograd
from .groups import PROCESSES
from .launches import LAUNCHES
from .numpy_crossings import BY_ADDRESS, LEAVING, is_data, watch_leaving
from .operator_facts import find_facts
from .records import storage_of, tensors_in
from .seal import FEW, Entry, Seal, name_reader, never_raise
from .tensor_memory import leaves_of

LIFTED = "aten::lift_fresh"
"""The operator by which data of the program become a tensor."""
BY_VALUES = ("aten::linalg_matrix_exp",)
"""Operators of PyTorch whose kernel takes as many products as the values of a matrix ask for."""
NO_KERNELS = ("debug", "Meta", "Autograd", "ADInplaceOrView")
"""What an operator's registrations name beside the kernels that compute it."""
FAKE_RAN = (
    "only its register_fake ran, on tensors that have no values, which shows no work: its kernel is followed where it runs, on "
    "the CPU or a GPU"
)
BENEATH_ANOTHER_MODE = "another mode of PyTorch was entered around the recorder, and would not meet it"
CANNOT_BE_FOLLOWED = "its kernel cannot be followed by this PyTorch, or on tensors without values"
READS_NOTHING = "its kernel calls no operator of PyTorch on what it is given"
OTHER_VALUES = "%s got values that no operator of PyTorch made within its kernel: what computed them is not recorded"


class Part(NamedTuple):
    """An op and the tensors that went in and came out, which are kept in a backward pass alone.

    Attributes:
        op: The record, without an id.
        inputs: Empty, or the tensors.
        outputs: The same of what it returns.
        whole: The record of the operator in whose kernel it ran.
    """

    op: Op
    inputs: list[Any]
    outputs: list[Any]
    whole: Op | None = None


class Kernels(NamedTuple):
    """What is registered for an operator: whether all its kernels are Python, whether one is for tensors without values, and
    whether it has gradients of its own."""

    are_python: bool
    has_fake: bool
    have_gradients: bool


@cache
def has_parts(func: Any) -> bool:
    """Whether PyTorch itself does not declare an operator, or values decide what its kernel calls."""
    if func._schema.name in BY_VALUES:
        return True
    if func.namespace in (*ATEN, *PROCESSES, *LAUNCHES):
        return False
    folder = source_folder()
    return not any(folder and key == "debug" and place.startswith(folder) for key, place in registered_places(func))


def _kernels_of(func: Any) -> Kernels:
    places = registered_places(func)
    kernels = [place for key, place in places if not key.startswith(NO_KERNELS)]
    are_python = all(re.search(r"\.py:\d+$|^<", place) for place in kernels)
    keys = [key for key, _ in places]
    return Kernels(are_python, "Meta" in keys, any(key.startswith("Autograd") for key in keys))


class KernelSeal(Seal):
    """Follows one kernel: ``failed`` says what came in that no operator made. It shares the memory of the seal around it, which
    tells by another call whether a table that a kernel in Python reads was computed from inputs."""

    is_repeated = False

    def __init__(self, around: Seal | None, is_python: bool, given: list[Any]) -> None:
        super().__init__()
        self.is_python, self._given = is_python, {value for value in given if type(value) in (float, complex)}
        self._has_left, self._items = False, 0
        self._outer: Seal | None = around._outer if isinstance(around, KernelSeal) else around
        if self._outer is not None and not (is_python and self._outer.is_repeated):  # no other call tells it anything
            self._outer = None
        if around is not None:
            self.layer, self.memory, self._held, self._at = around.layer, around.memory, around._held, around._at
            self.left, self.items, self._replayed = around.left, around.items, around._replayed
            self.failed = around.failed
        self.hold(tensors_in(given))

    @never_raise
    def note_left(self, tensor: Any) -> None:
        """See Seal."""
        self._has_left |= is_data(tensor)

    _note_array = note_left

    @never_raise
    def check_call(self, func: Any, args: Any, kwargs: Any, within: bool) -> None:
        """See Seal. A few numbers of the program may become a tensor, as long as no values have left, where no other call tells
        whether they are constants."""
        self._items += find_facts(func).takes_number
        self._has_left |= self._items > FEW
        may_be_few = self.is_python and self._outer is None and not self._has_left
        if may_be_few and func._schema.name == LIFTED and args[0].numel() <= FEW:
            self.hold([args[0]])
        self.check_numbers(func, args, kwargs)
        if not within:
            self.check_tensors(func, args, kwargs)

    @never_raise
    def check_returned(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """The kernel returns this, and may have written what it was given."""
        self.check(tensors_in([*args, *kwargs.values(), out]), func)
        if not self.memory:
            self.failed = self.failed or CANNOT_BE_FOLLOWED
        has_numbers = any(type(value) in (int, float, complex) for value in leaves_of(out))
        if has_numbers and (self._has_left or not self.is_python):
            self._fail(func)

    def _fail(self, reader: Any) -> None:
        self.failed = self.failed or OTHER_VALUES % name_reader(reader)

    def _meet(self, tensor: torch.Tensor, key: int, size: int, found: int, reader: Any) -> None:
        if self._outer is not None and not self._has_left:
            self._outer._meet(tensor, key, size, found, reader)
        else:
            self._fail(reader)

    def _enter(self, tensor: torch.Tensor, layer: str, reader: Any, reason: str, seen: bool = False) -> None:
        self._fail(reader)

    def _add(self, entry: Entry, seen: bool = False) -> None:
        if self._outer is not None and not self._has_left:
            self._outer._add(entry, seen)
        elif type(entry.value) in (float, complex) and entry.value not in self._given:
            self._entered.add(entry.value)
            if not self.is_python or self._has_left or len(self._entered) > FEW:
                self._fail(entry.reader)


class OpenedKernel:
    """The kernel of one call of an operator: the ops that it dispatches, and ``inside``, which the operator's record shows.

    ``inside`` is the reason from the start where the kernel cannot be followed. ``has_gradients`` says that autograd follows what
    the kernel calls: it may (``followed``), and the operator has no gradient of its own.
    """

    def __init__(self, func: Any, args: Any, kwargs: Any, around: Seal | None, followed: bool) -> None:
        self.func, kernels = func, _kernels_of(func)
        self.inside: Any = _refuse(func, kernels, args, kwargs)
        self.has_gradients = (
            followed
            and torch.is_grad_enabled()
            and any(tensor.requires_grad for tensor in tensors_in([*args, *kwargs.values()]))
            and not kernels.have_gradients
        )
        self.parts: list[Part] = []
        self._keeps = torch._C._current_autograd_node() is not None
        given = leaves_of([*args, *kwargs.values()])
        defaults = [argument.default_value for argument in func._schema.arguments]
        self._given = {storage_of(tensor)[0] for tensor in tensors_in(given)}
        self._reads = False  # whether it calls an operator on one of these
        self.seal = KernelSeal(around, kernels.are_python, given + leaves_of(defaults))

    def watch_leaving(self) -> Any:
        """Within this context, the kernel runs."""
        return watch_leaving(self.seal.note_left, LEAVING + BY_ADDRESS)

    def finish(self, args: Any, kwargs: Any, out: Any) -> None:
        """The kernel has returned this."""
        self.seal.check_returned(self.func, args, kwargs, out)
        reads = self._reads or not self._given
        failed = "" if self.func._schema.name in BY_VALUES else self.seal.failed  # PyTorch's own calls operators alone
        self.inside = failed or (list_inside(part.op for part in self.parts) if reads else READS_NOTHING)

    def add(self, op: Op, call: DispatchedCall | None = None) -> None:
        """The kernel ran this, in a ``call`` of an operator or in what is recorded as one op."""
        inputs, outputs = ([], []) if call is None else (call.inputs, call.outputs)
        self._reads = self._reads or call is None or any(storage_of(tensor)[0] in self._given for tensor in inputs)
        self.parts.append(Part(op, inputs, outputs) if self._keeps else Part(op, [], []))


def _refuse(func: Any, kernels: Kernels, args: Any, kwargs: Any) -> str:
    """Why the kernel of an operator is not followed; '' of one that is."""
    meta = any(tensor.is_meta for tensor in tensors_in([*args, *kwargs.values()]))
    if meta and kernels.has_fake:
        return FAKE_RAN
    if (meta and not kernels.are_python) or not hasattr(func, "redispatch"):
        return CANNOT_BE_FOLLOWED
    around = _python_dispatch._get_current_dispatch_mode_stack()
    return "" if all(getattr(mode, "takes_parts", False) for mode in around) else BENEATH_ANOTHER_MODE


def call_kernel(opened: OpenedKernel, args: Any, kwargs: Any) -> Any:
    """Call the kernel that PyTorch would choose beneath the modes, so that they meet what it calls."""
    here: Any = torch._C
    keys = here._dispatch_tls_local_include_set()
    for tensor in tensors_in([*args, *kwargs.values()]):
        keys = keys | here._dispatch_keys(tensor)
    keys = (keys - here._dispatch_tls_local_exclude_set()) & here._dispatch_keyset_full_after(here.DispatchKey.Python)
    if not here._dispatch_has_kernel_for_dispatch_key(opened.func.name(), "BackendSelect"):
        keys = keys.remove(here.DispatchKey.BackendSelect)
    with pass_autograd() if opened.has_gradients else nullcontext():
        return opened.func.redispatch(keys, *args, **kwargs)


def split_kernel(parts: Iterable[tuple[Op, Op]]) -> Iterator[Op]:
    """The records of operators and of what ran in their kernels: one for each phase of these, which the first stands for, and of
    which the others are the ``REST``."""
    groups: dict[tuple[int, str], list[tuple[Op, Op]]] = {}
    for whole, op in parts:
        groups.setdefault((id(whole.attrs), op.phase), []).append((whole, op))
    met: set[int] = set()
    for key, phase in sorted(groups, key=lambda group: group[1] != INPUT_GRADIENT):
        whole = groups[key, phase][0][0]
        attrs = {**whole.attrs, INSIDE: list_inside(op for _, op in groups[key, phase])}
        if key in met:
            attrs[REST] = True
        met.add(key)
        yield whole._replace(attrs=attrs, phase=phase)


def list_inside(ops: Iterable[Op]) -> list[dict[str, Any]]:
    """Ops as the data of a record's attribute, equal ones as one with its calls."""
    tally = Tally()
    for op in ops:
        tally.add(op)
    return [op._asdict() for op in tally.merge_ops(lambda op: op).values()]
