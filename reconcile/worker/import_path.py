"""Where the modules of a user's own folder come from, and where in them an error was.

Their folder is to their own files what it is to ``python -c``: its modules come first.  To everything else, the frameworks and
the counters, it comes last, so that a file of theirs named like a package is no package.  Nothing is written beside them.

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
"""Packages that every model means by their names, whatever lies beside it; the frameworks are others."""

LENT = "not installed in that environment; lent, as it is here, by the one that reconcile runs in"
"""Note of a ledger whose counter came from another environment."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders that hold what somebody has installed."""

OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


class Theirs(object):
    """Finder of the modules of a user's folder, for imports from that folder; for those of the counters it is not there."""

    def __init__(self, folder, asked, lent, never):
        # type: (str, str, List[str], Sequence[str]) -> None
        self.folder = folder
        self.asked = asked
        self.lent = lent
        self.never = never

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Any) -> Any
        """The spec of a module that the folder has: this one for their own files, another one for this package's."""
        if path is not None or name in self.never or (name == "reconcile" and not self.asked):
            return None
        find = importlib.machinery.PathFinder.find_spec
        spec = find(name, [self.folder])
        if spec is None:
            return None
        file = _importer()
        if name == self.asked or is_theirs(file, self.folder):
            return spec if spec.loader is not None and spec.origin is not None else None
        if not file.startswith(tuple([OURS] + self.lent)) or name in sys.builtin_module_names:
            return None
        spec = find(name, [entry for entry in sys.path if entry != self.folder] + self.lent)
        if spec is None:
            raise ModuleNotFoundError("No module named %r" % name, name=name)
        return spec


class Lent(object):
    """Finder of the counters that another environment lends, for imports from this package and from what is lent itself."""

    def __init__(self, folder):
        # type: (str) -> None
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Any) -> Any
        """The spec of a lent package or module, None for all others and for everybody else."""
        if path is not None or not _importer().startswith((OURS, self.folder)):
            return None
        return importlib.machinery.PathFinder.find_spec(name, [self.folder])

    def find_distributions(self, context):
        # type: (Any) -> Any
        """The metadata of a lent package, for its version. Python 3.8."""
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        where = DistributionFinder.Context(name=context.name, path=[self.folder])
        return MetadataPathFinder.find_distributions(where)


class Brought(object):
    """Finder of one package that an outside adapter lies in, and of this package for the imports that stand in that one.

    The adapter says ``reconcile`` and gets the modules that serve it, whatever those are called here.
    """

    def __init__(self, package, folder):
        # type: (str, str) -> None
        self.package = package
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Any) -> Any
        """The spec of that package, or of a module of this one under its public name."""
        if path is None and name == self.package:
            return importlib.machinery.PathFinder.find_spec(name, [self.folder])
        top, _, rest = name.partition(".")
        if top != "reconcile" or top == ROOT or not _importer().startswith(os.path.join(self.folder, self.package)):
            return None
        module = importlib.import_module(ROOT + ("." + rest if rest else ""))
        return importlib.machinery.ModuleSpec(name, _Same(module), is_package=hasattr(module, "__path__"))


class _Same(importlib.abc.Loader):
    """Loader that hands out a module which is loaded already."""

    def __init__(self, module):
        # type: (Any) -> None
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec):
        # type: (Any) -> Any
        """The module."""
        return self.module

    def exec_module(self, module):
        # type: (Any) -> None
        """Nothing runs again; the import system has written a new spec into the module, whose own comes back."""
        module.__spec__ = self.spec


def bring(package, folder):
    # type: (str, str) -> None
    """Make the package of an outside adapter importable, out of the folder that holds it."""
    sys.meta_path.insert(0, Brought(package, folder))


def borrow(folder):
    # type: (str) -> None
    """Let the counters in that folder stand in for those that are not installed."""
    sys.meta_path.append(Lent(folder))


def is_lent(module):
    # type: (str) -> bool
    """Whether that package comes from another environment."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return any(isinstance(finder, Lent) and file.startswith(finder.folder) for finder in sys.meta_path)


def _importer():
    # type: () -> str
    """The file in which the import stands that is looking for a module; '' if there is none."""
    frame = sys._getframe(2)  # type: Any
    while frame is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def _is_machinery(file):
    # type: (str) -> bool
    return file.startswith("<frozen importlib") or os.path.dirname(file).endswith("importlib")


def is_theirs(file, folder):
    # type: (str, str) -> bool
    """Whether a source file belongs to the code in that folder; an environment inside it does not."""
    path = os.path.abspath(file)
    inside = path.startswith(os.path.join(folder, "")) and not file.startswith("<")
    return inside and not any(part in path for part in INSTALLED + (OURS,))


def welcome(folder, paths, module, known):
    # type: (str, Sequence[str], str, Mapping[str, str]) -> None
    """Make the modules of that folder importable, and those of ``paths`` behind it; ``module`` is the one asked for,
    and ``known`` are the frameworks' packages, which the folder cannot hide.

    This package gives its own name to whatever they have by it; where they have nothing, it is there as well. To a pair file,
    for which no module is asked, the name means this package.
    """
    behind = [folder] + list(paths)
    if module and sys.path and sys.path[0].endswith(".pyz"):
        behind.append(sys.path.pop(0))
    sys.path.extend(path for path in behind if path not in sys.path)
    lent = [finder.folder for finder in sys.meta_path if isinstance(finder, Lent)]
    sys.meta_path.insert(0, Theirs(folder, module.partition(".")[0], lent, NEVER + tuple(known.values())))
    sys.dont_write_bytecode = True


def place(error, folder):
    # type: (BaseException, str) -> str
    """File and line of the innermost call in their files, such as ``net.py, line 12``; '' if there is none."""
    frames = [(f[0], f[1]) for f in traceback.extract_tb(error.__traceback__)]  # type: List[Any]
    mine = [(os.path.abspath(f[0]), f[1]) for f in frames if is_theirs(f[0], folder)]
    return "%s, line %d" % (os.path.relpath(mine[-1][0], folder), mine[-1][1]) if mine else ""
