"""An import hook that calls a function once a given package has been imported, so that ``reconcile watch`` can watch it."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any


class Imported(importlib.abc.MetaPathFinder):
    """Calls ``then()`` when the package of this name has been imported, by whatever imports it."""

    def __init__(self, package: str, then: Callable[[], Any]) -> None:
        self.package, self.then = package, then

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """See importlib.abc.MetaPathFinder."""
        if fullname != self.package or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            self.then()

        loader.exec_module = exec_module
        return spec
