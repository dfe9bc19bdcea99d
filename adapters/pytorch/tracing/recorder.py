"""Recorder: the mode that records each operator of a call that reaches PyTorch's dispatcher, with the module that runs.

What derives from it says in which phase and layer an op belongs: of a training step phases.py, of a program's own step
steps/recorder.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from ....core.message import first_line
from ....core.records import ON_THREAD, TANGENT, Op, Problem
from ..call_adapter import find_returned
from ..lazy import refuse_idle
from . import higher_order
from .call_records import kernel_replaced, operator
from .dispatched_calls import DispatchedCall, SharedRecords, Tally
from .followed_calls import Tangents
from .fused_calls import FusedCalls
from .launches import see, unsee
from .module_path import ModulePath
from .numpy_crossings import BY_ADDRESS, LEAVING, watch_leaving
from .opened_kernels import OpenedKernel, call_kernel, has_parts
from .records import tensors_in
from .seal import Seal
from .threads import record_new_threads
from .unrecorded_work import note_unrecorded
from .wrapped_functions import wrap_function
from .wrappers import is_fake, is_wrapper

RAN_ON_EARLIER_THREAD = (
    "it ran on a thread that the model had started before it was called, and nothing that runs there is recorded"
)
KERNEL_REPLACED = "its kernel is not PyTorch's own, and what that one computes is not recorded"
RECORDER = "(recorder)"
RECORDING_FAILED = "recording ended before the program did, and what ran after that is not recorded (%s)"
NO_WORK, OPERATOR, COMPOSITE, HIGHER_ORDER = range(4)
"""Kinds of what is dispatched: the profiler's marks, an operator, one that is taken apart, one that runs functions."""


def is_work(func: Any) -> bool:
    """Whether a dispatched call is an operator; the profiler's marks are none."""
    return hasattr(func, "_schema") and not func._schema.name.startswith("profiler::")


@contextmanager
def make_subclasses(note: Callable[[str], Any]) -> Iterator[None]:
    """Within this, a class of tensors without a constructor of its own makes its tensors past all modes, beneath which PyTorch
    raises; ``note(name)`` is told of it."""

    def watch(new: Any) -> Any:
        def make(kind: Any, *args: Any, **kwargs: Any) -> Any:
            note(kind.__name__)
            with _python_dispatch._disable_current_modes():
                return new(kind, *args, **kwargs)

        return make

    with ExitStack() as stack:
        # not Tensor itself: the compiler compares its constructor, when it is imported
        for kind in torch.Tensor.__subclasses__():
            if kind.__new__ is torch.Tensor.__new__:
                stack.enter_context(wrap_function(kind, "__new__", watch))
        yield


