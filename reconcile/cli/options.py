"""Click decorators for the options of a run (launch/options.py), and ``again``, the command line that repeats a run.

A command of the core takes the options whose records name it; products name the options that they take.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..core.errors import UsageError
from ..core.escaping import quote_words
from ..core.option import FORMATS, PICTURES, Group, Kind, Option, words
from ..core.registry import added_formats
from ..launch.options import OPTIONS, PASSES, flags, known_options, model_options, taken_by
from ..launch.options import TABLES as TABLES


def complete_values(names: Callable[[], Iterable[str]], *, files: bool = False) -> Callable[..., list[CompletionItem]]:
    """Shell completion from names that are looked up when the user presses the key; none if that fails.

    Where ``files`` may be given, what looks like a path is completed as one.
    """

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if files and ("/" in incomplete or incomplete.startswith(".")):
            return [CompletionItem(incomplete, type="file")]
        try:
            return [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        except Exception:
            return []

    return complete


F = TypeVar("F", bound=Callable[..., Any])


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
    """The type of --timeout. ``run_request`` rejects what is not a number, or out of range."""

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
    _ctx: click.Context, _param: click.Parameter, values: Sequence[str], allowed: tuple[str, ...] = TABLES
) -> tuple[str, ...]:
    """The names in lists such as ``md,csv``, as click calls it. Raises BadParameter for one that is not ``allowed``, and
    UsageError for an extra comma."""
    value = ",".join(values)
    chosen = tuple(dict.fromkeys(part.strip() for part in value.split(",")))
    if "" in chosen:
        kept = ",".join(filter(None, chosen)) or allowed[0]
        raise UsageError(f"--format: {value!r} has an extra comma. Write {kept}.")
    wrong = [part for part in chosen if part not in allowed]
    if wrong:
        raise click.BadParameter(f"{value!r} is not a list of {', '.join(allowed)}.")
    return chosen


def _with_pictures(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    chosen = chosen_formats(ctx, param, value, (*FORMATS, *PICTURES, *added_formats()))
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


KINDS: dict[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": TEXT},
    Kind.FLAG: {"is_flag": True},
    Kind.FILE: {"type": PATH},
    Kind.NAME_OR_FILE: {"type": TEXT},
    Kind.SETTING: {"callback": _pairs},
    Kind.LIMIT: {"type": Seconds(min=0, min_open=True)},
    Kind.FORMATS: {"callback": chosen_formats, "multiple": True},
}


ALONE = {"quiet", "verbose"}
"""Options of which only one can be given."""


def _alone(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Refuse --quiet beside --verbose, whichever click reads last. Raises UsageError."""
    if value and any(ctx.params.get(name) for name in ALONE - {param.name}):
        raise UsageError("--quiet leaves out what --verbose asks for: give one of them.")
    return value


def declare_option(name: str, parameter: str = "", **look: Any) -> Callable[[F], F]:
    """The click decorator of the option of this name, made from its record; ``look`` replaces parts of that."""
    return _make_option(known_options()[name], look, parameter)


def _make_option(option: Option, look: Mapping[str, Any], parameter: str = "") -> Callable[[F], F]:
    given: dict[str, Any] = {"help": option.help, "multiple": option.repeated, **KINDS[option.kind]}
    if option.metavar:
        given["metavar"] = option.metavar
    if option.values:
        given["shell_complete"] = complete_values(option.values, files=option.kind is Kind.NAME_OR_FILE)
    if option.name in ALONE:
        given["callback"] = _alone
    if option.choices:
        given["type"] = click.Choice(option.choices)
    if option.default not in (None, False):
        given |= {
            "default": [option.default] if given["multiple"] else option.default,
            "show_default": bool(option.default) and "(default)" not in look.get("help", option.help),
        }
    names = filter(None, (option.short, option.flag, parameter or option.parameter))
    return click.option(*names, **{**given, **look})


def pictures(function: F) -> F:
    """Decorate a command with --format for reports that may have a page and pictures."""
    look = f"Of {','.join(FORMATS)} (default),{','.join((*PICTURES, *added_formats()))}."
    return declare_option("format", default=[",".join(FORMATS)], callback=_with_pictures, help=look)(function)


def pass_of_a_pair(function: F) -> F:
    """Decorate a command of pairs with --pass. A pair has no cache of tokens."""
    look = "A call of the model, or a training step."
    return declare_option("pass", type=click.Choice(PASSES), metavar="|".join(PASSES), help=look)(function)


def options(*names: str | Callable[[Any], Any]) -> Callable[[F], F]:
    """Decorate a command with these options, by their names or as ``declare_option`` and ``models`` make them, in this order."""
    made = [declare_option(name) if isinstance(name, str) else name for name in names]

    def decorate(function: F) -> F:
        for option in reversed(made):
            function = option(function)
        return function

    return decorate


def added_options(field: str) -> tuple[str, ...]:
    """The names of the options that products add and that decide this field of a request."""
    return tuple(name for name, option in known_options().items() if name not in OPTIONS and option.field == field)


def models(function: F) -> F:
    """Decorate a command with an option for the models of every framework."""
    for option in reversed(model_options().values()):
        function = _make_option(option, {})(function)
    return function


def options_taken_by(taker: str, *groups: Group, **otherwise: Callable[[Any], Any]) -> Callable[[F], F]:
    """Decorate a command with the options of these groups whose records say that ``taker`` takes them, group by group.

    ``otherwise`` are decorators (``declare_option``) that replace those of the records, by the records' parameter names.
    """
    taken = taken_by(taker, *groups)
    return options(*(otherwise.get(option.parameter) or _make_option(option, {}) for option in taken))


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
