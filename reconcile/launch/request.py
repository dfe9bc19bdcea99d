"""The options of a run, declared once, and the request that they make.

The command line (cli/options.py), Python (api.py), the pytest plugin, sweeps (sweep/cells.py) and the command that gets a
run again (cli/again.py) all read ``OPTIONS``; ``run_request`` alone makes a ``RunRequest``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError, unknown
from ..core.numbers import seconds
from ..core.protocol import ModelFile
from ..core.registry import frameworks

if TYPE_CHECKING:
    from ..model_zoo.pair import Input

PASSES = ("forward", "training")
OPTIMIZERS = ("sgd", "adam")
TOGETHER = 2
"""Models that one run compares."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run. ``overrides`` are the pair's parameters as text; no counters means all; ``timeout`` is in seconds
    per counter; ``factories`` (framework -> ``module:function``) and ``inputs`` take the model's place where somebody has one
    of their own, and ``files`` where that is a file; ``mapping`` is a file that says
    which layers of two such models belong together; ``arguments`` are what the factories are called with, by name;
    ``formulas`` are Python files that register work formulas;
    ``python`` is the interpreter to run in ('' for this one), and ``theirs`` its version if it is of the user's own environment;
    ``training`` is the optimiser of a training step, '' for a call of the model; without ``trace`` the ledgers are to be
    held against a trace from elsewhere; ``every_convention`` reconciles under the other conventions, too."""

    model: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    convention: str = "matmul"
    convention_files: tuple[Path, ...] = ()
    counters: tuple[str, ...] = ()
    device: str = "cpu"
    timeout: float = 600
    formulas: tuple[Path, ...] = ()
    python: str = ""
    theirs: str = ""
    trace: bool = True
    training: str = ""
    factories: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    every_convention: bool = False
    mapping: Path | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a time limit that is none."""
        seconds(self.timeout)


class Kind(Enum):
    """What the text of an option is."""

    TEXT = "text"
    FLAG = "flag"
    FILE = "file"
    SETTING = "name=value"
    LIMIT = "seconds"


@dataclass(frozen=True, slots=True)
class Option:
    """``name`` follows the dashes, ``parameter`` is what functions call it.

    ``field`` is the field of a RunRequest that it decides, '' for an option that acts elsewhere, and ``read`` makes that
    field's value of the option's.  ``report`` says whether it decides what a report says, ``baseline`` whether it decides
    what a baseline holds.
    """

    name: str
    parameter: str
    field: str = ""
    read: Callable[[Any], Any] | None = None
    kind: Kind = Kind.TEXT
    default: Any = None
    repeated: bool = False
    choices: tuple[str, ...] = ()
    report: bool = True
    baseline: bool = False

    @property
    def flag(self) -> str:
        """As it is typed: ``--timeout``."""
        return f"--{self.name}"


def words(flag: str, value: Any, shown: Callable[[Any], str] = str) -> list[str]:
    """The words of a command that give the option this value."""
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        value = [f"{name}={text}" for name, text in value.items()]
    return [word for item in (value if isinstance(value, (list, tuple)) else [value]) for word in (flag, shown(item))]


def _inputs(texts: Any) -> tuple[Input, ...]:
    from .user_models import read_inputs

    return read_inputs(texts)


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def _paths(names: Any) -> tuple[Path, ...]:
    return tuple(map(Path, names))


_DEFAULTS = {part.name: part.default for part in fields(RunRequest)}

