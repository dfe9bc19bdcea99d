"""Every option of a run as an ``Option`` record, and ``RunRequest``, the record whose fields the options set.

To add one, add its record here and, if it changes what runs, its field to ``RunRequest``. ``--help``, the keyword arguments of
``reconcile.run``, the command in a report, baselines and sweeps read the record. Products add their own (``known_options``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..core.conventions import NAMED
from ..core.errors import UsageError, brief, short
from ..core.option import CHECK, MATRIX, PYTEST, PYTHON, RUN, Group, Kind, Option
from ..core.product import load_place, refuse_product
from ..core.protocol import ModelFile
from ..core.registry import frameworks, known_counters, products
from ..model_zoo.loading import zoo_names
from ..model_zoo.pair import Input
from .environments import CURRENT
from .user_models import factory, read_inputs

PASSES = ("forward", "training")
CACHED = ("prefill", "decode")
"""The passes of a language model with a KV cache."""
OPTIMIZER = "sgd"
"""The optimizer of a training step, unless another is named."""
LONGEST = 10**8
"""The longest time limit in seconds: three years."""
TABLES = ("md", "csv", "json")
"""The formats of a report that are written unless others are named."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run.

    Attributes:
        model: The pair's name; '' for a user's own model.
        overrides: The pair's parameters as strings.
        convention: The name of the convention of every amount.
        convention_files: Files that define further conventions.
        counters: The counters to run; () for all that run by default.
        device: Where to run: ``"cpu"``, or as the framework names it.
        timeout: Seconds per counter.
        formulas: Python files that register work formulas.
        python: The interpreter to run in; '' for this one.
        python_version: That interpreter's version if counters of this environment are lent to it; '' otherwise.
        user_python: Whether that interpreter belongs to the user's own environment.
        trace: Whether to trace. Without, the ledgers are compared with a trace from another run.
        training: The optimiser of a training step; '' for a call of the model.
        standard: Whether the user named an optimiser: a compiled model then takes the standard step in place of its own.
        context: The number of tokens in a language model's cache before the call: 0 for the call that fills it with the prompt,
            None for a call without a cache.
        quick: Whether a PyTorch model is called once, and values that were computed elsewhere are not looked for.
        factories: The user's own models in place of ``model``, ``module:function`` by framework.
        files: Of these, the models that are files, by framework.
        inputs: What the user's own models are called with; () if their code says that.
        arguments: Named arguments of the factories.
        example: The function that returns what the models are called with; '' for none.
        paths: Folders from which the workers import, too.
        every_convention: Whether to reconcile under the other conventions as well.
        mapping: A file that says which layers of two such models belong together; None for none.
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
    quick: bool = False
    factories: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""
    paths: tuple[str, ...] = ()
    every_convention: bool = False
    mapping: Path | None = None


DEFAULTS = {part.name: part.default for part in fields(RunRequest)}


def _read_context(given: Any) -> int:
    """The number of tokens in the cache. Raises UsageError for anything but a positive whole number of nine digits or fewer."""
    text = str(given)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise UsageError(f"the context is a number of tokens, such as 128, not {brief(text)}.")
    return int(text)


