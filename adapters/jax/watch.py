"""``reconcile watch`` for JAX: wraps ``jax.jit`` and ``nnx.jit`` in a script and takes the requested call of a jitted step.

A call counts if the program makes it, and not a function that JAX is tracing. A jitted function is a step if its trace has a
backward pass; that is decided once for each function and shapes (step.py). This module does not import JAX.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.records import BACKWARD
from ..shared.imported import Imported
from ..shared.refusal import reason_of

NO_RANGE_OF_STEPS = (
    "a range of steps is not for jax.jit, whose steps are counted one by one: give one, such as --steps 1"
)
STEP_NOTE = "step %d: a call of %s, as the script jitted it"
CALL_NOTE = "a call of %s, as the script jitted it: call %d of a jitted function"
NO_UPDATE = ", which takes gradients and updates nothing: what the optimizer runs outside of it is not counted"
ON_SEVERAL_DEVICES = (
    "; its arrays are on %d devices, and its count is that of all of them, as of one program on one device"
)
RAN_OUTSIDE_OF_JIT = (
    "it ran %s outside of jax.jit, where a step is not watched: put the whole step into one function and jit that, or count it "
    "with reconcile run --jax %s:%s --args %s:FUNCTION, where FUNCTION returns its arguments"
)
CALLED_WITHOUT_GRADIENT = "it called %s, jitted and without a gradient: count a call with --calls 1"
FUNCTION_NOT_TRACED = "its jitted function %s cannot be traced by itself: %s"
RELEASE_NOT_WATCHED = "steps of this release of JAX are not watched: %s"
NO_JITTED_CALL = "it called no function of jax.jit directly, and within jax.vmap and the like none is watched"
COMPILED_AHEAD_OF_TIME = (
    "it compiled %s ahead of time with lower(...), where a step is not watched: call the jitted function itself"
)
EAGERLY = ("grad", "value_and_grad", "pmap")
"""Functions that differentiate, or run on several devices, whether jitted or not."""


class Handed:
    """One call of a jitted function: its ``arguments`` and what the report says of it."""

    def __init__(self, arguments: tuple[Any, ...], named: dict[str, Any], name: str, note: str) -> None:
        self.arguments, self.name, self.note = (arguments, named), name, note


def watch(jax: Any, nested: tuple[Any, ...], steps: tuple[int, int], call: int, done: Callable[[Any], None]) -> Any:
    """See Framework.watched: ``done`` gets a function and its call."""
    watching = Watch(steps, call, done)
    watching.wrap(jax, "jax")
    sys.meta_path.insert(0, Imported("flax.nnx", lambda: watching.wrap(sys.modules["flax.nnx"], "nnx")))
    return watching


class Watch:
    """``done`` gets (function, Handed) before the asked call runs, in the middle of the program, or None to end it uncounted.

    ``now`` says what JAX says of a call, and of now: step.py.
    """

    def __init__(self, steps: tuple[int, int], call: int, done: Callable[[Any], None], now: Any = None) -> None:
        self.wanted, self.call, self.done = steps, call, done
        if now is not None:
            self.now = now
        self.old = ""
        self.calls = self.steps = 0
        self.below = ""
        self.finished = False
        self.plain = 0  # calls of a library within which what jax.jit makes is the library's own
        self.eager: dict[str, str] = {}  # what ran outside of jax.jit, and the function that ran it
        self.ahead: dict[str, None] = {}
        self.others: dict[str, None] = {}
        self.untraced: dict[str, str] = {}

    @functools.cached_property
    def now(self) -> Any:
        """step.py, which is imported when a jitted function is called."""
        from . import step

        return step

    def _watches(self) -> bool:
        """Whether a call that comes now is the program's own."""
        if self.plain or self.finished:
            return False
        try:
            return bool(self.now.at_top())
        except (ImportError, AttributeError) as error:  # the program may not even train with JAX: it goes on
            self.finished, self.old = True, reason_of(error)
            return False

    def wrap(self, module: Any, title: str) -> None:
        """Let this module's ``jit`` make functions that are watched, and its gradients say where they run."""
        module.jit = self._wrap_maker(module.jit, Watched)
        for name in EAGERLY:
            if hasattr(module, name):
                eager = functools.partial(self._eager, f"{title}.{name}")
                setattr(module, name, self._wrap_maker(getattr(module, name), eager))

    def _wrap_maker(self, make: Any, then: Callable[[Watch, Any], Any]) -> Any:
        """``make``, which takes a function, or options and then a function as a decorator does."""

        @functools.wraps(make)
        def make_watched(*given: Any, **options: Any) -> Any:
            if self.plain or self.finished:
                return make(*given, **options)
            made = self.plainly(make, given, options)
            if given or "fun" in options or "f" in options:
                return then(self, made)
            return lambda function: then(self, self.plainly(made, (function,), {}))

        return make_watched

    def _eager(self, title: str, _watch: Watch, made: Any) -> Any:
        @functools.wraps(made)
        def call_eager(*given: Any, **named: Any) -> Any:
            if not self._watches():
                return made(*given, **named)
            self.eager.setdefault(f"{title}({named_of(made)})", sys._getframe(1).f_code.co_name)
            return self.plainly(made, given, named)

        for name in ("lower", "eval_shape", "clear_cache"):  # of pmap's
            if hasattr(made, name):
                setattr(call_eager, name, getattr(made, name))
        return call_eager

    def plainly(self, function: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call within which nothing is watched."""
        self.plain += 1
        try:
            return function(*given, **named)
        finally:
            self.plain -= 1

    def run_function(self, watched: Watched, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The program calls a jitted function."""
        function = watched.real
        if not self._watches():
            return function(*given, **named)
        step = "" if self.call else self._step(watched, given, named)
        learns = bool(step)
        if learns and self.wanted[0] != self.wanted[1]:
            self.below = NO_RANGE_OF_STEPS
            self.done(None)
        place = f"{watched.name}{watched.place}"
        if self.call and self.calls + 1 == self.call and not watched.installed:
            self._hand(watched, given, named, CALL_NOTE % (place, self.call))
        elif learns and self.steps + 1 == self.wanted[0]:
            self._hand(
                watched, given, named, STEP_NOTE % (self.wanted[0], place) + (NO_UPDATE if step == BACKWARD else "")
            )
        made = function(*given, **named)
        self.steps += learns
        if not watched.installed:
            self.calls += 1
            if not learns:
                self.others.setdefault(watched.name)
        return made

    def _hand(self, watched: Watched, given: tuple[Any, ...], named: dict[str, Any], note: str) -> None:
        self.finished = True
        devices = self.now.devices(given, named)
        note += ON_SEVERAL_DEVICES % devices if devices > 1 else ""
        self.done((watched.real, Handed(given, named, watched.name, note)))
        self.now.fresh(watched.real, given, named)

    def _step(self, watched: Watched, given: tuple[Any, ...], named: dict[str, Any]) -> str:
        shapes = self.now.shapes_of(given, named)
        if shapes not in watched.known:
            try:
                watched.known[shapes] = self.plainly(self.now.step_of, (watched.real, given, named), {})
            except Exception as error:  # the program's own call says what is wrong, or runs
                watched.known[shapes] = ""
                self.untraced.setdefault(watched.name, reason_of(error))
        return watched.known[shapes]

    def summary(self) -> dict[str, Any]:
        """What it has seen of the program, where that ends before its step does."""
        without = "" if self.steps else self._without()
        return {"calls": self.calls, "steps": self.steps, "below": self.below, "without": without}

    def _without(self) -> str:
        if self.old:
            return RELEASE_NOT_WATCHED % self.old.rstrip(".")
        if self.eager:
            file = Path(sys.argv[0]).stem
            within = next((name for name in self.eager.values() if name.isidentifier()), "FUNCTION")
            return RAN_OUTSIDE_OF_JIT % (" and ".join(self.eager), file, within, file)
        for name, reason in self.untraced.items():
            return FUNCTION_NOT_TRACED % (name, reason.rstrip("."))
        if self.ahead:
            return COMPILED_AHEAD_OF_TIME % " and ".join(self.ahead)
        return CALLED_WITHOUT_GRADIENT % " and ".join(self.others) if self.others else NO_JITTED_CALL


class Watched:
    """A jitted function, watched. All else of it is that of the real one."""

    def __init__(self, watch: Watch, real: Any) -> None:
        self.watch, self.real = watch, real
        self.known: dict[Any, str] = {}
        self.name = named_of(real)
        code = getattr(unwrap_function(real), "__code__", None)
        self.place = f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else ""
        self.installed = code is not None and any(
            part in code.co_filename for part in ("site-packages", "dist-packages")
        )
        self.__doc__, self.__module__ = real.__doc__, getattr(real, "__module__", __name__)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.real)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """See Watch.run_function."""
        return self.watch.run_function(self, given, named)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """A method, where it is an attribute of a class."""
        return self if owner is None else types.MethodType(self, owner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def lower(self, *given: Any, **named: Any) -> Any:
        """Compiled ahead of time, its calls are not seen."""
        watch = self.watch
        if not watch.plain and not watch.finished:
            watch.ahead.setdefault(self.name)
        return self.real.lower(*given, **named)


def unwrap_function(function: Any) -> Any:
    """What jit, partial and a method hold, down to the program's own function."""
    for inner in ("__wrapped__", "func", "__func__"):
        held = getattr(function, inner, None)
        if held is not None and held is not function:
            return unwrap_function(held)
    return function


def named_of(function: Any) -> str:
    """The name of the program's own function, or of its class, for a reader."""
    own = unwrap_function(function)
    return str(getattr(own, "__name__", None) or type(own).__name__)
