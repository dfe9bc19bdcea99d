"""Seal: finds values that reached a call's result and that no recorded operator computed, whatever way they took.

What each operator leaves in memory is digested. Where the next operator reads it, where the model returns it and at the end of
the call, it must still have that digest, and must be memory that an operator, or the state before the call, gave. What is not,
and every number that the program passes to an operator, is an *entry*. A second call has other values of inputs and weights and
the same random numbers: entries that it shares with the first are constants of the program, and those that differ were computed
from the values, outside of what is recorded (``find_computed``).
"""

from __future__ import annotations

import ctypes
import random
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch

from ....core.message import first_line
from ....core.records import Problem
from ..module_tensors import tensors_of
from .dispatched_calls import ATEN, DENSE
from .groups import PROCESSES
from .records import storage_of, tensors_in
from .wrappers import is_fake, is_wrapper

SMALL, LARGE = 1 << 14, 1 << 22
"""Bytes up to which a checksum is faster than the sum of the words, and up to which all words are added."""
SAMPLES, SAMPLE = 64, 1 << 12
"""How many pieces of a larger storage are looked at, and the bytes of each: a cache that is never used whole stays untouched."""
SHAKE = 1 - 2**-10
"""Factor of floating inputs in the second call: small enough that a program takes the same branches, and numbers between 0 and 1
stay there."""
BITS = {"float64": ("int64", 42), "float32": ("int32", 13), "float16": ("int16", 0), "bfloat16": ("int16", 0)}
"""The bit of each dtype that is flipped in weights, near 2**-10 of a value, and the integers by which it is."""
SAME, SCALED, REORDERED = "", "scaled", "reordered"
"""What the second call is given for inputs; an order is looked for where whole numbers came in that may be indices."""
FEW = 8
"""Numbers that may leave by ``item()`` and come back changed: arithmetic on so few is a decision of the program, and no layer."""
FILL = 0x2D
"""Each byte of memory that was made without values: 0.08 in float16 and near 1e-11 in wider floats, so that a program goes on."""
ITEM = "aten::_local_scalar_dense"
"""The operator by which a number leaves."""
VALUES = ("number", "Tensor", "float", "complex", "Scalar")
"""Types of a schema's arguments that hold values; a whole number elsewhere is a size or an index."""
CALLED, RETURNED, STATE = "(called)", "(returned)", "(state)"
"""Readers of values that are no operators: the model that is called, who called it, and its next call."""

