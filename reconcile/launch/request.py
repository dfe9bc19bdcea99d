"""The options of a run, declared once, and the request that they make.

The command line (cli/options.py), Python (api/__init__.py), the pytest plugin, sweeps (sweep/cells.py) and the command that
repeats a run (``again``) all read ``OPTIONS``. Only ``run_request`` makes a ``RunRequest`` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError, brief, unknown
from ..core.numbers import seconds
from ..core.protocol import ModelFile
from ..core.registry import counters_named, frameworks

if TYPE_CHECKING:
    from ..model_zoo.pair import Input

PASSES = ("forward", "training")
CACHED = ("prefill", "decode")
"""The passes of a language model with a cache."""
CURRENT = "current"
"""The environment of the running interpreter."""
OPTIMIZER = "sgd"
"""The optimizer of a training step, unless another is named."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run.

    ``overrides`` are the pair's parameters as text; no counters means all; ``timeout`` is in seconds per counter. For a user's
    own model, ``factories`` (framework -> ``module:function``) and ``inputs`` replace ``model``, and ``files`` has the models
    that are files. ``mapping`` is a file that says which layers of two such models belong together; ``arguments`` are the named
    arguments of the factories, ``example`` is the function that returns what the models are called with; ``formulas`` are Python
    files that register work formulas. ``python`` is the interpreter to run in ('' for this one), ``python_version`` its
    version if counters of this environment are lent to it, and ``user_python`` says that it belongs to the user's own
    environment. ``training`` is the optimiser of a training step, '' for a call of the
    model, and ``standard`` says that the user named it: a compiled model then takes the standard step in place of its own.
    ``context`` is the number of tokens in a language model's cache
    before the call: 0 for the call that fills it with the prompt, None for a call without a cache. Without ``trace`` the
    ledgers are compared with a trace from another run; ``every_convention`` reconciles under the other conventions as well.
    """

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
    python_version: str = ""
    user_python: bool = False
    trace: bool = True
    training: str = ""
    standard: bool = False
    context: int | None = None
    factories: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""
    paths: tuple[str, ...] = ()
    every_convention: bool = False
    mapping: Path | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One size of a model among several: the overrides of a pair's parameters, or the inputs of a user's own model, which
    ``fused`` takes in the form that its own code makes of it for inference."""

    overrides: Mapping[str, str]
    inputs: tuple[Input, ...] = ()
    fused: bool = False


class Kind(Enum):
    """The kind of value that an option takes."""

    TEXT = "text"
    FLAG = "flag"
    FILE = "file"
    SETTING = "name=value"
    LIMIT = "seconds"


@dataclass(frozen=True, slots=True)
class Option:
    """``name`` follows the dashes, and ``parameter`` is the name of the option as an argument of functions.

    ``field`` is the field of a RunRequest that the option sets, '' if it sets none, and ``read`` turns the option's value into
    that field's.  ``report`` says whether the option changes a report, and ``baseline`` whether it changes a baseline.
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
        """The option as a user types it: ``--timeout``."""
        return f"--{self.name}"


def words(flag: str, value: Any, shown: Callable[[Any], str] = str) -> list[str]:
    """The words of a command line that give the option this value."""
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        value = [f"{name}={text}" for name, text in value.items()]
    return [word for item in (value if isinstance(value, (list, tuple)) else [value]) for word in (flag, shown(item))]


def _inputs(texts: Any) -> tuple[Input, ...]:
    from .user_models import read_inputs

    return read_inputs(texts)


def _function(text: Any) -> str:
    from .user_models import factory

    return factory("", str(text), "--args")


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def _context(given: Any) -> int:
    """The number of tokens in the cache. Raises UsageError for anything but a positive whole number of nine digits or fewer."""
    text = str(given)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise UsageError(f"the context is a number of tokens, such as 128, not {brief(text)}.")
    return int(text)


def _paths(names: Any) -> tuple[Path, ...]:
    return tuple(map(Path, names))


_DEFAULTS = {part.name: part.default for part in fields(RunRequest)}

OPTIONS = {
    option.name: option
    for option in (
        Option("model", "model", "model", str, baseline=True),
        Option("input", "inputs", "inputs", _inputs, repeated=True, baseline=True),
        Option("args", "args", "example", _function, baseline=True),
        Option("signature", "signature", "files", default="", baseline=True),
        Option("trust-file", "trust_file", "files", kind=Kind.FLAG, default=False, baseline=True),
        Option("mapping", "mapping", "mapping", Path, Kind.FILE),
        Option("write-mapping", "write_mapping", kind=Kind.FILE, report=False),
        Option("set", "overrides", "overrides", _texts, Kind.SETTING, repeated=True, baseline=True),
        Option("convention", "convention", "convention", str, default=_DEFAULTS["convention"]),
        Option("convention-file", "convention_files", "convention_files", _paths, Kind.FILE, repeated=True),
        Option("counter", "counters", "counters", tuple, repeated=True),
        Option("from", "from_"),
        Option("to", "to"),
        Option("pass", "pass_", "training", default=PASSES[0], choices=(*PASSES, *CACHED), baseline=True),
        Option("context", "context", "context", _context, baseline=True),
        Option("optimizer", "optimizer", "standard", lambda given: given is not None, baseline=True),
        Option("environment", "environment", default=CURRENT, baseline=True),
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
"""Every option that several commands or interfaces share, in the order of a command line, without those of the frameworks."""


def model_options() -> dict[str, Option]:
    """The options that name a framework's model, in the order of ``--help``.

    Raises UsageError for a framework whose name cannot be the name of an option.
    """
    taken = {word for option in OPTIONS.values() for word in (option.name, option.parameter)}
    for record in frameworks().values():
        if not record.name.isidentifier() or record.name in taken:
            raise UsageError(
                f"the framework {record.title} is registered as {record.name!r}, which cannot be the option --{record.name}: "
                "its package must give it a name of letters that no other option has."
            )
    ordered = sorted(frameworks().values(), key=lambda record: record.order)
    return {record.name: Option(record.name, record.name, "factories", baseline=True) for record in ordered}


def by_parameter() -> dict[str, Option]:
    """All options by their parameter names, in the order of a command line."""
    first, *rest = OPTIONS.values()
    return {option.parameter: option for option in (first, *model_options().values(), *rest)}


def flags(which: Callable[[Option], bool]) -> set[str]:
    """The options for which ``which`` is true, as a user types them."""
    return {option.flag for option in by_parameter().values() if which(option)}


def models_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The models among the given options: framework -> the option's value, in the order of the frameworks."""
    return {name: given[name] for name in frameworks() if given.get(name) is not None}


