"""``Framework``: the record by which a framework is declared, what loads its adapter, and a pause of garbage collection.

A framework is a folder below ``adapters/`` whose ``__init__`` declares its :class:`Framework`, or another package that
registers one with an entry point in the group ``reconcile.frameworks``: ``numpy = "my_package:FRAMEWORK"``.  The record holds
all that the main process ("home") has to know (core/registry.py).  The code that runs beside the framework is in the module that
``adapter`` names (adapters/shared/adapter.py).

Python 3.6 and the standard library: the main process sends the record to the workers.
"""

import gc
import importlib
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple, Tuple

ROOT = __name__.rsplit(".", 2)[0]
"""This package's name in this process: in a worker it has a different one."""


class Framework(NamedTuple):
    """A framework's description, known before anything imports it.

    Attributes:
        name: Its option (``--name``), the key of its layers, and ``trace@name``.
        title: Its own name.
        package: The package to import.
        adapter: The module that has its ``Adapter``, absolute, or relative to this package with a leading dot.
        formulas: The module that registers the work of its ops when home imports it (work/), written like ``adapter``.
        more_formulas: Modules that register the work of further ops, written like ``adapter``.
        declared_by: Modules whose ``watch`` is called before it is imported: they declare operators of libraries.
        model: What its factory returns, in words.
        help: The help of its option.
        metavar: What its option takes, as ``--help`` shows it.
        extra: The extra of this distribution that installs it; '' for none.
        distributions: The names under which it is installed.
        newest_python: The newest Python that its releases are built for, as far as is known; () for one that is built for any.
        around: The names of packages that need it: by these and ``distributions`` an environment's requirements are recognised.
        beside: Further distributions that such an environment needs.
        bounds: Those that a range of its versions needs and does not declare: (versions, requirements).
        files: The kinds of model files that hold its models, each with its title.
        loader: The module that loads such a file (``ready()``, ``load(file, given)``), written like ``adapter``; '' for none.
        factories: Whether a function can make its model; otherwise the model has to be a file.
        trains: Whether its training step is traced.
        decodes: Whether a language model's call with a cache is traced.
        aligned: Whether an author named its layers.
        retraced: Whether a trace whose process died is taken again, in another way (on meta twice).
        lends: Whether a trace that one version takes can be compared with the counters of another. In TensorFlow it cannot,
            because each release of Keras names its nodes differently.
        backend: Its name in Keras 3; '' for none.
        forks: Whether a process that has imported it can be forked: one with threads of its own cannot.
        placed: Whether its counters run a model on the device that the user names.
        steps: The package that records a program's own step where it runs (products/steps/pytorch), written like ``adapter``: its
            module ``context`` records, and ``calls`` tells when. '' for none.
        launches: Modules that count what a launched kernel multiplies (pytorch/tracing/launches.py), written like ``adapter``.
        ranks: The module that runs a rank of a world (products/ranks/worker.py), written like ``adapter``; '' for none.
        watched: The module after whose import a program is watched for its step (products/steps/watched_program.py), its name in
            words, and the module, written like ``adapter``, whose ``watch(module, nested, steps, call, done)`` does; () for none.
        fits: The module whose ``FitBatches`` follows Keras' ``fit``, whose step is one graph, written like ``adapter``; ''
            for none.
        optimizers: The names that --optimizer takes for its training step, in lower case, the default first.
        exports: The framework from whose side of a pair it makes a model if the pair has none of its own; '' for none.
        libraries: Packages whose models are made from a configuration, each with the module that lists and makes them:
            ``names()`` returns the names of its classes, and ``maker(value)`` a factory for one of them.
        functions: Packages whose models are functions, each with the module that has them and the one that lists them with their
            inputs (``names()``, a list of (function, inputs)), '' if every public function of its module is a model that defines
            its own inputs.
        folder: The folder of its top-level package if another package declares it: a worker imports it from there. '' otherwise.
        order: Sorts the options in ``--help``, the smallest first; the default comes last.
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
    newest_python: Tuple[int, ...] = ()
    around: Tuple[str, ...] = ()
    beside: Tuple[str, ...] = ()
    bounds: Tuple[Tuple[str, Tuple[str, ...]], ...] = ()
    files: Tuple[Tuple[str, str], ...] = ()
    loader: str = ""
    factories: bool = True
    trains: bool = False
    decodes: bool = False
    aligned: bool = True
    retraced: bool = False
    lends: bool = True
    backend: str = ""
    forks: bool = False
    placed: bool = False
    steps: str = ""
    launches: Tuple[str, ...] = ()
    ranks: str = ""
    watched: Tuple[str, ...] = ()
    fits: str = ""
    optimizers: Tuple[str, ...] = ()
    exports: str = ""
    libraries: Tuple[Tuple[str, str], ...] = ()
    functions: Tuple[Tuple[str, str, str], ...] = ()
    more_formulas: Tuple[str, ...] = ()
    declared_by: Tuple[str, ...] = ()
    folder: str = ""
    order: int = 100

    @property
    def trace(self) -> str:
        """The name of its trace in statements."""
        return "trace@" + self.name


def adapter_of(record: Framework) -> Any:
    """A new Adapter of the framework. Raises ImportError."""
    return importlib.import_module(absolute(record.adapter)).Adapter(record)


def relative(module: str) -> str:
    """A module's name for a worker's request: a module of this package starts with a dot."""
    return module[len(ROOT) :] if module.startswith(ROOT + ".") else module


def absolute(module: str) -> str:
    """The full name in this process of a module as :func:`relative` writes it."""
    return ROOT + module if module.startswith(".") else module


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Within this block Python does not collect garbage: the thousands of new ops of a graph, or records of a run, contain none,
    and the search takes as long as making them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
