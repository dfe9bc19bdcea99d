"""The options of launch/request.py as click takes them, each with its help, and as you type them again. Commands pick theirs by
name."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ..core.errors import UsageError
from ..core.registry import frameworks
from ..core.text import quote_words
from ..launch.request import OPTIONS, PASSES, Kind, Option, flags, model_options, words
from . import completions

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("md", "csv", "json", "html")
TABLES = ("md", "csv", "json")
PICTURES = ("svg", "png")
CARDS = ("card", "disclosure")


class _Path(click.Path):
    """A path as a pathlib.Path; refused early if the system cannot take it for one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType.convert. Raises UsageError."""
        _not_empty(value, param, ctx)
        if "\0" in str(value):
            raise UsageError(f"{param.opts[0] if param else 'a path'}: {str(value)!r} contains a zero byte.")
        try:
            os.fsencode(value)
        except UnicodeEncodeError:
            raise UsageError(
                f"{param.opts[0] if param else 'a path'}: {str(value)!r} is not a valid file name."
            ) from None
        return super().convert(value, param, ctx)


class Seconds(click.FloatRange):
    """A time limit. ``run_request`` says what is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or the text that is none."""
        try:
            return float(value)
        except ValueError:
            return value


class _Text(click.types.StringParamType):
    """Text that says something: an empty word is usually a variable of a shell that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType.convert. Raises UsageError."""
        _not_empty(value, param, ctx)
        return super().convert(value, param, ctx)


def _not_empty(value: Any, param: click.Parameter | None, ctx: click.Context | None) -> None:
    """Raise UsageError for an empty word on the command line; a default may be empty."""
    given = param is not None and ctx is not None and ctx.get_parameter_source(param.name or "")
    if param is not None and given is click.core.ParameterSource.COMMANDLINE and not str(value).strip():
        name = param.opts[0] if isinstance(param, click.Option) else param.human_readable_name.strip("[]")
        raise UsageError(f"{name} is given without a value: give it one, or leave it out.")


PATH: Any = _Path(path_type=Path)
TEXT: Any = _Text()
BASELINES = Path("reports/baselines")
"""Where baselines lie, seen from the repository that keeps them."""


def chosen_formats(
    _ctx: click.Context, _param: click.Parameter, value: str, allowed: tuple[str, ...] = TABLES
) -> tuple[str, ...]:
    """The names in a list such as ``md,csv``, as click calls it. Raises BadParameter for one that is not ``allowed``."""
    chosen = tuple(dict.fromkeys(part.strip() for part in value.split(",")))
    if "" in chosen:
        kept = ",".join(filter(None, chosen)) or allowed[0]
        raise UsageError(f"--format: {value!r} has an extra comma. Write {kept}.")
    wrong = [part for part in chosen if part not in allowed]
    if wrong:
        raise click.BadParameter(f"{value!r} is not a list of {', '.join(allowed)}.")
    return chosen


def _with_pictures(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    chosen = chosen_formats(ctx, param, value, (*FORMATS, *PICTURES, *CARDS))
    if set(PICTURES) & set(chosen):
        from ..report.pictures.charts import require

        require()
    return chosen


def _pairs(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{value!r} is not of the form name=value.")
        found[key.strip()] = rest.strip()
    return found


FACE: dict[str, dict[str, Any]] = {
    "model": {
        "metavar": "NAME|FILE.py",
        "shell_complete": completions.model_names,
        "help": "A model of the zoo, or a pair file.",
    },
    "input": {
        "metavar": "[NAME=]SHAPE[:DTYPE]",
        "help": "Input of your model, such as 1,3,224,224 or ids=1,128:int64. Repeatable.",
    },
    "args": {
        "metavar": "MODULE:FUNCTION",
        "help": "Function that returns what to call your model with: a tuple, or (tuple, dict), in place of --input.",
    },
    "signature": {"metavar": "NAME", "help": "Signature of a SavedModel.  [default: serving_default]"},
    "trust-file": {
        "help": "Let a model file run its own code (Lambda layers), touch files, and take any amount of memory.",
    },
    "mapping": {
        "metavar": "FILE.csv",
        "help": "Match the layers of two models by this file, which --write-mapping wrote and you corrected.",
    },
    "write-mapping": {"metavar": "FILE.csv", "help": "Write the match of layers to this file."},
    "set": {"metavar": "NAME=VALUE", "help": "Override a model's parameter. Repeatable."},
    "convention": {
        "metavar": "NAME",
        "shell_complete": completions.complete_names(completions.convention_names),
        "help": "Convention: what counts as a FLOP.",
    },
    "convention-file": {"metavar": "FILE.toml", "help": "TOML file that defines additional conventions. Repeatable."},
    "counter": {
        "metavar": "NAME",
        "shell_complete": completions.complete_names(completions.counter_names),
        "help": "Run only this counter. Repeatable. `all` names every counter except formulas (`formula:all`), those that "
        "build the model in another way, and those that need their own --environment. Without this option, the default counters "
        "run; `reconcile explain NAME` says whether a counter is one.",
    },
    "from": {
        "metavar": "COUNTER",
        "shell_complete": completions.complete_names(completions.end_names),
        "help": "Counter that the statement starts from. tf.profiler@frozen counts the frozen graph, as most scripts do; "
        "@function counts the graph as it is, and @runmeta adds the metadata of one run.  [default: tf.profiler@frozen]",
    },
    "to": {
        "metavar": "COUNTER",
        "shell_complete": completions.complete_names(completions.end_names),
        "help": "Counter that the statement arrives at.  [default: thop]",
    },
    "pass": {"help": "Count a call of the model, a training step, or a language model's call with a cache."},
    "context": {"metavar": "TOKENS", "help": "Tokens in the cache before the decoding step."},
    "optimizer": {
        "metavar": "NAME",
        "shell_complete": completions.complete_names(completions.optimizer_names),
        "help": "Optimizer of the training step, such as adamw: any of torch.optim, Keras or Optax. A compiled Keras model takes "
        "it in place of its own step.  [default: sgd]",
    },
    "environment": {
        "metavar": "NAME",
        "shell_complete": completions.complete_names(completions.environment_names),
        "help": "Run in this named environment.",
    },
    "environments": {"metavar": "FILE.toml", "help": "TOML file that defines additional environments."},
    "with": {"metavar": "REQUIREMENT", "help": "Run in an environment with this package installed. Repeatable."},
    "python": {
        "metavar": "PATH|X.Y",
        "help": "Run in your own environment: the path of its interpreter. With --with, the Python version to use.",
    },
    "out": {"metavar": "DIR", "default": Path("reports"), "show_default": True, "help": "Output directory."},
    "format": {
        "metavar": "LIST",
        "default": ",".join(TABLES),
        "show_default": True,
        "callback": chosen_formats,
        "help": "Formats of the files.",
    },
    "device": {"help": "Device that the counters run the model on."},
    "timeout": {"metavar": "SECONDS", "help": "Time limit per counter."},
    "formulas": {
        "metavar": "FILE.py",
        "help": "Python file with the work of ops that the tool does not know. Repeatable.",
    },
    "quiet": {"help": "Print only the verdict and what went wrong."},
    "verbose": {"help": "Print every layer, every counter's statement, and each step."},
}
"""How an option looks: its help, and what click takes besides what launch/request.py declares."""
SHORT = {"quiet": "-q", "verbose": "-v"}
KINDS: dict[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": TEXT},
    Kind.FLAG: {"is_flag": True},
    Kind.FILE: {"type": PATH},
    Kind.SETTING: {"callback": _pairs},
    Kind.LIMIT: {"type": Seconds(min=0, min_open=True)},
}


def _alone(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Refuse --quiet beside --verbose, whichever click reads last. Raises UsageError."""
    if value and any(ctx.params.get(name) for name in SHORT if name != param.name):
        raise UsageError("--quiet leaves out what --verbose asks for: give one of them.")
    return value


