"""``reconcile decode``: what is this number that somebody published?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.records import FLOP, MAC
from .options import PATH, declared, models, options
from .streams import say

if TYPE_CHECKING:
    from ..decode.grammar import Candidate, Source
    from ..decode.search import Decoded
    from ..launch.environments import Environment
    from ..launch.request import RunRequest


VALUES, READINGS, PLACES, ALIKE = 5, 3, 3, 4
"""So many different numbers, readings of each, environments of a reading and numbers that the figure cannot tell from the
best one are shown without --verbose."""


@click.command()
@options(
    "model", models, "input", "signature", "trust-file", "set",
    declared(
        "environment", "names", multiple=True, default=(), show_default=False,
        help="Look only at this environment: its saved baseline, or else a run there. Repeatable.",
    ),
    "environments", "with", "python",
)  # fmt: skip
@click.option("--no-run", is_flag=True, help="Look only at saved baselines.")
@click.option(
    "--baselines", type=PATH, metavar="DIR",
    help="Where the baselines lie: DIR/MODEL/ENVIRONMENT.json.  [default: reports/baselines, and those installed]",
)  # fmt: skip
@options("convention-file", "device", "timeout", "formulas", "quiet")
@click.option("-v", "--verbose", is_flag=True, help="Print every reading, and the candidates nearest to the number.")
@click.argument("number", metavar="NUMBER")
@click.pass_context
def decode(
    ctx: click.Context,
    /,
    number: str,
    names: tuple[str, ...],
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    no_run: bool,
    baselines: Path | None,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Say what a published number is for a model.

    NUMBER is a whole number (25150826 or 25,150,826), which must be met exactly, or a rounded one (3.86e9, 7.7G, 585M),
    which is held against the digits given. MACs or FLOPs after it (4.1 GMACs) leave readings in that unit only, if any
    agrees. It is looked up in a closed list of readings: what the counters report, here
    and in every environment with a saved baseline, the work that ran, and named parts of either. They are readings of a call
    of the model; `reconcile run --pass training` says what was published beside the training step that ran.

    The model is a pair (--model), or a model of your own as `reconcile run` takes it (--torch, --tf, --onnx).

    \b
    Exit codes: 0 explained (ambiguous included), 1 not explained, 2 bad usage or baseline,
    4 a defect of reconcile itself.
    """
    from ..core.errors import UsageError
    from ..decode import gather as data
    from ..decode.figure import figure
    from ..decode.search import search
    from ..launch import user_models
    from ..launch.environments import load as load_environments
    from ..launch.request import models_of, run_request
    from ..launch.runner import conventions_of
    from ..work import load, scoped
    from ..work.formula_files import load_formulas
    from .environment import other
    from .progress import progress

    wanted = figure(number)
    user_models.one_model(asked["model"], models_of(asked), asked["overrides"], asked["inputs"])
    request = run_request(**asked)
    name = request.model or user_models.name_of(request.factories)
    if no_run and request.factories:
        raise UsageError("--no-run looks at saved baselines, and there are none of a model of your own: leave it out.")
    known = load_environments(file)
    if with_ or python:
        if names:
            raise UsageError("--environment names environments and --with or --python another; give one of them.")
        made = other(with_, python)
        known, names = {**known, made.name: made}, (made.name,)
    folders = (baselines,) if baselines else data.folders_of(request.model)
    conventions = conventions_of(request)
    load()
    with scoped():
        load_formulas(request.formulas, request.timeout)
        with progress(quiet=quiet, verbose=verbose) as tell:
            sources, notes = data.gather(
                request,
                folders,
                names,
                known=known,
                fresh=not no_run,
                close=lambda sources: search(name, wanted, sources, conventions).close,
                progress=tell,
                say=lambda m: say(m, err=True),
            )
        name = sources[0].collected.meta["name"]
        decoded = search(name, wanted, sources, conventions, notes)
        hints = (
            [] if quiet else _hints(ctx, decoded, request, sources, known, (*folders, *data.folders_of(request.model)))
        )
    for line in [*said(decoded, quiet=quiet, verbose=verbose), *hints]:
        say(line)
    ctx.exit(decoded.exit_code)


def _hints(
    ctx: click.Context,
    decoded: Decoded,
    request: RunRequest,
    sources: Sequence[Source],
    known: Mapping[str, Environment],
    folders: Sequence[Path],
) -> list[str]:
    """The command that runs the counter whose saved total is the figure, or that looks where nobody looked yet."""
    from ..decode.elsewhere import origin, reading, unseen
    from ..decode.gather import saved
    from ..launch.request import flags
    from .again import again

    if decoded.close:
        first = decoded.matches[0]
        name = origin(first, known)
        if not name or not request.model:
            return []
        made = ctx.params["with_"] or ctx.params["python"]
        named = () if made else ("--environment", name)
        options_of_run = {"--model", "--with", "--python"} if made else {"--model", "--environments"}
        settings = () if "saved with" in first.where[0] else ("--set",)
        command = again(
            ctx, {*options_of_run, *settings}, *named, "--counter", first.counter, bare=False, command="run"
        )
        return ["", f"To run it: {command}"]
    kept = saved(request, folders)
    wanted = (flags(lambda option: option.report) | {"--baselines"}) - {"--environment", "--with", "--python"}

    def command_in(*names: str) -> str:
        more = [word for name in names for word in ("--environment", name)]
        return again(ctx, wanted, *more, decoded.figure.text, bare=False)

    there = reading(decoded.model, decoded.figure, kept, sources)
    if there is not None:
        name, candidate = there
        return ["", f"The saved data of {name} has it: {candidate.what}. Look there: {command_in(name)}"]
    names = unseen(known, kept, sources, tuple(request.factories))
    if not names:
        return []
    doubt = "This reading may be a coincidence. " if decoded.matches and not decoded.doubtful else ""
    return [
        "",
        f"{doubt}Older versions of a counter may print it, and were not looked at. Run them: {command_in(*names)}",
    ]


