"""``reconcile decode``: explains how a published number of a model was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import PATH, added_options, declare_option, models, options
from ...cli.streams import say
from ..number_types import Signed

if TYPE_CHECKING:
    from ...launch.environments.definitions import Environment
    from ...launch.request import RunRequest
    from ...report.document import Block
    from .grammar import Source
    from .search import Decoded


class _Decode(Signed):
    def read(self, text: str) -> object:
        """See Signed.read."""
        from .printed_figure import figure

        return figure(text)


@click.command(cls=_Decode)
@options(
    "model", models, "input", *added_options("files"), "set",
    declare_option(
        "counter",
        help="Read only this one, and the work that ran.",
    ),
    declare_option(
        "environment", "names", multiple=True, default=(), show_default=False,
        help="Search only this environment. Repeatable.",
    ),
    "environments", "with", "python",
)  # fmt: skip
@click.option("--no-run", is_flag=True, help="Search only saved baselines.")
@click.option(
    "--thorough",
    is_flag=True,
    help="Run what takes minutes, too (docs/decode.md).",
)
@click.option(
    "--baselines", type=PATH, metavar="DIR",
    help="Folder of the saved baselines.",
)  # fmt: skip
@options(
    "convention-file", "device", "timeout", "formulas", "quiet",
    declare_option("verbose", help="Print every reading."),
)  # fmt: skip
@click.argument("number", metavar="NUMBER", nargs=-1, required=True)
@click.pass_context
def decode(
    ctx: click.Context,
    /,
    number: tuple[str, ...],
    names: tuple[str, ...],
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    no_run: bool,
    thorough: bool,
    baselines: Path | None,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Explain a published number of a model.

    \b
    reconcile decode --torch net:Net --input 1,1,32,32 1841440
    reconcile decode --model resnet50 4.1 GMACs

    A whole NUMBER must match exactly, a rounded one (3.86e9, 7.7G, 585M) in its digits. A unit after it keeps the readings in
    that unit, if any agrees. The tool tries a fixed list of ways to count a call of the model, and names those that give NUMBER:
    what counters report here and in every environment with a saved baseline, the work that ran, and named parts of either.

    Exit codes: 0 explained (ambiguous included), 1 not explained, 2 bad usage or baseline, 4 a defect of reconcile itself.
    """
    from dataclasses import replace

    from ...cli.environment import describe_environment
    from ...cli.progress import progress
    from ...cli.screen import print_safely
    from ...core.errors import UsageError
    from ...launch import choose, user_models
    from ...launch.choose import prepare_conventions
    from ...launch.environments.definitions import load as load_environments
    from ...launch.request import models_of, run_request
    from ...report.document.terminal import show, show_blocks
    from ..factory_calls import parse_factory_call
    from . import sources as data
    from .printed_figure import PARAMETER, figure
    from .report import describe_decoded, summarize
    from .search import search

    wanted = figure(" ".join(number))
    choose.check_one_model(asked["model"], models_of(asked), asked["overrides"], asked["inputs"])
    calls = {framework: parse_factory_call(str(text)) for framework, text in models_of(asked).items()}
    request = run_request(**asked | {framework: where for framework, (where, _) in calls.items()})
    request = replace(request, arguments={name: value for _, named in calls.values() for name, value in named.items()})
    name = request.model or user_models.name_of(request.factories)
    if no_run and request.factories:
        raise UsageError("--no-run looks at saved baselines, and there are none of a model of your own: leave it out.")
    known = load_environments(file)
    if with_ or python:
        if names:
            raise UsageError("--environment names environments and --with or --python another; give one of them.")
        made = describe_environment(with_, python, request.factories)
        known, names = {**known, made.name: made}, (made.name,)
    folders = (baselines,) if baselines else data.folders_of(request.model)
    with prepare_conventions(request) as conventions:
        with progress(quiet=quiet, verbose=verbose) as tell:
            sources, notes = data.gather(
                request,
                folders,
                names,
                known=known,
                fresh=not no_run,
                thorough=thorough,
                close=lambda sources: (
                    search(name, wanted, sources, conventions.every).close
                    or (wanted.counts == PARAMETER and not all(source.remark for source in sources))
                ),
                progress=tell,
                say=lambda m: say(m, err=True),
            )
        name = sources[0].collected.meta["name"]
        decoded = search(name, wanted, sources, conventions.every, notes)
        if quiet:
            say(summarize(decoded))
        else:
            page = describe_decoded(decoded, verbose=verbose)
            print_safely(lambda console: show(page, console))  # before what takes longer
            kept = data.load_saved_sources(request, folders)
            more = _hints(ctx, decoded, request, sources, known, kept)
            print_safely(lambda console: show_blocks(more, console))
    ctx.exit(decoded.exit_code)


def _measured_pairs() -> dict[str, dict[str, int]]:
    """What ran in each pair of the zoo, by unit and framework, if the gallery is here."""
    from ...core.registry import products

    if "gallery" not in products():
        return {}
    from ..gallery.run import ran

    return ran()


