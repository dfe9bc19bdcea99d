"""A framework as a record, and what it takes to reach its adapter.

A framework is a folder below ``adapters/`` whose ``__init__`` states its :class:`Framework`, or a package of somebody else's
that registers one by an entry point of group ``reconcile.frameworks``: ``numpy = "my_package:FRAMEWORK"``.  The record says
what home has to know (core/registry.py).  What runs beside the framework is in the module that ``adapter`` names
(adapters/shared/adapter.py).

Python 3.6 and the standard library: a record travels to the workers.
"""

import importlib
from typing import Any, NamedTuple, Tuple

ROOT = __name__.rsplit(".", 2)[0]
"""This package by the name that it goes by here: a worker calls it by another one."""


class Framework(NamedTuple):
    """What is known of a framework before anybody imports it.

    ``name`` is its option (``--name``), the key of its layers, and ``trace@name``; ``title`` is its own name; ``package`` is
    what one imports.  ``adapter`` is the module that has its ``Adapter``, and ``formulas`` the one that registers the work of its
    ops when home imports it (work/); either is absolute, or below this package with a dot in front.  ``model`` is what a
    factory of it returns, and ``metavar`` and ``help`` are for its option.

    ``extra`` is the extra of this distribution that installs it, '' for none; ``distributions`` are the names under which it
    and the packages around it are installed, by which an environment's requirements are told apart; ``beside`` are those that
    such an environment needs too.  ``files`` are the kinds of model files that it reads, each with what to call it.

    ``factories`` says whether a function can make a model of it (otherwise only a file holds one), ``trains`` whether its
    training step is traced, ``aligned`` whether its layers have names that an author gave them.  ``retraced`` says whether
    a trace whose process died is taken once more, in another way.  ``backend`` is what Keras 3 calls it, '' for none.

    ``folder`` is where its top-level package lies if somebody else's package states it: a worker finds it there.
    ``place`` orders the options in ``--help``, the smallest first; those that say none come last.
    """

    name: str
    title: str
    package: str
    adapter: str
    formulas: str
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
    folder: str = ""
    place: int = 100

    @property
    def trace(self):
        # type: () -> str
        """The name of its work as the end of a statement."""
        return "trace@" + self.name


def adapter_of(record):
    # type: (Framework) -> Any
    """The framework's Adapter, made. Raises ImportError."""
    return importlib.import_module(absolute(record.adapter)).Adapter(record)


def relative(module):
    # type: (str) -> str
    """A module's name as it travels: one of this package begins with a dot."""
    return module[len(ROOT) :] if module.startswith(ROOT + ".") else module


def absolute(module):
    # type: (str) -> str
    """The name of that module in this process."""
    return ROOT + module if module.startswith(".") else module