OPTIONS = {
    option.name: option
    for option in (
        Option("model", "model", "model", str, baseline=True),
        Option("input", "inputs", "inputs", _inputs, repeated=True),
        Option("signature", "signature", "files", default=""),
        Option("trust-file", "trust_file", "files", kind=Kind.FLAG, default=False),
        Option("mapping", "mapping", "mapping", Path, Kind.FILE),
        Option("write-mapping", "write_mapping", kind=Kind.FILE, report=False),
        Option("set", "overrides", "overrides", _texts, Kind.SETTING, repeated=True, baseline=True),
        Option("convention", "convention", "convention", str, default=_DEFAULTS["convention"]),
        Option("convention-file", "convention_files", "convention_files", _paths, Kind.FILE, repeated=True),
        Option("counter", "counters", "counters", tuple, repeated=True),
        Option("from", "from_"),
        Option("to", "to"),
        Option("pass", "pass_", "training", default=PASSES[0], choices=PASSES, baseline=True),
        Option("optimizer", "optimizer", "training", choices=OPTIMIZERS, baseline=True),
        Option("environment", "environment", default="current", baseline=True),
        Option("environments", "file", kind=Kind.FILE, baseline=True),
        Option("with", "with_", repeated=True, baseline=True),
        Option("python", "python", baseline=True),
        Option("out", "out", kind=Kind.FILE, report=False),
        Option("format", "formats", "every_convention", lambda formats: "html" in formats, report=False),
        Option("device", "device", "device", str, default=_DEFAULTS["device"], baseline=True),
        Option("timeout", "timeout", "timeout", seconds, Kind.LIMIT, default=_DEFAULTS["timeout"]),
        Option("formulas", "formulas", "formulas", _paths, Kind.FILE, repeated=True, baseline=True),
        Option("quiet", "quiet", kind=Kind.FLAG, default=False, report=False),
        Option("verbose", "verbose", kind=Kind.FLAG, default=False, report=False),
    )
}
"""Every option that more than one command or interface has, in the order of a command, without those of the frameworks."""


def model_options() -> dict[str, Option]:
    """The options that name a model of a framework, in the order of ``--help``. Raises UsageError for a framework whose name
    cannot be that of an option."""
    taken = {word for option in OPTIONS.values() for word in (option.name, option.parameter)}
    for record in frameworks().values():
        if not record.name.isidentifier() or record.name in taken:
            raise UsageError(
                f"the framework {record.title} is registered as {record.name!r}, and no option --{record.name} can be made "
                "for it: its package has to give it a name of letters that no other option has."
            )
    ordered = sorted(frameworks().values(), key=lambda record: record.order)
    return {record.name: Option(record.name, record.name, "factories") for record in ordered}


def by_parameter() -> dict[str, Option]:
    """All options by what functions call them, in the order of a command."""
    first, *rest = OPTIONS.values()
    return {option.parameter: option for option in (first, *model_options().values(), *rest)}


def flags(which: Callable[[Option], bool]) -> set[str]:
    """The options that are so, as they are typed."""
    return {option.flag for option in by_parameter().values() if which(option)}


def models_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given options that name a model: framework -> what it names, in the order of the frameworks."""
    return {name: given[name] for name in frameworks() if given.get(name) is not None}


def at_most_two(models: Collection[str]) -> None:
    """Raise UsageError for models of more frameworks than are compared with each other."""
    if len(models) > TOGETHER:
        raise UsageError(f"models in {', '.join(models)} are compared two at a time: leave one out.")


def training(pass_: str, optimizer: str | None) -> str:
    """The optimiser of a training step, '' for a call of the model. Raises UsageError for names that are none."""
    if pass_ not in PASSES:
        raise unknown("pass", pass_, PASSES)
    if optimizer is not None and optimizer not in OPTIMIZERS:
        raise unknown("optimizer", optimizer, OPTIMIZERS)
    if optimizer and pass_ != "training":
        raise UsageError(
            'an optimizer is that of a training step: give --pass training (pass_="training" in Python), too.'
        )
    return (optimizer or OPTIMIZERS[0]) if pass_ == "training" else ""


def run_request(**given: Any) -> RunRequest:
    """The request that these options make, by what functions call them; None is an option that was not given.

    Raises UsageError for a value that cannot be read, and TypeError for an option that a request does not have.
    """
    known = by_parameter()
    stray = [name for name in given if name not in known or not known[name].field]
    if stray:
        raise TypeError(f"a request has no option {', '.join(stray)}")
    there = {name: value for name, value in given.items() if value is not None}
    values = {known[name].field: read(value) for name, value in there.items() if (read := known[name].read)}
    models = models_of(there)
    held = _files(models, there.get("trust_file", False), there.get("signature", "")) if models else {}
    step = training(there.get("pass_", PASSES[0]), there.get("optimizer"))
    return RunRequest(**values, factories=models, files=held, training=step)


def _files(models: Mapping[str, str], trusted: bool, signature: str) -> dict[str, ModelFile]:
    """What is to be loaded of the models that are files. Raises UsageError for a name that is neither file nor factory."""
    from . import user_models

    named = {name: user_models.given(name, where, trusted=trusted) for name, where in models.items()}
    held = {name: file for name, file in named.items() if isinstance(file, ModelFile)}
    return {name: file._replace(trusted=trusted, signature=signature) for name, file in held.items()}