def read_optimizer(pass_: str, optimizer: Any, models: Iterable[str] = ()) -> str:
    """The optimiser of a training step, '' for a call of the model: its name in lower case; of one at hand, its class.

    Raises UsageError for a name that no framework has, or that one of these ``models``' does not have.
    """
    if pass_ not in (*PASSES, *CACHED):
        raise unknown("pass", pass_, (*PASSES, *CACHED))
    name = optimizer.lower() if isinstance(optimizer, str) else type(optimizer).__name__.lower()
    if isinstance(optimizer, str):
        lists = {each: frameworks()[each].optimizers for each in models} or {
            r.name: r.optimizers for r in frameworks().values()
        }
        known = sorted({each for names in lists.values() for each in names})
        if name not in known:
            raise unknown("optimizer", optimizer, known or (OPTIMIZER,))
        lacking = next((each for each in models if lists[each] and name not in lists[each]), "")
        if lacking:
            raise UsageError(
                f"{frameworks()[lacking].title} has no optimizer {name}: it has {', '.join(lists[lacking])}."
            )
    if optimizer is not None and pass_ != "training":
        raise UsageError("an optimizer applies only to a training step: add --pass training.")
    return (OPTIMIZER if optimizer is None else name) if pass_ == "training" else ""


def context(pass_: str, tokens: int | None) -> int | None:
    """The tokens in the cache before the call; None for a pass without a cache. Raises UsageError if they do not fit the pass."""
    if tokens is not None and pass_ != "decode":
        raise UsageError("a context applies only to a decoding step: add --pass decode.")
    if tokens is None and pass_ == "decode":
        raise UsageError("a decoding step needs the number of tokens in its cache: add --context 128, say.")
    return 0 if pass_ == "prefill" else tokens


def _says_something(option: Option, value: Any) -> bool:
    """Whether it is more than the default, and more than nothing at all."""
    return value is not None and value != option.default and not (isinstance(value, (tuple, list, dict)) and not value)


def _as_given(option: Option, value: Any) -> Any:
    """The value; of an option that can be repeated, a single text or path is the only one."""
    return (value,) if option.repeated and isinstance(value, (str, Path)) else value


def run_request(**options: Any) -> RunRequest:
    """The request that these options make. They have their parameter names; None is an option that was not given.

    Raises UsageError for a value that cannot be read, and TypeError for an option that a request does not have.
    """
    known = by_parameter()
    stray = [name for name in options if name not in known or not known[name].field]
    if stray:
        raise TypeError(f"a request has no option {', '.join(stray)}")
    given = {
        name: _as_given(known[name], value) for name, value in options.items() if _says_something(known[name], value)
    }
    values = {known[name].field: read(value) for name, value in given.items() if (read := known[name].read)}
    models = models_of(given)
    files: Mapping[str, ModelFile] = {}
    factories: Mapping[str, str] = {}
    if models or "trust_file" in given or "signature" in given:
        from .user_models import read_models

        files, factories = read_models(models, given.get("trust_file", False), given.get("signature", ""))
    _of_device(given.get("device", ""), models)
    optimizer = read_optimizer(given.get("pass_", PASSES[0]), given.get("optimizer"), models)
    if "counters" in values:
        values["counters"] = counters_named(values["counters"], models)
    values["context"] = context(given.get("pass_", PASSES[0]), values.get("context"))
    return RunRequest(**values, factories=factories, files=files, training=optimizer)


def _of_device(device: str, models: Iterable[str]) -> None:
    """Raises UsageError for a device where no framework of these models takes one. A framework says itself which it has."""
    models = tuple(models)
    if device not in ("", _DEFAULTS["device"]) and models and not any(frameworks()[name].placed for name in models):
        able = " or ".join(record.title for record in frameworks().values() if record.placed)
        raise UsageError(f"--device is for a model in {able}, and none is given: leave it out.")
