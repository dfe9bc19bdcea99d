"""Seal: finds values that reached a call's result and that no recorded operator computed, whatever way they took.

What each operator leaves in memory is digested. Where the next operator reads it, where the model returns it and at the end of
the call, it must still have that digest, and must be memory that an operator, or the state before the call, gave. What is not,
and every number that the program passes to an operator, is an *entry*. second_call.py tells entries that were computed from
those that are constants of the program; of a program's step, which cannot be made twice, steps/seal.py does.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import wraps
from numbers import Number
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import torch
from torch.utils import _python_dispatch

from ....core.message import first_line
from ....core.records import Problem
from ..call_adapter import find_objects
from ..lazy import parts_in
from ..module_tensors import tensors_of
from .groups import PROCESSES
from .numpy_crossings import is_data
from .operator_facts import find_facts
from .records import storage_of, tensors_in
from .tensor_memory import LARGE, SMALL, digest, leaves_of, memory_in, parts_of, place_of, plain_tensors, weak_reference
from .wrappers import is_wrapper

FILL = 0x2D
"""Each byte of memory that was made without values: 0.08 in float16 and near 1e-11 in wider floats, so that a program goes on."""
COPY = "aten::copy_"
"""The operator that writes a tensor and reads nothing of it."""
CALLED, RETURNED, STATE = "(called)", "(returned)", "(state)"
"""Readers of values that are no operators: the model that is called, who called it, and its next call."""
COMPUTED = "(outside)"
"""The operator of a problem: what computed a value is none."""
FEW = 8
"""Numbers that leave a layer by ``item()`` and that the program may compute with: a second call gives it the same ones again, so
that it decides alike. Truths, of which a program can only decide, may be any number."""
TINY = 64
"""Bytes of memory of which several may look alike without being copies."""
COPIED = ("float32", "float64", "int64")
"""The dtypes of tensors whose elements are looked for in a list that a model returns."""
MASK = "mask"
"""In place of the dtype of an array of two values."""
NOTHING: Mapping[str, Sequence[Any]] = {}
NOT_LOOKED_AT = "nothing shows that operators alone wrote the memory, which cannot be read: %s"
CHANGED_MEMORY = (
    "something else wrote memory that an operator had left, before %s read it: what computed the values is not recorded"
)
OTHER_MEMORY = (
    "a tensor that no operator made came in at %s, and its values depend on inputs or weights: what computed them is not "
    "recorded"
)
OTHER_NUMBER = (
    "a number came in at %s that depends on inputs or weights and is none that left by item(): what computed it is not "
    "recorded"
)


class Entry(NamedTuple):
    """A value that came in from outside of the operators.

    Attributes:
        layer: The layer that ran.
        reader: The operator that read it first.
        reason: What to say of it if it was computed, with a place for the reader.
        value: A number, or the digest of an array's elements.
        after_left: Whether values had left before.
    """

    layer: str
    reader: str
    reason: str
    value: Any
    after_left: bool = False

    def problem(self) -> Problem:
        """What withholds the number if the value was computed."""
        return Problem(self.layer, COMPUTED, self.layer, self.reason % self.reader)


class Held(NamedTuple):
    """What an operator left in a storage.

    Attributes:
        reference: A weak reference, which keeps the storage's key from being another one's.
        place: Address and size.
        digest: Of what is there; None where nothing of the program ran since, and it is taken at the next look.
        layer: The layer that left it.
        is_resizable: Whether it can have another size, as long as no array of numpy shares it.
    """

    reference: Any
    place: tuple[int, int]
    digest: int | None
    layer: str
    is_resizable: bool


def never_raise(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a seal that ends the seal where it fails, and not the program."""

    @wraps(method)
    def call(seal: Seal, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(seal, *args, **kwargs)
        except Exception as error:  # whatever a tensor of a class or a dtype of its own does
            seal.memory, seal.failed = False, NOT_LOOKED_AT % f"{type(error).__name__}: {first_line(error)}"
            return None

    return call


class Seal:
    """What the operators of one call left in memory, and what came in otherwise; without ``memory``, numbers alone."""

    is_repeated = True  # whether another call on other values tells what was computed

    def __init__(
        self,
        memory: bool = True,
        replayed: Mapping[str, Sequence[Any]] = NOTHING,
        seen: Set[tuple[int, int]] = frozenset(),
    ) -> None:
        self.memory = memory and hasattr(torch.Tensor, "untyped_storage")  # PyTorch 2.0
        self._replayed = {layer: iter(items) for layer, items in replayed.items()}
        self.layer: Callable[[], str] = str  # the layer that runs now
        self.entries: list[Entry] = []  # each value once
        # what came in at one place, by an entry without its value: how many, their hash in this order, and the last; of numbers
        # that had left, those that came in more often
        self.sequences: dict[Entry, tuple[int, int, Entry]] = {}
        self.left = Counter[tuple[type, Any]]()  # numbers that left by item(), and how often
        self._used = Counter[tuple[type, Any]]()  # how often each number came in
        self.items: dict[str, list[Any]] = {}  # all of them by layer, in their order
        self._entered: set[Any] = set()  # values of entries
        self.came_in: set[Any] = set()  # the same, with those that seemed to be copies of memory
        self.lengths: set[int] = set()  # sizes of tensors whose shapes depend on values
        self.values_left = False  # whether values left as an array or a list, or as more than few numbers
        self.takes_integers = False  # whether inputs hold whole numbers or truths
        self._state: list[torch.Tensor] = []
        self._held: dict[int, Held] = {}  # by storage
        self.failed = ""  # why the memory could not be looked at to the end
        self._at: dict[tuple[int, int], set[int]] = {}  # storages by place
        self.seen = set(seen)  # size and digest of all memory that was held: a copy of it is no work
        self.foreign: set[tuple[int, int]] = set()  # the same of memory that no operator left

    @never_raise
    def begin(self, module: torch.nn.Module, inputs: Any, layer: Callable[[], str]) -> None:
        """The state before the call: tensors of the model, in its attributes too, and of its inputs, in objects too."""
        self.layer = layer
        held = [value for part in module.modules() for value in vars(part).values()]
        given = [tensor for value in leaves_of(inputs) for tensor in plain_tensors(value)]
        self.takes_integers = any(not tensor.dtype.is_floating_point for tensor in given)
        values = [*tensors_of(module), *leaves_of(held), *memory_in(find_objects(module))]
        self._state = [tensor for value in values for tensor in plain_tensors(value)] + given
        self.hold(self._state)

    @never_raise
    def check_state(self, state: Sequence[torch.Tensor] | None = None) -> None:
        """The call is over: what the next one finds, these tensors or those before the call, and their gradients."""
        state = self._state if state is None else state
        self.check([*state, *(tensor.grad for tensor in state if tensor.is_leaf and tensor.grad is not None)], STATE)

    @never_raise
    def check_call(self, func: Any, args: Any, kwargs: Any, within: bool) -> None:
        """An operator is about to read these. ``within`` says that it is a part of a call that is recorded whole: nothing of the
        program ran since that began."""
        if self.memory and not within:
            self.check_tensors(func, args, kwargs)
        self.check_numbers(func, args, kwargs)

    def check_numbers(self, func: Any, args: Any, kwargs: Any) -> None:
        """Enter the numbers that an operator is given for values; once values have left, those for sizes and indices, too."""
        facts = find_facts(func)
        for position, name, kinds in facts.values + (facts.sizes if self.values_left else ()):
            value = args[position] if position < len(args) else kwargs.get(name)
            if value is not None:
                self._enter_numbers(value, func, kinds)

    def note_left(self, tensor: Any) -> None:
        """The values of a tensor leave as an array or a list: a few may come back as numbers."""
        self.values_left |= is_data(tensor)
        if isinstance(tensor, torch.Tensor) and tensor.numel() <= FEW and not tensor.is_meta:
            with _python_dispatch._disable_current_modes(), suppress(RuntimeError):  # of a dtype that has no numbers
                self.left.update((type(each), each) for each in tensor.detach().flatten().tolist())

    def _note_array(self, tensor: torch.Tensor) -> None:
        """An array shares a tensor's memory, whatever made it, and may have written it."""
        self.values_left |= is_data(tensor)

    def check_tensors(self, func: Any, args: Any, kwargs: Any) -> None:
        """Check the memory that an operator reads."""
        overwritten = func._schema.name == COPY and _covers_storage(args[0])
        self.check(tensors_in([*args[1 if overwritten else 0 :], *kwargs.values()]), func)

    def keep_call(self, func: Any, args: Any, kwargs: Any, out: Any, within: bool) -> Any:
        """The operator has returned ``out``. Returns what the program gets: in a replay the numbers that left before."""
        if find_facts(func).takes_number:
            layer = self.layer()
            out = next(self._replayed.get(layer, iter(())), out)
            self.items.setdefault(layer, []).append(out)
            self.values_left |= len(self.items[layer]) > FEW
            self.left[type(out), out] += 1
        if find_facts(func).has_lengths:
            self._note_lengths(out)
        if self.memory:
            self._keep_memory(func, args, kwargs, out, within)
        return out

    @never_raise
    def _note_lengths(self, out: Any) -> None:
        self.lengths.update(int(size) for tensor in tensors_in(out) for size in tensor.shape)

    @never_raise
    def _keep_memory(self, func: Any, args: Any, kwargs: Any, out: Any, within: bool) -> None:
        facts = find_facts(func)
        tensors = tensors_in(out)
        if facts.makes_empty and not within:
            self._fill(tensors)
        for position, name in facts.written:
            tensors += tensors_in(args[position] if position < len(args) else kwargs.get(name))
        if facts.takes_storage:  # its memory was there before, and it is looked at by whom it is read
            return
        # what other processes send may arrive later
        self.hold(tensors, later=within or func.namespace in PROCESSES)

    @never_raise
    def check(self, tensors: Iterable[torch.Tensor], reader: Any) -> None:
        """Enter those of the tensors that hold what no operator left there."""
        for part, key, storage, place in self._memory_of(tensors):
            held = self._held.get(key)
            if held is not None and held.is_resizable and not _is_resizable(storage):
                self._note_array(part)
            found = digest(*place, storage)
            if held is None or held.place[1] != place[1]:  # or it was given back and taken again
                self.foreign.add((place[1], found))
                self._meet(part, key, place[1], found, reader)
                self._hold(key, storage, place, found, self.layer())
            elif held.digest != found:
                if held.digest is not None:
                    self.foreign.add((place[1], found))
                    self._enter(part, held.layer or self.layer(), reader, CHANGED_MEMORY)
                self._hold(key, storage, place, found, held.layer)

    def _meet(self, tensor: torch.Tensor, key: int, size: int, found: int, reader: Any) -> None:
        """Memory is read for the first time that no operator made and that was not there before the call."""
        seen = (size, found) in self.seen
        if size and (not seen or size < TINY):
            self._enter(tensor, self.layer(), reader, OTHER_MEMORY, seen)

    @never_raise
    def check_result(self, result: Any) -> None:
        """The model returns this."""
        leaves = [leaf for part in parts_in(result) for leaf in leaves_of(part)]
        numbers = [value for value in leaves if type(value) in (int, float)]
        copied = len(numbers) > FEW and any(self._is_copy(numbers, getattr(torch, name)) for name in COPIED)
        for value in leaves:
            if not (copied and type(value) in (int, float)):
                self._check_value(value, RETURNED)

    def _is_copy(self, numbers: list[Any], dtype: torch.dtype) -> bool:
        """Whether they are what was in memory."""
        with _python_dispatch._disable_current_modes(), suppress(RuntimeError):
            storage = torch.tensor(numbers, dtype=dtype).untyped_storage()
            return (storage.nbytes(), digest(*place_of(storage), storage)) in self.seen
        return False

    def _is_view(self, tensor: torch.Tensor) -> bool:
        """Whether its memory is a part of some that an operator left, and all of that is as it was."""
        storage = storage_of(tensor)[1]
        address, size = place_of(storage)
        return any(
            held.place != (address, size)
            and held.place[0] <= address
            and address + size <= sum(held.place)
            and not held.reference.expired()
            and digest(*held.place, storage) == held.digest
            for held in self._held.values()
        )

    @never_raise
    def check_wrapped(self, values: Any, reader: Any) -> None:
        """Tensors of a class that takes operators apart are about to be read: what they hold and no operator will be given."""
        for tensor in tensors_in(values) if self.memory else ():
            if is_wrapper(type(tensor)):
                self._check_value(tensor, reader)

    def _check_value(self, value: Any, reader: Any) -> None:
        """Enter what a value holds: a tensor, one of a class that takes operators apart, an array or what gives one (a table of
        pandas), bytes, numbers; of another object, the memory that it keeps."""
        if isinstance(value, torch.Tensor):
            self.check([value], reader)
            for held in leaves_of(list(vars(value).values())) if is_wrapper(type(value)) else ():
                self._check_value(held, reader)
            return
        value = value.__array__() if hasattr(type(value), "__array__") else value
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind and kind in "fciub":  # of numpy
            with catch_warnings():
                simplefilter("ignore")  # of arrays that nobody may write, as of a table
                array_ = torch.as_tensor(value)
            self.check([] if self._is_view(array_) else [array_.contiguous()], reader)
        elif (kind and kind != "O") or isinstance(value, (bytes, bytearray, memoryview, array)):
            held = bytearray(value.tobytes() if kind else value)
            self.check([torch.frombuffer(held, dtype=torch.uint8)] if held else [], reader)
        elif kind == "O":
            for each in leaves_of(value.tolist()):
                self._check_value(each, reader)
        elif isinstance(value, Number):
            self._enter_numbers(value, reader, (type(value),))
        else:
            for held in memory_in(value):
                self._check_value(held, reader)

    @never_raise
    def hold(self, tensors: Iterable[torch.Tensor], later: bool = False) -> None:
        """An operator left these; ``later`` says that the digest is taken at the next look."""
        layer = self.layer()
        for _, key, storage, place in self._memory_of(tensors):
            self._hold(key, storage, place, None if later else digest(*place, storage), layer)

    def _memory_of(self, tensors: Iterable[torch.Tensor]) -> Iterator[tuple[torch.Tensor, int, Any, tuple[int, int]]]:
        """The parts of tensors that have memory: what tells their storage from others, the storage, and its place."""
        for tensor in tensors if self.memory else ():
            for part in parts_of(tensor):
                key, storage = storage_of(part)
                if key is not None:
                    yield part, key, storage, place_of(storage)

    def _hold(self, key: int, storage: Any, place: tuple[int, int], found: int | None, layer: str) -> None:
        held = self._held.get(key)
        reference = weak_reference(storage) if held is None else held.reference
        self._held[key] = Held(reference, place, found, layer, _is_resizable(storage))
        if found is not None:
            self.seen.add((place[1], found))
            aliases = self._at.setdefault(place, set())
            aliases.add(key)
            for other in aliases:  # arrays and capsules have storages of their own at the same address
                if self._held[other].place == place:
                    self._held[other] = self._held[other]._replace(digest=found)

    def _enter(self, tensor: torch.Tensor, layer: str, reader: Any, reason: str, seen: bool = False) -> None:
        """``seen`` says that memory like this was there before: it may be a copy, and many of them may be no copies."""
        with _python_dispatch._disable_current_modes(), torch.no_grad():
            elements = tensor.detach().cpu().resolve_conj().contiguous().clone()
            kind = str(tensor.dtype)
            with suppress(RuntimeError):  # of a dtype whose elements cannot be listed or sorted
                small = elements.numel() <= SMALL
                found = [(type(each), each) for each in elements.flatten().tolist()] if small else []
                if small and all(self.left[each] >= times for each, times in Counter(found).items()):
                    for number in found:
                        self._follow(Entry(layer, name_reader(reader), reason, None), number)
                    return
                if elements.numel() <= LARGE and elements.unique().numel() < 3:
                    kind = MASK
        storage = storage_of(elements)[1]
        place = place_of(storage)
        value = (kind, place[1], digest(*place, storage))
        self._add(Entry(layer, name_reader(reader), reason, value, self.values_left), seen)

    def _enter_numbers(self, value: Any, reader: Any, kinds: tuple[type, ...]) -> None:
        if type(value) in kinds:
            known = value if value == value else "nan"
            self._add(Entry(self.layer(), name_reader(reader), OTHER_NUMBER, known, self.values_left))
        elif isinstance(value, (list, tuple)):
            for each in value:
                self._enter_numbers(each, reader, kinds)

    def _add(self, entry: Entry, seen: bool = False) -> None:
        self.came_in.add(entry.value)
        if entry.value not in self._entered and not seen:
            self._entered.add(entry.value)
            self.entries.append(entry)
        self._follow(entry, (type(entry.value), entry.value))

    def _follow(self, entry: Entry, number: tuple[type, Any]) -> None:
        """Keep the order of what comes in at a place, but for numbers that come in no more often than they left."""
        self._used[number] += 1
        if self._used[number] > self.left[number]:
            place = entry._replace(value=number in self.left or None, after_left=False)
            count, hashed, _ = self.sequences.get(place, (0, 0, entry))
            known = list(self.left).index(number) if place.value else number
            self.sequences[place] = (count + 1, hash((hashed, known)), entry)

    def _fill(self, tensors: list[torch.Tensor]) -> None:
        """Give memory that was made without values the same ones in every call."""
        with _python_dispatch._disable_current_modes():
            for _, _, storage, _ in self._memory_of(tensors):
                size = min(storage.nbytes(), LARGE)
                torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (size,), (1,)).fill_(FILL)


def _covers_storage(tensor: torch.Tensor) -> bool:
    """Whether a tensor is all that is in its storage."""
    key, storage = storage_of(tensor)
    return key is not None and tensor.is_contiguous() and tensor.numel() * tensor.element_size() == place_of(storage)[1]


def _is_resizable(storage: Any) -> bool:
    return bool(storage.resizable()) if hasattr(storage, "resizable") else False  # which an old PyTorch has not


def name_reader(reader: Any) -> str:
    return reader if isinstance(reader, str) else str(reader._schema.name).replace("::", ".")