COMPUTED = "(outside)"
"""The operator of a problem: what computed a value is none."""
NOT_CALLED_AGAIN = (
    "nothing shows that values from outside of PyTorch are constants: a second call, with other inputs, ended by %s"
)
NOT_LOOKED_AT = "nothing shows that operators alone wrote the step's memory, which cannot be read: %s"
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
    """

    layer: str
    reader: str
    reason: str
    value: Any


class Held(NamedTuple):
    """What an operator left in a storage.

    Attributes:
        reference: A weak reference, which keeps the storage's key from being another one's.
        place: Address and size.
        digest: Of what is there; None where nothing of the program ran since, and it is taken at the next look.
        layer: The layer that left it.
    """

    reference: Any
    place: tuple[int, int]
    digest: int | None
    layer: str


class Seal:
    """What the operators of one call left in memory, and what came in otherwise; without ``memory``, numbers alone."""

    def __init__(self, memory: bool = True) -> None:
        self.memory = memory and hasattr(torch.Tensor, "untyped_storage")  # PyTorch 2.0
        self.layer: Callable[[], str] = str  # the layer that runs now
        self.entries: list[Entry] = []
        self.numbers: set[Any] = set()  # that the program passed to an operator
        self.left: list[Any] = []  # numbers that left by item()
        self._state: list[torch.Tensor] = []
        self._held: dict[int, Held] = {}  # by storage
        self._seen: set[tuple[int, int]] = set()  # size and digest of all memory that was held: a copy of it is no work

    def begin(self, module: torch.nn.Module, inputs: Any, layer: Callable[[], str]) -> None:
        """The state before the call: tensors of the model, in its attributes too, and of its inputs."""
        self.layer = layer
        held = [value for part in module.modules() for value in vars(part).values()]
        values = [*tensors_of(module), *_leaves(held), *_leaves(inputs)]
        self._state = [tensor for value in values for tensor in plain_tensors(value)]
        self.hold(self._state)

    def check_state(self) -> None:
        """The call is over: what the next one finds."""
        self.check(self._state, STATE)
        self.check([tensor.grad for tensor in self._state if tensor.is_leaf and tensor.grad is not None], STATE)

    def check_call(self, func: Any, args: Any, kwargs: Any, within: bool) -> None:
        """An operator is about to read these. ``within`` says that it is a part of a call that is recorded whole: nothing of the
        program ran since that began."""
        for position, name, kinds in _facts(func).values:
            value = args[position] if position < len(args) else kwargs.get(name)
            if value is not None:
                self._enter_numbers(value, func, kinds)
        if self.memory and not within:
            self.check(tensors_in([*args, *kwargs.values()]), func)

    def keep_call(self, func: Any, args: Any, kwargs: Any, out: Any, within: bool) -> None:
        """The operator has returned ``out``."""
        facts = _facts(func)
        if facts.takes_number:
            self.left.append(out)
        if not self.memory:
            return
        tensors = tensors_in(out)
        if facts.makes_empty and not within:
            self._fill(tensors)
        for position, name in facts.written:
            tensors += tensors_in(args[position] if position < len(args) else kwargs.get(name))
        # what other processes send may arrive later
        self.hold(tensors, later=within or func.namespace in PROCESSES)

    def check(self, tensors: Iterable[torch.Tensor], reader: Any) -> None:
        """Enter those of the tensors that hold what no operator left there."""
        for part, key, storage, place in self._memory_of(tensors):
            held = self._held.get(key)
            found = digest(*place, storage)
            if held is None:
                if (place[1], found) not in self._seen:
                    self._enter(part, self.layer(), reader, OTHER_MEMORY)
                self._hold(key, storage, place, found, self.layer())
            elif held.digest != found:
                if held.digest is not None and held.place == place:  # or else it was given back and taken again
                    self._enter(part, held.layer or self.layer(), reader, CHANGED_MEMORY)
                self._hold(key, storage, place, found, held.layer)

    def check_result(self, result: Any) -> None:
        """The model returns this."""
        for value in _leaves(result):
            if isinstance(value, torch.Tensor):
                self.check([value], RETURNED)
            elif getattr(getattr(value, "dtype", None), "kind", "") in ("f", "c", "i", "u"):  # of numpy
                self.check([torch.as_tensor(value)], RETURNED)
            else:
                self._enter_numbers(value, RETURNED, (int, float, complex))

    def hold(self, tensors: Iterable[torch.Tensor], later: bool = False) -> None:
        """An operator left these; ``later`` says that the digest is taken at the next look."""
        layer = self.layer()
        for _, key, storage, place in self._memory_of(tensors):
            self._hold(key, storage, place, None if later else digest(*place, storage), layer)

    def _memory_of(self, tensors: Iterable[torch.Tensor]) -> Iterator[tuple[torch.Tensor, int, Any, tuple[int, int]]]:
        """The parts of tensors that have memory: what tells their storage from others, the storage, and its place."""
        for tensor in tensors if self.memory else ():
            for part in _parts(tensor):
                key, storage = storage_of(part)
                if key is not None:
                    yield part, key, storage, place_of(storage)

    def _hold(self, key: int, storage: Any, place: tuple[int, int], found: int | None, layer: str) -> None:
        held = self._held.get(key)
        reference = _weak_reference(storage) if held is None else held.reference
        self._held[key] = Held(reference, place, found, layer)
        if found is not None:
            self._seen.add((place[1], found))

    def _enter(self, tensor: torch.Tensor, layer: str, reader: Any, reason: str) -> None:
        with _python_dispatch._disable_current_modes(), torch.no_grad():
            elements = tensor.detach().cpu().contiguous().clone()
        storage = elements.untyped_storage()
        place = place_of(storage)
        value = (str(tensor.dtype), place[1], digest(*place, storage))
        self.entries.append(Entry(layer, _name(reader), reason, value))

    def _enter_numbers(self, value: Any, reader: Any, kinds: tuple[type, ...]) -> None:
        if type(value) in kinds:
            known = value if value == value else "nan"
            if known not in self.numbers:
                self.numbers.add(known)
                self.entries.append(Entry(self.layer(), _name(reader), OTHER_NUMBER, known))
        elif isinstance(value, (list, tuple)):
            for each in value:
                self._enter_numbers(each, reader, kinds)

    def _fill(self, tensors: list[torch.Tensor]) -> None:
        """Give memory that was made without values the same ones in every call."""
        with _python_dispatch._disable_current_modes():
            for _, _, storage, _ in self._memory_of(tensors):
                size = min(storage.nbytes(), LARGE)
                torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (size,), (1,)).fill_(FILL)


class StepSeal(Seal):
    """Of a program's step, which cannot be made twice: tells memory that an operator left, or that is a model's own, and that
    something else wrote. Other memory is the program's data, which it may load anew. It never raises into the program.

    ``is_state(key)`` says whether a storage is of a model's weights or buffers.
    """

    def __init__(self, layer: Callable[[], str], is_state: Callable[[int], bool]) -> None:
        super().__init__(memory=not is_shared())
        self.layer, self.is_state = layer, is_state
        self._loaded: set[int] = set()  # storages of the program's data
        self._failed = ""

    def hold_inputs(self, tensors: list[torch.Tensor]) -> None:
        """A model is called with these."""
        self._look(tensors, CALLED)

    def problems(self) -> list[Problem]:
        """What was computed outside, or why that cannot be told."""
        if self._failed:
            return [Problem("", COMPUTED, "", self._failed)]
        found = {(entry.layer, entry.reader): entry for entry in self.entries}
        return [Problem(entry.layer, COMPUTED, entry.layer, entry.reason % entry.reader) for entry in found.values()]

    def check_call(self, func: Any, args: Any, kwargs: Any, within: bool) -> None:
        """See Seal."""
        if not within:
            self._look(tensors_in([*args, *kwargs.values()]), func)

    def keep_call(self, func: Any, args: Any, kwargs: Any, out: Any, within: bool) -> None:
        """See Seal."""
        try:
            super().keep_call(func, args, kwargs, out, within)
        except Exception as error:
            self._fail(error)

    def _look(self, tensors: list[torch.Tensor], reader: Any) -> None:
        try:
            self._loaded.update(
                key for _, key, _, _ in self._memory_of(tensors) if key not in self._held and not self.is_state(key)
            )
            self.check(tensors, reader)
        except Exception as error:
            self._fail(error)

    def _enter(self, tensor: torch.Tensor, layer: str, reader: Any, reason: str) -> None:
        if reason == CHANGED_MEMORY and storage_of(tensor)[0] not in self._loaded:
            self.entries.append(Entry(layer, _name(reader), reason, None))

    def _fill(self, tensors: list[torch.Tensor]) -> None:
        """See Seal: there is no other call."""

    def _fail(self, error: Exception) -> None:
        self.memory, self._failed = False, NOT_LOOKED_AT % f"{type(error).__name__}: {first_line(error)}"


def find_computed(first: Seal, second: Seal) -> list[Entry]:
    """The entries of the second call, on other values, that the first does not have: what was computed outside.

    Few numbers that left by item() may come back changed. An entry that the second call lacks was kept by the program from the
    first, so it depends on no values.
    """
    constants = {entry.value for entry in first.entries}
    left = set(second.left)
    computed = [entry for entry in second.entries if entry.value not in constants and entry.value not in left]
    arrays = [entry for entry in computed if entry.reason != OTHER_NUMBER]
    few = len(computed) - len(arrays) <= FEW and 0 < len(second.left) <= FEW
    return arrays if few else computed


def shake(inputs: Iterable[Any], how: str) -> None:
    """Give floating tensors other values, in place."""
    with torch.no_grad():
        for tensor in _floating(inputs):
            tensor.mul_(SHAKE)
            if how == REORDERED:
                tensor.copy_(tensor.roll(1))


@contextmanager
def other_weights(module: torch.nn.Module) -> Iterator[None]:
    """Within this, weights and buffers have other values, and afterwards their own: whoever made the module may keep it."""
    _flip_bits(module)
    try:
        yield
    finally:
        _flip_bits(module)


def _flip_bits(module: torch.nn.Module) -> None:
    for tensor in _floating(tensors_of(module)):
        real = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
        name, bit = BITS.get(str(real.dtype).replace("torch.", ""), ("", 0))
        if name:
            kind = getattr(torch, name)
            with suppress(RuntimeError):  # an element that is seen in several places
                real.view(kind).bitwise_xor_(real.isfinite().to(kind) << bit)


def _floating(values: Iterable[Any]) -> list[torch.Tensor]:
    found = {id(tensor): tensor for value in values for tensor in plain_tensors(value)}
    return [t for t in found.values() if not t.is_meta and (t.is_floating_point() or t.is_complex())]


def plain_tensors(value: Any) -> list[torch.Tensor]:
    """A tensor, or those that it holds if its class takes operators apart; none of another value."""
    if not isinstance(value, torch.Tensor):
        return []
    if not is_wrapper(type(value)):
        return [value]
    return [tensor for held in _leaves(list(vars(value).values())) for tensor in plain_tensors(held)]


def is_shared() -> bool:
    """Whether other processes take part: what they send, PyTorch writes into memory past its operators."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def random_state() -> tuple[Any, ...]:
    """The state of the random numbers of PyTorch, Python and numpy, for ``set_random_state``."""
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None


