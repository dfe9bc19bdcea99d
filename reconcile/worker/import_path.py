"""Import finders of a worker for user modules, lent counters and outside adapters; and where in user code an error arose.

For imports from the user's own files, their folder comes first, as with ``python -c``.  For all other imports, those of the
frameworks and the counters, it comes last, so that a file of the user's cannot hide a package.  No bytecode is written beside
the user's files.

Python 3.6 and standard library only.
"""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import traceback
from typing import Any, List, Mapping, Sequence

from ..core.framework import ROOT

NEVER = ("keras", "numpy")
"""Packages that no file of the user's may hide, beside the frameworks."""

PACKAGE_WAS_LENT = "its package is not installed in that environment: the copy that reconcile itself has was used there"
"""Note of a ledger whose counter came from another environment."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages."""

OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


class UserModules:
    """Finder of the modules in a user's folder, for imports from that folder; the imports of the counters do not see them."""

    def __init__(self, folder: str, asked: str, lent: List[str], never: Sequence[str]) -> None:
        self.folder = folder
        self.asked = asked
        self.lent = lent
        self.never = never

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of a module in the folder for the user's own files, of an installed one for this package's; None for others.
        Raises ModuleNotFoundError where this package or a lent one needs a module that only the user has."""
        if path is not None or name in self.never or (name == "reconcile" and not self.asked):
            return None
        find = importlib.machinery.PathFinder.find_spec
        spec = find(name, [self.folder])
        if spec is None:
            return None
        file = _importer()
        if name == self.asked or is_user_file(file, self.folder):
            return spec if spec.loader is not None and spec.origin is not None else None
        if not file.startswith(tuple([OURS] + self.lent)) or name in sys.builtin_module_names:
            return None
        spec = find(name, [entry for entry in sys.path if entry != self.folder] + self.lent)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec


class Lent:
    """Finder of the counters that another environment lends, for imports from this package and from the lent packages."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of a lent package or module; None for all others, and for imports from elsewhere."""
        if path is not None or not _importer().startswith((OURS, self.folder)):
            return None
        return importlib.machinery.PathFinder.find_spec(name, [self.folder])

    def find_distributions(self, context: Any) -> Any:
        """The metadata of a lent package, for its version. Python 3.8; an older one asks through a package of its own."""
        try:
            from importlib.metadata import DistributionFinder, MetadataPathFinder
        except ImportError:
            return ()
        where = DistributionFinder.Context(name=context.name, path=[self.folder])
        return MetadataPathFinder.find_distributions(where)


class Brought:
    """Finder of the package of an outside adapter, and of this package for the imports in that adapter.

    The adapter imports ``reconcile`` and gets the modules of this worker, whatever their private name is.
    """

    def __init__(self, package: str, folder: str) -> None:
        self.package = package
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of that package, or of a module of this one under its public name."""
        if path is None and name == self.package:
            return importlib.machinery.PathFinder.find_spec(name, [self.folder])
        top, _, rest = name.partition(".")
        if top != "reconcile" or top == ROOT or not _importer().startswith(os.path.join(self.folder, self.package)):
            return None
        module = importlib.import_module(ROOT + ("." + rest if rest else ""))
        return importlib.machinery.ModuleSpec(name, _Same(module), is_package=hasattr(module, "__path__"))


class _Same(importlib.abc.Loader):
    """Loader that returns a module which is already loaded."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: Any) -> Any:
        """The module."""
        return self.module

    def exec_module(self, module: Any) -> None:
        """Run nothing again, but restore the module's own spec, which the import system has overwritten."""
        module.__spec__ = self.spec


def import_outside(package: str, folder: str) -> None:
    """Make the package of an outside adapter importable from its folder."""
    sys.meta_path.insert(0, Brought(package, folder))


def borrow(folder: str) -> None:
    """Use the counters in that folder for those that are not installed."""
    sys.meta_path.append(Lent(folder))


def is_lent(module: str) -> bool:
    """Whether that package comes from another environment."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return any(isinstance(finder, Lent) and file.startswith(finder.folder) for finder in sys.meta_path)


def _importer() -> str:
    """The file with the import statement that is looking for a module; '' if there is none."""
    frame: Any = sys._getframe(2)
    while frame is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def _is_machinery(file: str) -> bool:
    return file.startswith("<frozen importlib") or os.path.dirname(file).endswith("importlib")


def is_user_file(file: str, folder: str) -> bool:
    """Whether a source file belongs to the code in that folder; an environment inside the folder does not."""
    path = os.path.abspath(file)
    inside = path.startswith(os.path.join(folder, "")) and not file.startswith("<")
    return inside and not any(part in path for part in INSTALLED + (OURS,))


def welcome(folder: str, paths: Sequence[str], module: str, known: Mapping[str, str]) -> None:
    """Make the modules of that folder importable, followed by those of ``paths``. ``module`` is the one asked for,
    and ``known`` are the frameworks' packages, which the folder cannot hide.

    If the user has a module of this package's name, the name means their module, otherwise this package. In a pair file, for
    which no module is asked, the name always means this package.
    """
    behind = [folder] + list(paths)
    if module and sys.path and sys.path[0].endswith(".pyz"):
        behind.append(sys.path.pop(0))
    sys.path.extend(path for path in behind if path not in sys.path)
    lent = [finder.folder for finder in sys.meta_path if isinstance(finder, Lent)]
    sys.meta_path.insert(0, UserModules(folder, module.partition(".")[0], lent, NEVER + tuple(known.values())))
    sys.dont_write_bytecode = True


def location(error: BaseException, folder: str) -> str:
    """File and line of the innermost call in the user's files, such as ``net.py, line 12``; '' if there is none."""
    frames: List[Any] = [(f[0], f[1]) for f in traceback.extract_tb(error.__traceback__)]
    calls = [(os.path.abspath(f[0]), f[1]) for f in frames if is_user_file(f[0], folder)]
    return f"{os.path.relpath(calls[-1][0], folder)}, line {calls[-1][1]}" if calls else ""
