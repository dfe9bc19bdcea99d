"""A framework as a record, and the registry of them: nothing else in this package knows a framework by its name.

A framework is a folder below ``adapters/`` whose ``__init__`` states its :class:`Framework`, or a package of somebody else's
that registers one by an entry point of group ``reconcile.frameworks``: ``numpy = "my_package:FRAMEWORK"``.  The record
says what home has to know.  What runs beside the framework is in the module that ``adapter`` names (adapters/shared/adapter.py).

Python 3.6 and the standard library: a record travels to the workers.
"""

import functools
import importlib
import os
from typing import Any, Dict, NamedTuple, Tuple

GROUP = "reconcile.frameworks"
"""The group of entry points."""

BUILT_IN = ("tensorflow", "pytorch", "onnx")
"""Folders below ``adapters/``, in the order in which reports show them."""

ROOT = __package__.rpartition(".")[0]
"""This package by the name that it goes by here: a worker calls it by another one."""


class Framework(NamedTuple):
    """What is known of a framework before anybody imports it.

    ``name`` is its option (``--name``), the key of its layers, and ``trace@name``; ``title`` is its own name; ``package`` is
    what one imports.  ``adapter`` is the module that has its ``Adapter``, absolute, or below this package with a dot in front.
    ``model`` is what a factory of it returns, and ``metavar`` and ``help`` are for its option.

    ``extra`` is the extra of this distribution that installs it, '' for none; ``distributions`` are the names under which it
    and the packages around it are installed, by which an environment's requirements are told apart; ``beside`` are those that
    such an environment needs too.  ``files`` are the kinds of model files that it reads, each with what to call it.

    ``factories`` says whether a function can make a model of it (otherwise only a file holds one), ``trains`` whether its
    training step is traced, ``aligned`` whether its layers have names that an author gave them.  ``retraced`` says whether
    a trace whose process died is taken once more, in another way.  ``backend`` is what Keras 3 calls it, '' for none.
    ``copied`` says whether a model at hand is copied for every counter.

    ``folder`` is where its top-level package lies if somebody else's package states it: a worker finds it there.
    """

    name: str
    title: str
    package: str
    adapter: str
    model: str
    help: str = ""
    metavar: str = "MODULE:FUNCTION"
    extra: str = ""
    distributions: Tuple[str, ...] = ()
    beside: Tuple[str, ...] = ()
    files: Tuple[Tuple[str, str], ...] = ()
    factories: bool = True
    trains: bool = False
    aligned: bool = True
    retraced: bool = False
    backend: str = ""
    copied: bool = False
    folder: str = ""

    @property
    def trace(self):
        # type: () -> str
        """The name of its work as the end of a statement."""
        return "trace@" + self.name


@functools.lru_cache(maxsize=None)
def frameworks():
    # type: () -> Dict[str, Framework]
    """Every framework by its name: the built-in ones in their order, then those of other packages, sorted.

    Raises UsageError for an entry point that cannot be loaded, that is no Framework, or whose name is taken.
    """
    known = {}  # type: Dict[str, Framework]
    for folder in BUILT_IN:
        record = importlib.import_module("%s.adapters.%s" % (ROOT, folder)).FRAMEWORK
        known[record.name] = record
    for point in _entry_points():
        record = _loaded(point)
        if record.name in known:
            raise _refused(point, "there is a framework of the name %s already" % record.name)
        known[record.name] = record
    return known


def title(name):
    # type: (str) -> str
    """What a framework calls itself; the name for one that is not registered here."""
    record = frameworks().get(name)
    return record.title if record is not None else name


def adapter_of(record):
    # type: (Framework) -> Any
    """The framework's Adapter, made. Raises ImportError."""
    relative = record.adapter.startswith(".")
    return importlib.import_module((ROOT if relative else "") + record.adapter).Adapter(record)


def _entry_points():
    # type: () -> Any
    """The registered ones in the order of their names. Python 3.10."""
    from importlib import metadata

    return sorted(metadata.entry_points(group=GROUP), key=_shown)


def _shown(point):
    # type: (Any) -> str
    return "%s = %s (group %s)" % (point.name, point.value, GROUP)


def _refused(point, why):
    # type: (Any, str) -> Exception
    from .errors import UsageError

    return UsageError(
        "the entry point %s cannot be used: %s. Mend or uninstall the package that has it." % (_shown(point), why)
    )


def _loaded(point):
    # type: (Any) -> Framework
    try:
        record = point.load()
    except Exception as error:
        raise _refused(point, "it cannot be loaded (%s: %s)" % (type(error).__name__, error)) from error
    if type(record).__name__ != Framework.__name__ or not hasattr(record, "_asdict"):
        raise _refused(point, "it is not a Framework record")
    record = Framework(**record._asdict())
    module = importlib.import_module(point.value.partition(":")[0].partition(".")[0].strip())
    file = os.path.abspath(str(module.__file__))
    held = os.path.dirname(file) if os.path.basename(file) == "__init__.py" else file
    return record._replace(folder=os.path.dirname(held))