def _read_seconds(given: object) -> float:
    """A time limit. Raises UsageError for anything but a number above 0 and up to LONGEST."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = 0.0
    if not 0 < value <= LONGEST or isinstance(given, bool):
        raise UsageError(f"--timeout must be a number of seconds above 0 and up to {LONGEST:,}, not {short(given)}.")
    return value


def _read_paths(names: Any) -> tuple[Path, ...]:
    return tuple(map(Path, names))


def _list_ends() -> list[str]:
    return [*known_counters(), *(record.trace for record in frameworks().values())]


def _list_environments() -> Iterable[str]:
    from .environments.definitions import load

    return load(None)


OPTIONS = {
    option.name: option
    for option in (
        Option(
            "model", field="model", read=str, group=Group.MODEL, takers=(RUN, CHECK, MATRIX, PYTHON), kind=Kind.NAME_OR_FILE,
            metavar="NAME|FILE.py", values=zoo_names, baseline=True,
            help="A model of the zoo, or a pair file.",
        ),
        Option(
            "input", parameter="inputs", field="inputs", read=read_inputs,
            group=Group.MODEL, takers=(RUN, CHECK, MATRIX, PYTHON), repeated=True,
            metavar="[NAME=]SHAPE[:DTYPE]", baseline=True,
            help="1,3,224,224 or tf:ids=1,8:int64. Repeatable.",
        ),
        Option(
            "args", field="example", read=lambda text: factory("", str(text), "--args"),
            group=Group.MODEL, takers=(RUN, CHECK, MATRIX), metavar="MODULE:FUNCTION", baseline=True,
            help="Function that returns a call's arguments.",
        ),
        Option(
            "mapping", field="mapping", read=Path,
            group=Group.MODEL, takers=(RUN, PYTHON), kind=Kind.FILE, metavar="FILE.csv",
            help="Match the layers of two models as it says.",
        ),
        Option(
            "write-mapping", group=Group.MODEL, takers=(RUN,), kind=Kind.FILE, metavar="FILE.csv", report=False,
            help="Write the match of layers, to correct it.",
        ),
        Option(
            "set", parameter="overrides", field="overrides",
            read=lambda settings: {name: str(value) for name, value in settings.items()},
            group=Group.MODEL, takers=(RUN, CHECK, MATRIX, PYTHON),
            kind=Kind.SETTING, repeated=True, metavar="NAME=VALUE", baseline=True,
            help="Set a parameter of the model. Repeatable.",
        ),
        Option(
            "convention", field="convention", read=str, group=Group.CONVENTION, takers=(RUN, CHECK, MATRIX, PYTHON, PYTEST),
            default=DEFAULTS["convention"], metavar="NAME", values=lambda: NAMED,
            help="What counts as a FLOP.",
        ),
        Option(
            "convention-file", parameter="convention_files", field="convention_files", read=_read_paths,
            group=Group.CONVENTION,
            takers=(RUN, CHECK, MATRIX, PYTHON), kind=Kind.FILE, repeated=True, metavar="FILE.toml",
            help="File of your own conventions. Repeatable.",
        ),
        Option(
            "counter", parameter="counters", field="counters", read=tuple,
            group=Group.COUNT, takers=(RUN, CHECK, PYTHON, PYTEST), repeated=True,
            metavar="NAME", values=known_counters,
            help="Run only this one; `all` for all. Repeatable.",
        ),
        Option(
            "from", parameter="from_", group=Group.COUNT, takers=(RUN,), metavar="COUNTER", values=_list_ends,
            help="First counter.  [default: tf.profiler@frozen]",
        ),
        Option(
            "to", group=Group.COUNT, takers=(RUN,), metavar="COUNTER", values=_list_ends,
            help="Last counter.  [default: thop]",
        ),
        Option(
            "pass", parameter="pass_", field="training",
            group=Group.COUNT, takers=(RUN, CHECK, PYTHON, PYTEST), default=PASSES[0],
            choices=(*PASSES, *CACHED), metavar="PASS", baseline=True,
            help="forward (default), training, prefill, decode.",
        ),
        Option(
            "context", field="context", read=_read_context,
            group=Group.COUNT, takers=(RUN, PYTHON), metavar="TOKENS", baseline=True,
            help="Tokens in the cache, with --pass decode.",
        ),
        Option(
            "optimizer", field="standard", read=lambda given: given is not None, group=Group.COUNT,
            takers=(RUN, CHECK, PYTHON, PYTEST), metavar="NAME", baseline=True,
            values=lambda: sorted({name for record in frameworks().values() for name in record.optimizers}),
            help="Optimizer of a training step.  [default: sgd]",
        ),
        Option(
            "environment", group=Group.PLACE, takers=(RUN, CHECK, MATRIX), default=CURRENT, metavar="NAME",
            values=_list_environments, baseline=True,
            help="A named environment.",
        ),
        Option(
            "environments", parameter="file",
            group=Group.PLACE, takers=(RUN, CHECK, MATRIX), kind=Kind.FILE, metavar="FILE.toml",
            baseline=True,
            help="File of your own named environments.",
        ),
        Option(
            "with", parameter="with_",
            group=Group.PLACE, takers=(RUN, CHECK, MATRIX), repeated=True, metavar="REQUIREMENT", baseline=True,
            help="Install this package for it. Repeatable.",
        ),
        Option(
            "python", group=Group.PLACE, takers=(RUN, CHECK, MATRIX, PYTHON), metavar="PATH|X.Y", baseline=True,
            help="Your interpreter; with --with, its version.",
        ),
        Option(
            "out",
            group=Group.OUTPUT, takers=(RUN, MATRIX), kind=Kind.FILE, default=Path("reports"), metavar="DIR", report=False,
            help="Folder of the files.",
        ),
        Option(
            "format", parameter="formats", field="every_convention", read=lambda formats: "html" in formats,
            group=Group.OUTPUT,
            takers=(RUN, MATRIX), kind=Kind.FORMATS, default=",".join(TABLES), metavar="LIST", report=False,
            help="Formats of the files.",
        ),
        Option(
            "device", field="device", read=str, group=Group.MANNER, takers=(RUN, CHECK, PYTHON), default=DEFAULTS["device"],
            baseline=True,
            help="Device of the model.",
        ),
        Option(
            "timeout", field="timeout", read=_read_seconds,
            group=Group.MANNER, takers=(RUN, CHECK, MATRIX, PYTHON, PYTEST), kind=Kind.LIMIT,
            default=DEFAULTS["timeout"], metavar="SECONDS",
            help="Time limit per counter.",
        ),
        Option(
            "formulas", field="formulas", read=_read_paths,
            group=Group.MANNER, takers=(RUN, CHECK, MATRIX, PYTHON), kind=Kind.FILE,
            repeated=True, metavar="FILE.py", baseline=True,
            help="Work of ops that the tool does not know.",
        ),
        Option(
            "quick", field="quick", read=bool, group=Group.MANNER, takers=(RUN, CHECK, PYTHON), kind=Kind.FLAG, default=False,
            help="Leave out the second call of a PyTorch model.",
        ),
        Option(
            "quiet", group=Group.PRINT, takers=(RUN, CHECK, MATRIX), kind=Kind.FLAG, default=False, short="-q", report=False,
            help="Print the verdict and what went wrong.",
        ),
        Option(
            "verbose",
            group=Group.PRINT, takers=(RUN, CHECK, MATRIX), kind=Kind.FLAG, default=False, short="-v", report=False,
            help="Print every layer, statement and step.",
        ),
    )
}  # fmt: skip
"""Every option that several commands or interfaces share, in the order of a command line, without those of the frameworks and of
products."""


def known_options() -> dict[str, Option]:
    """These options and those that products add, in the order of a command line.

    Raises UsageError for one that another package adds and that cannot be added.
    """
    known = list(OPTIONS.values())
    for product in products().values():
        for place in product.options:
            added = load_place(product, place)
            if not isinstance(added, tuple) or not all(isinstance(option, Option) for option in added):
                raise refuse_product(product, f"{place} is not a tuple of Options")
            for option in added:
                if any(option.name == other.name or option.parameter == other.parameter for other in known):
                    raise refuse_product(product, f"its option {option.flag} of run is another's, too")
                behind = next((at for at, other in enumerate(known, 1) if other.name == option.after), len(known))
                known.insert(behind, option)
    return {option.name: option for option in known}


def model_options() -> dict[str, Option]:
    """The options that name a framework's model, in the order of ``--help``.

    Raises UsageError for a framework whose name cannot be the name of an option.
    """
    taken = {word for option in known_options().values() for word in (option.name, option.parameter)}
    for record in frameworks().values():
        if not record.name.isidentifier() or record.name in taken:
            raise UsageError(
                f"the framework {record.title} is registered as {record.name!r}, which cannot be the option --{record.name}: "
                "its package must give it a name of letters that no other option has."
            )
    return {
        record.name: Option(
            record.name, field="factories", group=Group.MODEL, takers=(RUN, CHECK, MATRIX, PYTHON), metavar=record.metavar,
            help=record.help, baseline=True,
        )
        for record in sorted(frameworks().values(), key=lambda record: record.order)
    }  # fmt: skip


def by_parameter() -> dict[str, Option]:
    """All options by their parameter names, in the order of a command line."""
    first, *rest = known_options().values()
    return {option.parameter: option for option in (first, *model_options().values(), *rest)}


def taken_by(taker: str, *groups: Group) -> list[Option]:
    """The options of these groups that this command or function takes, group by group. Without ``groups``, all of them."""
    taken = [option for option in by_parameter().values() if taker in option.takers]
    return [option for group in groups or Group for option in taken if option.group is group]


def keywords_taken_by(taker: str, *groups: Group) -> tuple[str, ...]:
    """The parameter names of the options of these groups that a function takes, without those of the frameworks."""
    return tuple(o.parameter for o in OPTIONS.values() if taker in o.takers and o.group in (groups or Group))


def flags(which: Callable[[Option], bool]) -> set[str]:
    """The options for which ``which`` is true, as a user types them."""
    return {option.flag for option in by_parameter().values() if which(option)}