def _hints(
    ctx: click.Context,
    decoded: Decoded,
    request: RunRequest,
    sources: Sequence[Source],
    known: Mapping[str, Environment],
    kept: Sequence[Source],
) -> list[Block]:
    """The command that runs the counter whose saved total is the figure, or that searches another environment."""
    from ...cli.options import again
    from ...core.escaping import quote_words
    from ...core.number_format import number
    from ...core.registry import known_counters
    from ...launch.environments.definitions import CURRENT
    from ...launch.options import flags
    from ...report.document import Code, Text
    from .hints import describe_made, find_origin, find_reading, find_sibling, list_unread_environments
    from .printed_figure import PARAMETER
    from .readings import LAYER
    from .runs import LITTLE
    from .search import describe_releases, find_release_bounds

    blocks: list[Block] = []
    if decoded.close:
        first = decoded.matches[0]
        name = find_origin(first, known)
        which = describe_releases(*find_release_bounds(first, sources))
        blocks = [Text(which)] if which else []
        here = first.counter in known_counters() and first.where[0].startswith(f"{CURRENT} (")
        if not (name or (here and "(saved" not in first.where[0])) or request.arguments:  # which `run` does not take
            return blocks
        own_place = ctx.params["with_"] or ctx.params["python"]
        named = () if own_place or not name else ("--environment", name)
        settings = ("--set",) if "saved with" in first.where[0] else ()
        asked = flags(lambda option: option.report) - {"--environment", "--counter", *settings}
        command = again(ctx, asked, *named, "--counter", first.counter, bare=False, command="run")
        return [*blocks, Text("To run it:"), Code(command, "sh")]
    wanted = (flags(lambda option: option.report) | {"--baselines"}) - {"--environment", "--with", "--python"}

    def command_in(*names: str) -> str:
        more = [word for name in names for word in ("--environment", name)]
        return again(ctx, wanted, *more, decoded.figure.text, bare=False)

    made = describe_made(sources)
    blocks += [Text(f"The model was made so: {made}.")] if made and not decoded.matches else []
    if decoded.figure.counts == PARAMETER:
        return blocks
    there = find_reading(decoded.model, decoded.figure, kept, sources)
    if there is not None:
        name, candidate = there
        return [
            Text(f"The saved data of {name} has it: {candidate.what}. Look there:"),
            Code(command_in(name.partition("@")[0]), "sh"),
        ]
    version = None if decoded.matches else find_sibling(decoded.model, decoded.figure, _measured_pairs())
    if version is not None:
        other_name, unit, work = version
        look = quote_words(["reconcile", "decode", "--model", other_name, decoded.figure.text])
        other = f"{other_name}, another version of this network, runs {number(work)} {unit}. Look there:"
        return [Text(other), Code(look, "sh")]
    if not ctx.params["no_run"] and (decoded.doubtful or all(c.rank == LAYER for c in decoded.matches)):
        if ctx.params["thorough"] or all(c.value <= LITTLE for c in decoded.plain):
            found = _variants(ctx, decoded, request, known)
            if found:
                return [*blocks, *found]
        else:
            left = (
                "The network at other sizes and with other settings was not run, which takes minutes: add --thorough."
            )
            blocks.append(Text(left))
    names = list_unread_environments(known, kept, sources, request.factories, request.counters)
    if not names:
        return blocks
    doubt = "This reading may be a coincidence. " if decoded.matches and not decoded.doubtful else ""
    older = f"{doubt}Older versions of a counter may print it, and were not looked at. Run them:"
    return [*blocks, Text(older), Code(command_in(*names), "sh")]


def _variants(
    ctx: click.Context, decoded: Decoded, request: RunRequest, known: Mapping[str, Environment]
) -> list[Block]:
    """The sentences on other sizes, settings and forms of the network that have the figure; none if none has it."""
    from ...cli.options import again
    from ...cli.progress import progress
    from ...core.errors import UsageError
    from ...launch.environments.definitions import CURRENT
    from ...launch.environments.runs import collect_at_in
    from ...launch.options import flags
    from . import variants
    from .report import describe_variants

    name = next((name for name in decoded.environments if name in known), CURRENT)
    there = None if name == CURRENT else collect_at_in(known[name])
    try:
        with progress(quiet=False, verbose=bool(ctx.params["verbose"])) as tell:
            _, ran = variants.run_variants(request, variants.list_variants(request), there, tell)
    except UsageError:  # the run has said why the model does not run
        return []
    wanted = flags(lambda option: option.report)

    def look(words: Sequence[str]) -> str:
        """This command at a variant: its words in place of the option's own, the other settings kept."""
        named = words[1].partition("=")[0] if words[0] == "--set" else ""
        kept = [w for name, text in request.overrides.items() if name != named for w in ("--set", f"{name}={text}")]
        return again(ctx, wanted - {words[0]}, *(kept if named else ()), *words, decoded.figure.text, bare=False)

    macs = decoded.plain[0].value if decoded.plain else 0
    found = variants.hits(ran, decoded.figure)
    return describe_variants(found, len(ran), variants.chance(ran, decoded.figure, macs), decoded.figure, look)