def set_random_state(state: tuple[Any, ...]) -> None:
    """Random numbers go on as they did from that state."""
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    if state[2] is not None:
        sys.modules["numpy"].random.set_state(state[2])


def _leaves(value: Any) -> list[Any]:
    from torch.utils import _pytree  # which an old PyTorch has not

    leaves: list[Any] = _pytree.tree_flatten(value)[0]
    return leaves


def _weak_reference(storage: Any) -> Any:
    from torch.multiprocessing.reductions import StorageWeakRef  # which an old PyTorch has not

    return StorageWeakRef(storage)


def place_of(storage: Any) -> tuple[int, int]:
    """Address and size of a storage's memory; size 0 where there is none, as of the zeros that forward mode makes."""
    try:
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:
        return 0, 0


def digest(address: int, size: int, storage: Any) -> int:
    """A number that tells what a storage holds in this place."""
    if not size:
        return 0
    if storage.device.type != "cpu":
        return _digest_on_device(storage, size)
    if size <= LARGE:
        return _digest_memory(address, size)
    pieces = range(0, size - SAMPLE, (size - SAMPLE) // SAMPLES)
    return hash(tuple(_digest_memory(address + start, SAMPLE) for start in pieces))


def _digest_memory(address: int, size: int) -> int:
    memory: Any = (ctypes.c_char * size).from_address(address)
    if size <= SMALL or "numpy" not in sys.modules:
        return zlib.crc32(memory)
    import numpy

    words = numpy.frombuffer(memory, numpy.uint64, size // 8)
    return int(numpy.add.reduce(words)) ^ zlib.crc32(memory[:64]) ^ zlib.crc32(memory[-64:])


def _digest_on_device(storage: Any, size: int) -> int:
    with _python_dispatch._disable_current_modes():
        held = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (min(size, LARGE),), (1,))
        words = held.numel() // 8 * 8
        return int(held[:words].view(torch.int64).sum()) ^ int(held[words:].sum()) << 1


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors with memory of their own that a tensor consists of."""
    kind = type(tensor)
    if kind in DENSE and tensor.layout is torch.strided:
        return [] if tensor.is_meta else [tensor]
    if tensor.is_meta or is_wrapper(kind) or is_fake(kind):
        return []
    if tensor.layout is torch.strided:
        return [tensor]
    with _python_dispatch._disable_current_modes():
        if tensor.layout is torch.sparse_coo:
            return [tensor._indices(), tensor._values()]
        if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []


class Facts(NamedTuple):
    """What the seal has to know of an operator.

    Attributes:
        values: The positions and names of arguments that hold numbers, and which types of Python are values there.
        written: The positions and names of arguments that it writes.
        takes_number: Whether a number leaves by it.
        makes_empty: Whether it makes memory without values.
    """

    values: tuple[tuple[int, str, tuple[type, ...]], ...]
    written: tuple[tuple[int, str], ...]
    takes_number: bool
    makes_empty: bool


@cache
def _facts(func: Any) -> Facts:
    values, written = [], []
    for position, argument in enumerate(func._schema.arguments):
        text = str(argument.type)
        if any(kind in text for kind in VALUES):
            values.append((position, argument.name, (float, complex) if "float" in text else (float, complex, int)))
        declared = argument.alias_info is not None and argument.alias_info.is_write
        # a batch norm does not say that it writes its statistics, and another library's operator need not say anything
        if "Tensor" in text and (declared or argument.name.startswith("running_") or func.namespace not in ATEN):
            written.append((position, argument.name))
    name = func._schema.name
    return Facts(tuple(values), tuple(written), name == ITEM, "empty" in name)


def _name(reader: Any) -> str:
    return reader if isinstance(reader, str) else str(reader._schema.name).replace("::", ".")


def prove_sealed(
    first: Seal,
    state: tuple[Any, ...],
    module: torch.nn.Module,
    make: Callable[[], torch.nn.Module],
    call: Callable[[torch.nn.Module, Seal, str], Any],
) -> tuple[list[Problem], list[str]]:
    """What was computed outside of the call of ``module`` that ``first`` followed, by a second call; and a note if that fails.

    Random numbers go on from ``state``. ``call(module, seal, shaken)`` calls, with inputs that are ``SCALED``, ``REORDERED`` or
    ``SAME``. The first call may have changed the module: what seems to be computed has to be found in a fresh one, too.
    """
    if not first.entries:
        return [], []
    arrays = [entry for entry in first.entries if entry.reason != OTHER_NUMBER]
    how = REORDERED if any("int" in entry.value[0] for entry in arrays) else SCALED

    def call_again(make: Callable[[], torch.nn.Module]) -> list[Entry] | str:
        """What was computed, or why that cannot be told."""
        why = ""
        for shaken in (how, SAME):  # the model's code may refuse other inputs
            seal = Seal(bool(arrays))
            try:
                called = make()
                set_random_state(state)
                with other_weights(called):
                    call(called, seal, shaken)
                return find_computed(first, seal)
            except Exception as error:  # whatever that code does
                why = why or f"{type(error).__name__}: {first_line(error)}"
        return why

    found = call_again(lambda: module)
    if found:
        again = call_again(make)
        found = again if isinstance(found, str) or not isinstance(again, str) else found
    if isinstance(found, str):
        why = NOT_CALLED_AGAIN % found
        return [Problem(entry.layer, COMPUTED, entry.layer, why) for entry in arrays], [why]
    return [Problem(entry.layer, COMPUTED, entry.layer, entry.reason % entry.reader) for entry in found], []
