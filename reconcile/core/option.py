"""``Option``: the record of an option of a run, for ``--help``, ``reconcile.run``, pytest, sweeps and the command in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any

RUN = "reconcile run"
CHECK = "reconcile check"
MATRIX = "reconcile matrix"
PYTHON = "reconcile.run"
PYTEST = "flops.check"
"""What takes options: the commands of the core, the function in Python, the method of the pytest fixture. A command of a product
names those that it takes (cli/options.py)."""

FORMATS = ("md", "csv", "json", "html")
"""The formats of the reports of a run."""
PICTURES = ("svg", "png")


class Kind(Enum):
    """The kind of value that an option takes."""

    TEXT = "text"
    FLAG = "flag"
    FILE = "file"
    NAME_OR_FILE = "name or file"
    SETTING = "name=value"
    LIMIT = "seconds"
    FORMATS = "list of formats"


class Group(Enum):
    """Options that stand together in ``--help``."""

    MODEL = "the model and its layers"
    CONVENTION = "what counts as a FLOP"
    COUNT = "what is counted"
    PLACE = "the environment"
    OUTPUT = "the files"
    MANNER = "how the counters run"
    PRINT = "what is printed"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a run.

    Attributes:
        name: What follows the dashes.
        parameter: Its name as an argument of functions, ``name`` with underscores unless given.
        field: The field of a RunRequest that it sets, ``""`` if it sets none.
        read: Turns its value into that field's, and raises UsageError for what it cannot read. ``None`` if ``run_request`` makes
            the field of several options.
        group: The options that it stands with in ``--help``.
        takers: What takes it, of the constants of this module.
        help: What ``--help`` says of it.
        metavar: What ``--help`` shows in place of its value. ``""`` for the name of its type.
        values: The names that a shell offers for its value, looked up when the user asks. ``None`` if it offers none.
        kind: The kind of its value.
        after: The name of the option behind which it stands in ``--help``, for one that a product adds.
        default: Its value where it is not given.
        repeated: Whether it can be given several times.
        choices: The only values that it can have, ``()`` for any.
        short: Its short form, such as ``"-q"``, ``""`` if it has none.
        report: Whether it changes a report, so that the command in a report repeats it.
        baseline: Whether it changes a baseline.
    """

    name: str
    _: KW_ONLY
    group: Group
    help: str
    parameter: str = ""
    field: str = ""
    read: Callable[[Any], Any] | None = None
    takers: tuple[str, ...] = ()
    metavar: str = ""
    values: Callable[[], Iterable[str]] | None = None
    kind: Kind = Kind.TEXT
    after: str = ""
    default: Any = None
    repeated: bool = False
    choices: tuple[str, ...] = ()
    short: str = ""
    report: bool = True
    baseline: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter", self.parameter or self.name.replace("-", "_"))

    @property
    def flag(self) -> str:
        """The option as a user types it: ``--timeout``."""
        return f"--{self.name}"


def words(flag: str, value: Any, shown: Callable[[Any], str] = str) -> list[str]:
    """The words of a command line that give the option this value."""
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        value = [f"{name}={text}" for name, text in value.items()]
    return [word for item in (value if isinstance(value, (list, tuple)) else [value]) for word in (flag, shown(item))]
