"""Imports a user's factory and calls user code in a worker: whatever it raises, ``sys.exit`` included, becomes one sentence.

Imported by the worker: Python 3.6 and standard library only.
"""

import difflib
import importlib
import importlib.util
import os
import sys
from os import getpid
from typing import Any, Callable, Type

from ..adapters.shared.refusal import FactoryError
from ..core.message import first_line
from . import import_path, process_guard

MACHINE = (ImportError, MemoryError, OSError)
"""Errors that say nothing about a model: a missing package, or a lack of memory, of a file or of a connection."""


class Declined(FactoryError):
    """The user's code raised an error while it made or called the model without a counter, so it would do so without us."""


class UserCode:
    """Imports and calls the code in the user's ``folder``, which may raise anything or end the process.

    ``doing`` is told which code is about to run, and '' when that is done: if the process ends in between, that code ended it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.doing: Callable[[str], None] = lambda _action: None

    def call(self, function: Callable[[], Any], action: str, declined: Type[FactoryError] = FactoryError) -> Any:
        """Call the user's code. Whatever it raises, sys.exit included, becomes one sentence. The child of a fork ends here.

        An error that is about the model, and not about the machine or its packages, is of the class ``declined``.
        """
        process = getpid()
        self.doing(action)
        try:
            return function()
        except FactoryError:  # a sentence of ours about what their code gave
            raise
        except BaseException as error:
            process_guard.only(process)
            process_guard.note(error)
            about = declined if isinstance(error, Exception) and not isinstance(error, MACHINE) else FactoryError
            raise about(f"{action} {describe_user_error(error, self.folder)}.") from error
        finally:
            process_guard.only(process)
            process_guard.mend()
            self.doing("")

    def factory(self, where: str, is_made: Callable[[Any], bool]) -> Any:
        """The function ``package.module:function``. ``is_made`` tells whether an object is a model. Raises FactoryError."""
        name, _, attribute = where.partition(":")
        if not self._exists(name):
            top = name.partition(".")[0]
            parents = [d for d in ("src", "lib") if os.path.exists(os.path.join(self.folder, d, top))]
            hint = f" Set PYTHONPATH={parents[0]}, which contains {top}." if parents else ""
            raise FactoryError(
                f"there is no module {name} ({where}) among the installed packages or in the working directory.{hint}"
            )
        factory = self._import(name, where)
        for part in attribute.split("."):
            if not hasattr(factory, part):
                names = [n for n in dir(factory) if not n.startswith("_")]
                near = [n for n in names if n.startswith(part)] or difflib.get_close_matches(part, names, n=1)
                hint = f"Did you mean {near[0]}?" if near else "Name a function that returns the model."
                raise FactoryError(f"{name} has no {part!r} ({where}). {hint}")
            factory = getattr(factory, part)
        if is_made(factory):
            raise FactoryError(
                f"{where} is a model, not a function that makes one; every counter gets a fresh model: write a function that "
                "returns it, and name that function."
            )
        if not callable(factory):
            raise FactoryError(f"{where} is {kind(factory)}, not a function that returns a model.")
        return factory

    def _import(self, name: str, where: str) -> Any:
        try:
            return self.call(lambda: importlib.import_module(name), f"importing {name}")
        except FactoryError as error:
            package, cause = os.path.basename(self.folder), error.__cause__
            if not isinstance(cause, ImportError) or not os.path.exists(os.path.join(self.folder, "__init__.py")):
                raise
            if "relative import" in str(cause) or str(cause.name).partition(".")[0] == package:
                raise FactoryError(
                    f"{error} This folder is inside the package {package}: run from the folder that contains the package, "
                    f"with {package}.{where}."
                ) from cause
            raise

    def _exists(self, name: str) -> bool:
        """Whether the module can be found; its parents are imported on the way."""
        parent = name.rpartition(".")[0]
        if parent and not self._exists(parent):
            return False
        if name in sys.modules:
            return True
        if parent:
            package = self.call(lambda: importlib.import_module(parent), f"importing {parent}")
            if not hasattr(package, "__path__"):
                return False
        return self.call(lambda: importlib.util.find_spec(name), f"finding {name}") is not None


def kind(value: Any) -> str:
    """The type of a value in words: ``None``, ``a dict``, ``an int``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return ("an " if name[0].lower() in "aeiou" else "a ") + name


def describe_user_error(error: BaseException, folder: str = "") -> str:
    """An error as a predicate: the last line of its traceback, and where in the user's code it was raised."""
    if isinstance(error, SystemExit):
        text = "called sys.exit(" + ("" if error.code is None else repr(error.code)) + ")"
    elif isinstance(error, ModuleNotFoundError) and error.name:
        text = f"needs the package {error.name.partition('.')[0]}, which is not installed in this environment"
    else:
        line = first_line(error).rstrip(".")
        text = "raised " + type(error).__name__ + (": " + line if line else "")
    location = import_path.location(error, folder or os.getcwd())
    return text + (f" ({location})" if location else "")