def declare_option(name: str, parameter: str = "", **look: Any) -> Callable[[F], F]:
    """The option of this name as click takes it: its declaration, its face, and ``look`` where a command has it otherwise."""
    option = OPTIONS[name]
    return _make_option(option, {**FACE[name], **look}, parameter)


def _make_option(option: Option, look: Mapping[str, Any], parameter: str = "") -> Callable[[F], F]:
    given = {"multiple": option.repeated, **KINDS[option.kind], **look}
    if option.name in SHORT:
        given["callback"] = _alone
    if option.choices and "type" not in look:
        given["type"] = click.Choice(option.choices)
    if option.default not in (None, False):
        given = {"default": option.default, "show_default": bool(option.default), **given}
    short = [SHORT[option.name]] if option.name in SHORT else []
    return click.option(*short, option.flag, parameter or option.parameter, **given)


def pictures(function: F) -> F:
    """Decorate a command with --format for reports that may have a page and pictures."""
    look = (
        "Formats of the files. svg and png are pictures that the Markdown shows; card and disclosure are texts for model cards "
        "and training steps (docs/cards.md)."
    )
    return declare_option("format", default=",".join(FORMATS), callback=_with_pictures, help=look)(function)


def pass_of_a_pair(function: F) -> F:
    """Decorate a command of pairs with --pass. A pair has no cache of tokens."""
    look = "Count a call of the model, or a training step."
    return declare_option("pass", type=click.Choice(PASSES), help=look)(function)