class Recorder(TorchDispatchMode):
    """Records every dispatched op while not paused."""

    supports_higher_order_operators = True
    is_in_program = False  # whether an error of its own would end the program, and not only the count
    beneath_autograd = True  # and not beneath a counter's mode, with which autograd does not follow what kernels call
    unfollowed = RAN_ON_EARLIER_THREAD

    def __init__(self, path: ModulePath) -> None:
        super().__init__()
        self.path = path
        self.paused = False
        self.failed = False  # whether it has met what it cannot record: it goes on without a record
        self.on_thread = False  # whether it follows a thread that the model started
        self.around: Any = None  # calls each operator for the recorder, if a counter watches the calls
        self.tangents = Tangents()
        self.problems: list[Problem] = []
        self.computed_elsewhere: list[Problem] = []  # what a second call shows to be computed by no operator
        self.remarks: list[str] = []
        self.seal: Seal | None = None  # looks for values that no operator computed, where there are values
        self.opened: OpenedKernel | None = None  # the kernel of another library's operator that runs now
        self._records, self._tally, self._lock = SharedRecords(), Tally(), Lock()
        self._kinds: dict[Any, int] = {}  # by operator

    @property
    def ops(self) -> dict[Any, Op]:
        """The ops that ran until now, in the order of their first call."""
        return self._tally.merge_ops(self.name_op)

    def name_op(self, op: Op) -> Op:
        """The op with the layer and the phase that it has once everything has run."""
        return op

    def __enter__(self) -> Any:
        if not self.on_thread:  # a thread may outlive the call; while that runs, all launches are seen
            see()
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        if not self.on_thread:
            unsee()
        return super().__exit__(*error)

    def fail(self, error: Exception) -> None:
        """It has met what it cannot record."""
        if not self.failed:
            self.problems.append(
                Problem("", RECORDER, "", RECORDING_FAILED % f"{type(error).__name__}: {first_line(error)}")
            )
        self.failed = True

    def attempt(self, note: Callable[..., Any], *args: Any) -> Any:
        """The result of ``note(*args)``, which runs nothing of a program; None where that fails within one, or has failed."""
        if self.failed:
            return None
        try:
            return note(*args)
        except Exception as error:  # whatever a tensor, a module or an operator of a library does
            if not self.is_in_program:
                raise
            self.fail(error)
            return None

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run what is dispatched, and record it."""
        kwargs = kwargs or {}
        if types and any(map(is_wrapper, types)):
            if self.failed:
                return NotImplemented
            if self.seal is not None and is_work(func):
                self.seal.check_wrapped([*args, *kwargs.values()], func)
            return self.meet_wrapped(func, types, args, kwargs)
        if types and any(map(is_fake, types)):
            return self.meet_fake(func, args, kwargs)
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = self.attempt(self.kind_of, func)
        if kind == HIGHER_ORDER:
            open_operator = self.open_operator if self.opened is None else partial(Recorder.open_operator, self)
            return open_operator(func, args, kwargs)
        if kind == COMPOSITE and not self.has_kernel(args):
            with self:
                return func.decompose(*args, **kwargs)
        seal = self.seal if kind else None
        if seal is not None:
            seal.check_call(func, args, kwargs, self.paused)
        call = self.around if kind and self.opened is None else None
        may_open = kind and not self.paused and has_parts(func)
        opened = self.attempt(self.prepare_kernel, func, args, kwargs) if may_open else None
        run = func if opened is None or opened.inside else partial(self.run_opened, opened)
        out = run(*args, **kwargs) if call is None else call(run, args, kwargs)
        if opened is not None and not opened.inside:  # before the memory of the result counts as made
            self.attempt(opened.finish, args, kwargs, out)
        if seal is not None:
            kept = self.attempt(seal.keep_call, func, args, kwargs, out, self.paused)
            out = out if kept is None else kept
        if kind:
            self.attempt(self.note_call, func, args, kwargs, out, opened)
        return out

    def note_call(self, func: Any, args: Any, kwargs: Any, out: Any, opened: OpenedKernel | None) -> None:
        """An operator returned ``out``."""
        call = DispatchedCall(func, args, kwargs, out, opened)
        if self.paused:
            self.skip_call()
        elif self.opened is None:
            self.place(call)
        else:
            self.opened.add(self._records.record(call, ""), call)
            self.follow_inside(call, self.opened)

    def prepare_kernel(self, func: Any, args: Any, kwargs: Any) -> OpenedKernel:
        """The kernel of another library's operator, before it runs."""
        followed = self.beneath_autograd and (self.opened is None or self.opened.has_gradients)
        return OpenedKernel(func, args, kwargs, self.seal, followed)

    def run_opened(self, opened: OpenedKernel, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel of another library's operator, and record what it dispatches in ``opened``."""
        held = self.opened, self.seal
        try:
            with opened.watch_leaving(), self:
                self.opened, self.seal = opened, opened.seal
                return call_kernel(opened, args, kwargs)
        finally:
            self.opened, self.seal = held

    __torch_dispatch__ = dispatch

    def kind_of(self, func: Any) -> int:
        """The kind of what is dispatched, which is asked once for each operator."""
        if isinstance(func, torch._ops.HigherOrderOperator):
            return HIGHER_ORDER
        if is_work(func) and kernel_replaced(func):
            self.problems.append(Problem(self.where(), operator(func).name, self.where(), KERNEL_REPLACED))
        return OPERATOR if is_work(func) else NO_WORK

    def has_kernel(self, _args: Any) -> bool:
        """Whether an operator that is nothing but others has a kernel of its own for these arguments."""
        return False

    def meet_wrapped(self, _func: Any, _types: Any, _args: Any, _kwargs: Any) -> Any:
        """What the mode returns for a call on tensors of a class that takes it apart: what that calls is met here."""
        return NotImplemented

    def meet_fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of a call on tensors without values, which is no work."""
        return func(*args, **kwargs)

    def skip_call(self) -> None:
        """An operator ran while paused."""

    def follow_inside(self, call: DispatchedCall, opened: OpenedKernel) -> None:
        """An operator ran in the kernel of another library's."""

    def place(self, call: DispatchedCall) -> None:
        """Add the op of a call, in the layer and the phase in which it belongs."""
        self.add(self.record(call, self.where()))

    def where(self) -> str:
        """Layer of what runs now."""
        return self.path.current

    def record(self, call: DispatchedCall, layer: str) -> Op:
        """The record of a call, without an id."""
        op = self._records.record(call, layer)
        if self.tangents.has(call.inputs):
            op = op._replace(attrs=dict(op.attrs, **{TANGENT: True}))
        return op

    def open_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let an operator through that runs functions itself, and record it as one op."""
        out = func(*args, **kwargs)
        self.attempt(self.note_functions, func, args, out)
        return out

    def note_functions(self, func: Any, args: Any, out: Any) -> None:
        """An operator that runs functions returned ``out``, and is recorded as one op."""
        self.hold_memory(out)
        if not self.paused:
            self.add(higher_order.record(func, args, out, self.path.current))

    def add(self, op: Op) -> None:
        """One more call of the op."""
        if self.opened is not None:
            self.opened.add(op)
            return
        if self.on_thread:
            op = op._replace(attrs=dict(op.attrs, **{ON_THREAD: True}))
        with self._lock:
            self._tally.add(op)

    @contextmanager
    def follow_seal(self, seal: Seal | None, module: torch.nn.Module, inputs: list[Any]) -> Iterator[None]:
        """Within this, a seal follows a call of the module."""
        has_values = not any(tensor.is_meta for tensor in tensors_in(inputs))
        self.seal = seal if has_values else None
        if self.seal is None:
            yield
            return
        self.seal.begin(module, inputs, self.where)
        with watch_leaving(self.seal.note_left, LEAVING + BY_ADDRESS):
            yield
        self.seal.check_state()

    def list_computed_elsewhere(self) -> list[Problem]:
        """What was computed by no operator."""
        return self.computed_elsewhere

    def check_memory(self, tensors: list[torch.Tensor], reader: str) -> None:
        """A call that is recorded as one op is about to read these."""
        if self.seal is not None:
            self.seal.check(tensors, reader)

    def hold_memory(self, out: Any) -> None:
        """A call that is recorded as one op returned this."""
        if self.seal is not None:
            self.seal.hold(tensors_in(out))

    def check_result(self, result: Any) -> None:
        """The call returned this."""
        if not self.ops and not self.problems:
            refuse_idle(result)
        if self.seal is not None:
            returned = find_returned(self.path.root, result)
            self.seal.check_result(result if returned is result else (result, returned))

    @contextmanager
    def watch_surroundings(self, is_apart: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Within this, threads that start are followed, and what no mode sees becomes a problem of the trace.

        ``is_apart()`` says that what a process does now is no part of the call.
        """
        twice = self.seal is not None and self.seal.is_repeated
        unseen = nullcontext() if twice else note_unrecorded(self.path, self.problems, is_apart)
        threads = record_new_threads(lambda: self.beside(self.path.current))
        with unseen, threads, make_subclasses(self.note_subclass):
            yield

    def note_subclass(self, name: str) -> None:
        """A tensor of a class of the program's own was made, beneath the modes of this recorder and of any counter."""

    @contextmanager
    def beside(self, layer: str) -> Iterator[None]:
        """On a thread of the model's own, started in that layer: what it runs is recorded here, too."""
        twin = Recorder(self.path)
        twin._tally, twin._lock, twin.on_thread = self._tally, self._lock, True
        twin.seal = self.seal
        with FusedCalls(twin), twin, self.path.within(layer):
            yield
