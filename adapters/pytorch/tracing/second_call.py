"""Records a model's call, and calls it again to find which values from outside of the operators were computed from its inputs.

The second call has other values of inputs and weights and the same random numbers. What came in by both (seal.py) is a constant
of the program; what differs was computed from the values, outside of what is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch

from ....core.message import first_line
from ....core.records import CALLED_ONCE, NOT_CALLED_AGAIN, Problem
from ..call_adapter import find_objects, same_numbers
from ..module_tensors import tensors_of
from .groups import is_shared
from .recorder import Recorder
from .seal import COMPUTED, FEW, OTHER_NUMBER, TINY, Entry, Seal
from .tensor_memory import leaves_of, memory_in, plain_tensors

SHAKE = 2**-10
"""How much less floating inputs are in the second call, by half of it to all: so little that a program takes the same branches,
and numbers between 0 and 1 stay there. Where a dtype has fewer digits it is more."""
BITS = {"float64": ("int64", 42), "float32": ("int32", 13), "float16": ("int16", 0), "bfloat16": ("int16", 0)}
"""The bit of each dtype that is flipped in weights, near 2**-10 of a value, and the integers by which it is."""
SAME, SHAKEN, SCALED, PERMUTED = "", "shaken", "scaled", "permuted"
"""What another call is given for inputs. Floating ones are scaled, and in another order, so that what is rounded or compared
differs, too; whole ones and truths are permuted, which keeps ids and lengths in their ranges."""
KEPT_VALUES = (
    "a tensor that no operator made came in at %s after values had left PyTorch, and the program keeps it outside of the model: "
    "nothing shows that it is a constant"
)

R = TypeVar("R", bound=Recorder)


def record_twice(
    call: Callable[[torch.nn.Module, Seal | None, str], R],
    make: Callable[[], torch.nn.Module],
    device: str,
    quick: bool = False,
) -> R:
    """The recorder of ``call(make(), seal, shaken)``, with what other calls show to be computed outside of its operators.

    ``call(module, seal, shaken)`` calls with inputs that are ``SHAKEN``, ``SCALED``, ``PERMUTED`` or ``SAME``. One call is
    made where tensors have no values, where other processes take part, and if it shall be ``quick``.
    """
    module = make()
    if device == "meta" or is_shared() or quick:
        recorder = call(module, None, SAME)
        recorder.remarks += [CALLED_ONCE] if quick else []
        return recorder
    seal = Seal()
    same_numbers()
    recorder = call(module, seal, SAME)
    if seal.failed:
        recorder.computed_elsewhere = [Problem("", COMPUTED, "", seal.failed)]
    elif seal.entries:
        recorder.computed_elsewhere, notes = _check_entries(seal, module, make, call)
        recorder.remarks += notes
    return recorder


def _check_entries(
    first: Seal,
    module: torch.nn.Module,
    make: Callable[[], torch.nn.Module],
    call: Callable[[torch.nn.Module, Seal, str], Any],
) -> tuple[list[Problem], list[str]]:
    """What was computed outside of the call of ``module`` that ``first`` followed, and a note if that cannot be told.

    The first call may have changed the module: what seems to be computed has to be found in
    a fresh one, too, and a fresh one tells what the module keeps of values that left.
    """
    arrays = [entry for entry in first.entries if entry.reason != OTHER_NUMBER]
    numbers = {layer: [number for number in left if type(number) is not bool] for layer, left in first.items.items()}
    items = {layer: left for layer, left in first.items.items() if len(numbers[layer]) <= FEW}

    def call_again(make: Callable[[], torch.nn.Module], shaken: str, replayed: Mapping[str, Any] = items) -> Seal | str:
        """The seal of another call, or why that failed."""
        seal = Seal(bool(arrays) or first.values_left, replayed, first.seen - first.foreign)
        try:
            called = make()
            same_numbers()
            with other_weights(called):
                call(called, seal, shaken)
            if seal.failed:
                return seal.failed
        except Exception as error:  # whatever the model's code does
            return f"{type(error).__name__}: {first_line(error)}"
        return seal

    def find(make: Callable[[], torch.nn.Module]) -> tuple[list[Entry], list[Entry]] | str:
        """What was computed, and what came in by the first call alone; or why that cannot be told."""
        second = call_again(make, SHAKEN)
        if isinstance(second, str):  # the model's code may refuse inputs in another order
            third = call_again(make, SCALED)
            second = second if isinstance(third, str) else third
        if isinstance(second, str):
            return second
        found = find_computed(first, second)
        if not found and first.takes_integers and _filter_floating(first.entries):
            other = call_again(make, PERMUTED)
            found = [] if isinstance(other, str) else find_computed_from_integers(first, other)
        if not found and any(map(_is_large, arrays)) and sum(len(numbers[layer]) for layer in items) > FEW:
            other = call_again(make, SHAKEN, {})  # of the same numbers, arrays that are made of all of them are alike
            changed = [] if isinstance(other, str) else _find_changed(first, other)
            found = [entry for entry in changed if _is_large(entry)]
        return found, find_kept(first, second)

    found = find(lambda: module)
    if not isinstance(found, str) and (any(found) or any(entry.after_left for entry in first.entries)):
        again = find(make)
        found = found if isinstance(again, str) else again
    if isinstance(found, str):
        why = NOT_CALLED_AGAIN + found
        return [Problem(entry.layer, COMPUTED, entry.layer, why) for entry in arrays], [why]
    kept = [entry._replace(reason=KEPT_VALUES) for entry in found[1] if entry.after_left and entry in arrays]
    return list(dict.fromkeys(entry.problem() for entry in found[0] or kept)), []


def find_computed(first: Seal, second: Seal) -> list[Entry]:
    """The entries of the second call, on other values, that the first does not have: what was computed outside.

    Numbers that left by item() may come back, and few sizes of tensors whose shapes depend on values: those that the first call's
    values did not give. Where as many values came in at one place as in the first call, they have to come in the same order, too,
    but for a few of all: those that a program chooses from a few may all be known.
    """
    computed = [entry for entry in _find_changed(first, second) if (type(entry.value), entry.value) not in second.left]
    changed = {entry._replace(value=None, after_left=False) for entry in computed}
    moved = [
        (number, entry)
        for place, (number, hashed, entry) in second.sequences.items()
        if place in first.sequences
        and place not in changed
        and first.sequences[place][1] != hashed
        and (first.sequences[place][0] == number or place.value)
    ]
    computed += [entry for _, entry in moved] if sum(number for number, _ in moved) > FEW else []
    lengths = second.lengths - first.lengths
    sized = {entry for entry in computed if type(entry.value) is int and entry.value in lengths}
    return [entry for entry in computed if entry not in sized or len(sized) > FEW]


def find_kept(first: Seal, second: Seal) -> list[Entry]:
    """The arrays that came in by the first call alone, and its numbers if they are more than few: the program has kept what it
    made of them. If it has in the model, a fresh one tells what they depend on."""
    made = {(entry.reader, entry.value) for entry in second.entries}
    kept = [entry for entry in first.entries if (entry.reader, entry.value) not in made]
    arrays = [entry for entry in kept if entry.reason != OTHER_NUMBER]
    return kept if len(kept) - len(arrays) > FEW else arrays


def find_computed_from_integers(first: Seal, second: Seal) -> list[Entry]:
    """The same, where whole inputs alone have other values: floating ones. What is whole may be positions, sizes or branches, and
    few numbers may be a scale that depends on a length."""
    return _filter_floating(_find_changed(first, second))


def _find_changed(first: Seal, second: Seal) -> list[Entry]:
    return [entry for entry in second.entries if entry.value not in first.came_in]


def _filter_floating(entries: list[Entry]) -> list[Entry]:
    """Floating tensors, and floating numbers and tensors of few if there are more than few: a branch has constants of its own."""
    tensors = [entry for entry in entries if entry.reason != OTHER_NUMBER and "float" in entry.value[0]]
    large = [entry for entry in tensors if _is_large(entry)]
    numbers = [entry for entry in entries if isinstance(entry.value, (float, complex))]
    others = numbers + [entry for entry in tensors if entry not in large]
    return large + (others if len(others) > FEW else [])


def _is_large(entry: Entry) -> bool:
    """Whether it is an array of more than few numbers."""
    return entry.reason != OTHER_NUMBER and entry.value[1] >= TINY


def shake(inputs: list[Any], how: str) -> list[Any]:
    """The inputs, whose tensors have got other values in place."""
    with torch.no_grad():
        for tensor in _list_plain(leaves_of(inputs)):
            if _has_fractions(tensor) and how in (SHAKEN, SCALED):
                tensor.copy_(_scale(tensor, how == SHAKEN))
            if how == (SHAKEN if _has_fractions(tensor) else PERMUTED):
                tensor.copy_(_permute(tensor))
    return inputs


def _scale(tensor: torch.Tensor, each: bool) -> torch.Tensor:
    """A little less of a tensor, of ``each`` element by another factor: otherwise what a program normalises would stay as it is.
    Zeros and other tensors of one value become a ramp."""
    least = max(SHAKE, 4 * torch.finfo(tensor.dtype).eps)
    if not each:
        return tensor * (1 - least)
    ramp = torch.linspace(least / 2, least, tensor.numel(), device=tensor.device).reshape(tensor.shape).to(tensor.dtype)
    return ramp if not tensor.count_nonzero() else tensor * (1 - ramp)


def _permute(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in another order; where all are one whole number, half of them the one before, or the other truth."""
    rolled = tensor.roll(1)
    if torch.equal(rolled, tensor) and not _has_fractions(tensor):
        later = rolled.view(-1)[rolled.numel() // 2 :]
        later.copy_(torch.where(later == 0, 1, later.long() - 1))
    return rolled


@contextmanager
def other_weights(module: torch.nn.Module) -> Iterator[None]:
    """Within this, weights, buffers and tensors in objects among the inputs have other values, and afterwards their own: whoever
    made the module may keep it."""
    held = _list_plain([*tensors_of(module), *memory_in(find_objects(module))])
    _flip_bits(held)
    try:
        yield
    finally:
        _flip_bits(held)


def _flip_bits(tensors: Iterable[torch.Tensor]) -> None:
    for tensor in tensors:
        real = torch.view_as_real(tensor.data) if tensor.is_complex() else tensor.data  # whose version stays as it is
        name, bit = BITS.get(str(real.dtype).replace("torch.", ""), ("", 0))
        if name:
            kind = getattr(torch, name)
            with suppress(RuntimeError):  # an element that is seen in several places
                all_finite = math.isfinite(real.sum())  # eight times as fast as asking each element
                real.view(kind).bitwise_xor_(1 << bit if all_finite else real.isfinite().to(kind) << bit)


def _list_plain(values: Iterable[Any]) -> list[torch.Tensor]:
    """Each plain tensor of these once, but for those without values."""
    found = {id(tensor): tensor for value in values for tensor in plain_tensors(value) if not tensor.is_meta}
    return list(found.values())


def _has_fractions(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
