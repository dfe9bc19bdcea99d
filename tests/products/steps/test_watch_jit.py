"""Which calls of jitted functions a watch takes as the program's steps: with a library that only looks like JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.adapters.jax.watch import NO_RANGE_OF_STEPS, Handed, Watch

STEP, GRADIENTS = "optimizer", "backward"


class Now:
    """What JAX would say: a function is a step by its name, and nothing is traced unless ``tracing``."""

    def __init__(self) -> None:
        self.tracing = False
        self.asked: list[str] = []

    def at_top(self) -> bool:
        return not self.tracing

    def step_of(self, function: Any, _given: Any, _named: Any) -> str:
        self.asked.append(function.__name__)
        if function.__name__ == "untraceable":
            raise ValueError("no shapes")
        return {"train": STEP, "gradients": GRADIENTS}.get(function.__name__, "")

    def shapes_of(self, given: Any, _named: Any) -> Any:
        return tuple(type(value) for value in given)

    def devices(self, given: Any, _named: Any) -> int:
        return 4 if given == (4.0,) else 1

    def fresh(self, *_call: Any) -> None:
        """No library keeps anything here."""


class Jitted:
    """As jax.jit returns it."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(*given, **named)

    def lower(self, *_given: Any) -> str:
        return "lowered"


def jit(function: Any = None, **_options: Any) -> Any:
    return Jitted(function) if function is not None else Jitted


def value_and_grad(function: Any) -> Any:
    return lambda *given: (function(*given), 1)


def train(weight: float, rows: int = 1) -> float:
    return weight + rows


def evaluate(weight: float) -> float:
    return weight


def gradients(weight: float) -> float:
    return weight


def untraceable(weight: float) -> float:
    return weight


class Ended(BaseException):
    """The program is ended in its middle."""


Watching = Callable[..., SimpleNamespace]


@pytest.fixture
def watching() -> Watching:
    """A library that is watched, its watch, and what was handed over."""

    def made(first: int = 1, last: int | None = None, call: int = 0) -> SimpleNamespace:
        handed: list[tuple[Any, Handed]] = []

        def done(taken: Any) -> None:
            if taken is None:
                raise Ended
            handed.append(taken)

        now, library = Now(), SimpleNamespace(jit=jit, value_and_grad=value_and_grad)
        watch = Watch((first, last or first), call, done, now)
        watch.wrap(library, "jax")
        return SimpleNamespace(library=library, watch=watch, now=now, handed=handed)

    return made


def test_the_asked_step_is_handed_over_with_its_call(watching: Watching) -> None:
    w = watching(2)
    step, other = w.library.jit(train), w.library.jit(evaluate)
    for weight in (1.0, 2.0, 3.0):
        assert (other(weight), step(weight, rows=4)) == (weight, weight + 4)
    ((function, handed),) = w.handed
    assert isinstance(function, Jitted)
    assert handed.arguments == ((2.0,), {"rows": 4})
    assert handed.note.startswith("step 2: a call of train (test_watch_jit.py:")
    assert w.now.asked == ["evaluate", "train"]  # once for each function and shapes
    assert handed.note.endswith(", as the script jitted it")


def test_a_release_that_is_not_known_leaves_the_program(watching: Watching) -> None:
    w = watching()
    del w.now.tracing  # asked for it, JAX has no such thing
    assert w.library.jit(train)(1.0) == 2.0
    assert w.handed == []
    assert "steps of this release of JAX are not watched: " in w.watch.summary()["without"]


def test_a_decorator_with_options_and_a_method(watching: Watching) -> None:
    w = watching()

    class Trainer:
        @functools.partial(w.library.jit, static_argnums=0)
        def train(self, weight: float) -> float:
            return weight

    trainer = Trainer()
    assert trainer.train(5.0) == 5.0
    assert w.handed[0][1].arguments == ((trainer, 5.0), {})


def test_a_call_within_a_traced_function_is_none(watching: Watching) -> None:
    w = watching()
    step = w.library.jit(train)
    w.now.tracing = True
    assert step(1.0) == 2.0
    assert (w.handed, w.watch.summary()["calls"]) == ([], 0)
    w.now.tracing = False
    step(1.0)
    assert len(w.handed) == 1


def test_gradients_without_an_update_say_so(watching: Watching) -> None:
    w = watching()
    w.library.jit(gradients)(1.0)
    assert "takes gradients and updates nothing" in w.handed[0][1].note


def test_a_step_on_several_devices_says_so(watching: Watching) -> None:
    w = watching()
    w.library.jit(train)(4.0)
    assert "its arrays are on 4 devices" in w.handed[0][1].note


def test_the_asked_call_needs_no_gradient(watching: Watching) -> None:
    w = watching(call=2)
    for weight in (1.0, 2.0):
        w.library.jit(evaluate)(weight)
    ((_, handed),) = w.handed
    assert (handed.arguments[0], w.now.asked) == ((2.0,), [])


def test_a_range_of_steps_ends_at_the_first(watching: Watching) -> None:
    w = watching(1, 2)
    w.library.jit(evaluate)(1.0)
    with pytest.raises(Ended):
        w.library.jit(train)(1.0)
    assert w.watch.summary()["below"] == NO_RANGE_OF_STEPS


def test_a_jitted_function_is_otherwise_the_real_one(watching: Watching) -> None:
    w = watching()
    step = w.library.jit(train)
    assert (step.__name__, step.__wrapped__, step.lower(1.0)) == ("train", train, "lowered")
    assert isinstance(step, Jitted)
    w.library.jit(train)(1.0)
    assert type(w.library.jit(train)) is Jitted  # once the step is taken, nothing is watched


def looped(library: Any) -> None:
    """A step that nobody jitted."""
    for _ in range(3):
        library.value_and_grad(train)(1.0)


SEEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "nothing": (lambda library: library.jit(train), "it called no function of jax.jit directly"),
    "other calls": (lambda library: library.jit(evaluate)(1.0), "it called evaluate, jitted and without a gradient"),
    "not jitted": (looped, "it ran jax.value_and_grad("),
    "ahead of time": (lambda library: library.jit(train).lower(1.0), "it compiled train ahead of time"),
    "untraceable": (lambda library: library.jit(untraceable)(1.0), "untraceable cannot be traced by itself: ValueError"),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_what_a_script_without_a_step_is_told(watching: Watching, name: str) -> None:
    program, sentence = SEEN[name]
    w = watching()
    program(w.library)
    assert sentence in w.watch.summary()["without"]
    w.library.jit(train)(1.0)
    assert w.watch.summary()["without"] == ""
