"""``wrap_function`` wraps a function of PyTorch or Python while a context is open; contexts may end in any order.

Contexts of a program's step (``reconcile.count``) may overlap, on one thread or on several. Each takes its own wrapper away
when it ends, the others keep theirs, and after the last one the function is the original again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Callable

Make = Callable[[Any], Any]
"""Makes the wrapper of the function that it is given."""


class _Place:
    """An attribute, what it was, and what makes its wrappers, the innermost first."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.own, self.original = name in vars(owner), getattr(owner, name)
        self.makes: list[Make] = []

    def fill(self) -> None:
        """Put the wrappers, or else the original, in place."""
        function = self.original
        for make in self.makes:
            function = make(function)
        if self.makes or self.own:
            setattr(self.owner, self.name, function)
        else:
            delattr(self.owner, self.name)


_lock = RLock()
_places: dict[tuple[int, str], _Place] = {}
"""The attributes that are wrapped now, by their owner's id: the place keeps the owner."""


@contextmanager
def wrap_function(owner: Any, name: str, make: Make) -> Iterator[None]:
    """Within this context, ``owner.name`` is ``make(function)``, where ``function`` is what it would be without this context."""
    key = (id(owner), name)
    with _lock:
        place = _places.get(key) or _places.setdefault(key, _Place(owner, name))
        place.makes.append(make)
        place.fill()
    try:
        yield
    finally:
        with _lock:
            place.makes.remove(make)
            place.fill()
            if not place.makes:
                del _places[key]