def said(decoded: Decoded, *, quiet: bool = False, verbose: bool = False) -> list[str]:
    """What to print: the verdict, the readings with their arithmetic, and what could not be looked at."""
    lines = [verdict(decoded)]
    if quiet:
        return lines
    lines += _readings(decoded, verbose)
    if verbose and decoded.near:
        lines += ["", "Nearest candidates that it is not:"]
        lines += [f"  {c.value:,}  {c.what} [{_places(c, verbose)}]" for c in decoded.near]
    if not decoded.matches or (decoded.cut and decoded.merged):
        lines += _compared(decoded)
    if not decoded.matches or decoded.doubtful or verbose:
        lines += ["", f"Looked at: {', '.join(dict.fromkeys(decoded.environments))}."]
        lines += [f"Not looked at: {note}" for note in decoded.notes]
    left_out = [f"Left out: {note}" for note in decoded.left_out]
    return lines + (["", *left_out] if left_out else [])


def _compared(decoded: Decoded) -> list[str]:
    """The multiply-adds that ran, for a figure that nothing explains."""
    macs = [f"{value:,}" for value in dict.fromkeys(c.value for c in decoded.plain)]
    if len(macs) != 1 or decoded.figure.exact:
        return ["", f"The work that ran is {' or '.join(macs)} MACs."] if macs else []
    mantissa, _, power = f"{decoded.plain[0].value:.{decoded.figure.length - 1}e}".partition("e")
    return ["", f"The work that ran is {macs[0]} MACs, which round to {mantissa}e{int(power)}."]


def verdict(decoded: Decoded) -> str:
    """One line: explained, ambiguous or not explained."""
    figure, count, values = decoded.figure, len(decoded.matches), decoded.values
    name = f"{figure.digits:,}" if figure.exact else figure.text
    if not decoded.matches:
        meets = "is this number" if figure.exact else "rounds to it" + ("" if figure.few else ", or is cut off to it")
        rounded = figure.exact and figure.digits and figure.digits % 1000 == 0
        hint = f" If it is rounded, write it so: {_rounded(figure.digits)}." if rounded else ""
        return f"{name} for {decoded.model} is not explained: none of {decoded.searched:,} candidates {meets}.{hint}"
    unit = {MAC: "MACs", FLOP: "FLOPs"}.get(figure.counts, "")
    other = f" No reading in {unit} agrees; these are in another unit." if decoded.other_unit else ""
    if decoded.doubtful and not decoded.ambiguous:
        return (
            f"{name} for {decoded.model} may be explained. It is neither the total of a counter that was looked at nor that of "
            f"the work that ran, so this reading may be a coincidence:{other}"
        )
    if decoded.cut and decoded.merged:
        return f"{name} for {decoded.model} is explained if its digits are cut off and not rounded:{other}"
    if figure.exact or decoded.merged:
        return f"{name} for {decoded.model} is explained:{other}"
    how = "have these digits, the rest cut off (none rounds to them)" if decoded.cut else "round to it"
    if count == 1:
        how = how.replace("have", "has", 1) if decoded.cut else "rounds to it"
    held = f"{count} candidate{'s' if count > 1 else ''} {how}"
    if decoded.ambiguous:
        numbers = f"{len(values)} different numbers"
        return f"{name} for {decoded.model} is ambiguous: {held}, {numbers}.{other} The simplest first:"
    return f"{name} for {decoded.model} is explained: {held}{', all' if count > 1 else ','} {values[0]:,}:{other}"


def _rounded(value: int) -> str:
    digits = str(value).rstrip("0")
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{len(str(value)) - 1}"


def _readings(decoded: Decoded, verbose: bool) -> Iterator[str]:
    """For each number the readings of the lowest rank and the next; with ``verbose`` all."""
    shown = 0
    for value in decoded.values if verbose else decoded.values[:VALUES]:
        same = [c for c in decoded.matches if c.value == value]
        best = same if verbose else [c for c in same if c.rank <= same[0].rank + 1][:READINGS]
        shown += len(best)
        yield ""
        yield f"  {value:,}"
        for candidate in best:
            yield f"    {candidate.what}"
            if candidate.how:
                yield f"      {candidate.how}"
            if candidate.note:
                yield f"      {candidate.note}"
            yield f"      {_places(candidate, verbose)}"
    if decoded.merged:
        first: dict[int, Candidate] = {}
        for candidate in decoded.matches:
            first.setdefault(candidate.value, candidate)
        others = [f"{c.value:,} ({c.what})" for c in first.values()][1:]
        if others:
            more = len(others) - (len(others) if verbose else ALIKE)
            listed = others if verbose else others[:ALIKE]
            yield ""
            yield f"  Its digits do not tell this from {'; '.join(listed)}" + (
                f"; and {more} more." if more > 0 else "."
            )
        return
    rest = len(decoded.matches) - shown
    if rest:
        yield ""
        yield f"  {rest} more {'readings' if rest > 1 else 'reading'}: --verbose"


def _places(candidate: Candidate, verbose: bool) -> str:
    held = candidate.where if verbose else candidate.where[:PLACES]
    more = len(candidate.where) - len(held)
    return "; ".join(held) + (f"; and {more} more" if more else "")
