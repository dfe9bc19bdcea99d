"""``Alignment``: maps an op's layer path in one framework to the layer of the pair, the row that reports show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

from ..core.records import LOSS_LAYER, Layer
from ..core.registry import frameworks

ROOT = "(model)"


class Alignment:
    """Maps a framework's layer path to the pair's layer name, by the longest named path around it.

    A model that a framework makes from another's has the layers of that one. A layer that no row names is one with that of the
    ``wholes`` of its framework around it.
    """

    def __init__(self, layers: Sequence[Layer], wholes: Mapping[str, frozenset[str]] = MappingProxyType({})) -> None:
        self._wholes = wholes
        self.names = tuple(layer.name for layer in layers)
        self._names: dict[str, dict[str, str]] = {}
        self._found: dict[tuple[str, str], str] = {}
        for layer in layers:
            for framework, paths in layer.paths.items():
                for path in (paths,) if isinstance(paths, str) else paths:
                    self._names.setdefault(framework, {})[path] = layer.name
        for record in frameworks().values():
            if record.exports in self._names:
                self._names.setdefault(record.name, self._names[record.exports])

    def layer(self, framework: str, path: str) -> str:
        """The pair's layer of this path; a path that no layer names gets its own row: ``tf:path``."""
        layer = self._found.get((framework, path))
        if layer is None:
            layer = self._found[framework, path] = self._find(framework, path)
        return layer

    def set_row(self, framework: str, path: str, row: str) -> None:
        """Give a path a row by itself."""
        self._found[framework, path] = row

    def _find(self, framework: str, path: str) -> str:
        names = self._names.get(framework, {})
        for around in reversed(enclosing_layers(path)):
            if around in names:
                return names[around]
        if not path:
            return ROOT
        if path == LOSS_LAYER:
            return path
        path = outermost(path, self._wholes.get(framework, frozenset()))
        return f"{framework}:{path}" if self.names else path

    def order(self, layers: Iterable[str]) -> tuple[str, ...]:
        """The given layers in order: the pair's layers in its order, then the others as given."""
        seen = dict.fromkeys(layers)
        known = dict.fromkeys(name for name in self.names if name in seen)
        return (*known, *(name for name in seen if name not in known))


def inside(path: str, outer: str) -> bool:
    """Whether the layer at ``path`` is inside the layer ``outer``; False of itself, and if ``outer`` is the model."""
    return bool(outer) and path.startswith(outer + ".")


def enclosing_layers(path: str) -> list[str]:
    """The layers around a layer, outermost first, and the layer itself: ``["a", "a.b"]`` for ``a.b``, ``[""]`` for the model."""
    return list(accumulate(path.split("."), "{}.{}".format))


def outermost(path: str, wholes: frozenset[str]) -> str:
    """The outermost of the layers ``wholes`` that a path is or is in, else the path."""
    return next((outer for outer in enclosing_layers(path) if outer in wholes), path)


def name_row(paths: Mapping[str, Sequence[str]]) -> str:
    """The name of a row with these layers of one or two frameworks: the second one's first layer, or ``framework:layer``; ROOT if
    the model itself is among them."""
    sides = [(side, some) for side, some in paths.items() if some]
    if any("" in some for _, some in sides):
        return ROOT
    return sides[1][1][0] if len(sides) > 1 else f"{sides[0][0]}:{sides[0][1][0]}"
