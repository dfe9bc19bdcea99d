"""Every option, declared once. Commands pick theirs by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..errors import UsageError
from .number_types import Seconds

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("md", "csv", "json", "html")
TABLES = ("md", "csv", "json")
PICTURES = ("svg", "png")


class _Path(click.Path):
    """A path as a pathlib.Path; what the system can take for none is refused before anybody asks it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType.convert. Raises UsageError."""
        if "\0" in str(value):
            raise UsageError(f"{param.opts[0] if param else 'a path'}: there is a zero byte in {str(value)!r}.")
        try:
            os.fsencode(value)
        except UnicodeEncodeError:
            raise UsageError(f"{param.opts[0] if param else 'a path'}: no file can be called {str(value)!r}.") from None
        return super().convert(value, param, ctx)


PATH: Any = _Path(path_type=Path)
BASELINES = Path("reports/baselines")
"""Where baselines lie, seen from the repository that keeps them."""


def _formats(
    _ctx: click.Context, _param: click.Parameter, value: str, allowed: tuple[str, ...] = TABLES
) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    wrong = [part for part in chosen if part not in allowed]
    if wrong or not chosen:
        raise click.BadParameter(f"{value!r} is not a list of {', '.join(allowed)}.")
    return chosen


def _with_pictures(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    chosen = _formats(ctx, param, value, FORMATS + PICTURES)
    if set(PICTURES) & set(chosen):
        from ..report.pictures import require

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


def _complete(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Shell completion from names that are looked up when somebody presses the key; none where that fails."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        except Exception:
            return []

    return complete


def _models(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..model_zoo.pair import zoo_names

    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(name) for name in zoo_names() if name.startswith(incomplete)]


def _counters() -> Iterable[str]:
    from ..adapters import COUNTERS

    return COUNTERS


def _ends() -> list[str]:
    return [*_counters(), "trace@tf", "trace@torch"]


def _conventions() -> Iterable[str]:
    from ..conventions import BUILT_IN

    return BUILT_IN


def _environments() -> Iterable[str]:
    from ..environments import load

    return load(None)


OPTIONS: dict[str, Callable[[F], F]] = {
    "model": click.option(
        "--model",
        required=True,
        metavar="NAME|FILE.py",
        shell_complete=_models,
        help="A model of the zoo, or a pair file.",
    ),
    "one-model": click.option(
        "--model", metavar="NAME|FILE.py", shell_complete=_models, help="A model of the zoo, or a pair file."
    ),
    "torch": click.option(
        "--torch",
        metavar="MODULE:FUNCTION|FILE",
        help="A PyTorch model of your own: what this function returns, or a .pt2 or TorchScript file.",
    ),
    "tf": click.option(
        "--tf",
        metavar="MODULE:FUNCTION|FILE",
        help="A TensorFlow model of your own, or a frozen .pb, SavedModel folder, .keras or .h5; with --torch, the pair of both.",
    ),
    "onnx": click.option(
        "--onnx", metavar="FILE.onnx", help="An ONNX model of your own: its work, beside that of --torch or --tf."
    ),
    "input": click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="Input of your own model, such as 1,3,224,224 or ids=1,128:int64. Repeatable.",
    ),
    "mapping": click.option(
        "--mapping",
        type=PATH,
        metavar="FILE.csv",
        help="Which layers of two models of your own belong together, as --write-mapping wrote it and you corrected it.",
    ),
    "write-mapping": click.option(
        "--write-mapping", type=PATH, metavar="FILE.csv", help="Write which layers were taken to belong together."
    ),
    "signature": click.option(
        "--signature", default="", metavar="NAME", help="Which signature of a SavedModel.  [default: serving_default]"
    ),
    "trust-file": click.option(
        "--trust-file",
        is_flag=True,
        help="Let a model file run code that it brings along (Lambda layers), touch files, and take what memory it asks for.",
    ),
    "set": click.option(
        "--set",
        "overrides",
        multiple=True,
        callback=_pairs,
        metavar="NAME=VALUE",
        help="Override a model's parameter. Repeatable.",
    ),
    "convention": click.option(
        "--convention",
        default="matmul",
        show_default=True,
        metavar="NAME",
        shell_complete=_complete(_conventions),
        help="What counts as a FLOP.",
    ),
    "convention-file": click.option(
        "--convention-file",
        "convention_files",
        multiple=True,
        type=PATH,
        metavar="FILE.toml",
        help="Conventions of your own. Repeatable.",
    ),
    "counter": click.option(
        "--counter",
        "counters",
        multiple=True,
        metavar="NAME",
        shell_complete=_complete(_counters),
        help="Run only this counter. Repeatable; default all.",
    ),
    "from": click.option(
        "--from",
        "from_",
        metavar="COUNTER",
        shell_complete=_complete(_ends),
        help="Where the statement starts.  [default: tf.profiler@frozen]",
    ),
    "to": click.option(
        "--to",
        "to",
        metavar="COUNTER",
        shell_complete=_complete(_ends),
        help="Where the statement arrives.  [default: thop]",
    ),
    "out": click.option(
        "--out", type=PATH, default=Path("reports"), show_default=True, metavar="DIR", help="Where the files go."
    ),
    "format": click.option(
        "--format",
        "formats",
        default=",".join(TABLES),
        show_default=True,
        callback=_formats,
        metavar="LIST",
        help="Which files.",
    ),
    "format-pictures": click.option(
        "--format",
        "formats",
        default=",".join(FORMATS),
        show_default=True,
        callback=_with_pictures,
        metavar="LIST",
        help="Which files; svg and png are pictures, which the Markdown then shows.",
    ),
    "device": click.option("--device", default="cpu", show_default=True, help="Where the counters run their model."),
    "pass": click.option(
        "--pass",
        "pass_",
        type=click.Choice(("forward", "training")),
        default="forward",
        show_default=True,
        help="What to count: a call of the model, or a training step.",
    ),
    "optimizer": click.option(
        "--optimizer",
        type=click.Choice(("sgd", "adam")),
        help="Of the training step.  [default: sgd]",
    ),
    "timeout": click.option(
        "--timeout",
        type=Seconds(min=0, min_open=True),
        default=600,
        show_default=True,
        metavar="SECONDS",
        help="Limit per counter.",
    ),
    "formulas": click.option(
        "--formulas",
        multiple=True,
        type=PATH,
        metavar="FILE.py",
        help="Work of ops that the tool does not know. Repeatable.",
    ),
    "environment": click.option(
        "--environment",
        default="current",
        show_default=True,
        metavar="NAME",
        shell_complete=_complete(_environments),
        help="Run in this named environment.",
    ),
    "environments": click.option(
        "--environments", "file", type=PATH, metavar="FILE.toml", help="Environments of your own, beside them."
    ),
    "with": click.option(
        "--with",
        "with_",
        multiple=True,
        metavar="REQUIREMENT",
        help="Run in an environment with this in it. Repeatable.",
    ),
    "python": click.option(
        "--python",
        metavar="PATH|X.Y",
        help="Run in this environment of yours, given by its interpreter; with --with, the version of the one it makes.",
    ),
    "quiet": click.option("-q", "--quiet", is_flag=True, help="Print the verdict and what went wrong, nothing else."),
    "verbose": click.option(
        "-v", "--verbose", is_flag=True, help="Print every counter's statement, and each step as it happens."
    ),
}


def options(*names: str) -> Callable[[F], F]:
    """Decorate a command with these options, shown in this order."""

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = OPTIONS[name](function)
        return function

    return decorate