def of_families(function: F) -> F:
    """Decorate a command of the zoo's families with --case and --pass, both repeatable."""
    look = "Run only this pass."
    function = click.option("--pass", "passes", type=click.Choice(PASSES), multiple=True, help=look)(function)
    look = "Run only this family. Repeatable; default all."
    return click.option("--case", "families", multiple=True, metavar="NAME", help=look)(function)


def options(*names: str | Callable[[Any], Any]) -> Callable[[F], F]:
    """Decorate a command with these options, by their names or as ``declared`` and ``models`` make them, in this order."""
    made = [declare_option(name) if isinstance(name, str) else name for name in names]

    def decorate(function: F) -> F:
        for option in reversed(made):
            function = option(function)
        return function

    return decorate


def models(function: F) -> F:
    """Decorate a command with an option for the models of every framework."""
    for name, option in reversed(model_options().items()):
        record = frameworks()[name]
        function = _make_option(option, {"metavar": record.metavar, "help": record.help})(function)
    return function


OWN = (models, "input", "args", "signature", "trust-file")
"""The options that say what a model of the user's own is, and what it is called with."""


def again(ctx: click.Context, wanted: Collection[str] = (), *more: str, bare: bool = True, command: str = "") -> str:
    """The command of ``ctx`` with those of its options that are not at their defaults, and ``more`` after them.

    ``command`` is another command that is to have these options.
    ``wanted`` are the options that it is to have; unless they are given, those that decide what a report says.
    ``bare`` names files without their folders: a report is made again from the folder that holds the files it names.
    """
    wanted = wanted or flags(lambda option: option.report)
    line = ["reconcile", command or ctx.command.name or ""]
    for parameter in ctx.command.params:
        value, flag = ctx.params.get(parameter.name or ""), parameter.opts[0]
        if flag in wanted and value and value != parameter.get_default(ctx):
            line += words(flag, value, str if not bare else _file_name if parameter.name == "model" else _bare)
    return quote_words([*line, *more])


def _file_name(item: Any) -> str:
    return Path(item).name


def _bare(item: Any) -> str:
    return _file_name(item) if isinstance(item, Path) else str(item)
