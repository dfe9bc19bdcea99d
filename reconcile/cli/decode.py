"""``reconcile decode``: what is this number that somebody published?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import BASELINES, PATH, declared, options
from .streams import say

if TYPE_CHECKING:
    from ..decode.grammar import Candidate
    from ..decode.search import Decoded


VALUES, READINGS, PLACES = 5, 3, 3
"""So many different numbers, readings of each, and environments of a reading are shown without --verbose."""


@click.command()
@options(declared("model", required=True), "set")
@click.option(
    "--environment", "environments", multiple=True, metavar="NAME",
    help="Look only at this environment: its saved baseline, or else a run there. Repeatable.",
)  # fmt: skip
@click.option("--no-run", is_flag=True, help="Look only at saved baselines.")
@click.option(
    "--baselines", type=PATH, default=BASELINES, show_default=True, metavar="DIR",
    help="Where the baselines lie: DIR/MODEL/ENVIRONMENT.json.",
)  # fmt: skip
@options("convention-file", "timeout", "formulas", "quiet")
@click.option("-v", "--verbose", is_flag=True, help="Print every reading, and the candidates nearest to the number.")
@click.argument("number", metavar="NUMBER")
@click.pass_context
def decode(
    ctx: click.Context,
    /,
    number: str,
    environments: tuple[str, ...],
    no_run: bool,
    baselines: Path,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Say what a published number is for a model.

    NUMBER is a whole number (25150826 or 25,150,826), which must be met exactly, or a rounded one (3.86e9, 7.7G, 585M),
    which is held against the digits given. It is looked up in a closed list of readings: what the counters report, here
    and in every environment with a saved baseline, the work that ran, and named parts of either. They are readings of a call
    of the model; `reconcile run --pass training` says what was published beside the training step that ran.

    \b
    Exit codes: 0 explained (ambiguous included), 1 not explained, 2 bad usage or baseline,
    4 a defect of reconcile itself.
    """
    from ..decode.search import figure, gather, search
    from ..launch.request import run_request
    from ..launch.runner import conventions_of
    from ..work import load, scoped
    from ..work.formula_files import load_formulas
    from .progress import progress

    wanted = figure(number)
    request = run_request(**asked)
    conventions = conventions_of(request)
    load()
    with scoped():
        load_formulas(request.formulas, request.timeout)
        with progress(quiet=quiet, verbose=verbose) as tell:
            sources, notes = gather(
                request, baselines, environments, fresh=not no_run, progress=tell, say=lambda m: say(m, err=True)
            )
        found = search(sources[0].collected.meta["name"], wanted, sources, conventions, notes)
    for line in said(found, quiet=quiet, verbose=verbose):
        say(line)
    ctx.exit(found.exit_code)


def said(found: Decoded, *, quiet: bool = False, verbose: bool = False) -> list[str]:
    """What to print: the verdict, the readings with their arithmetic, and what could not be looked at."""
    lines = [verdict(found)]
    if quiet:
        return lines
    lines += _readings(found, verbose)
    if verbose and found.near:
        lines += ["", "Nearest candidates that it is not:"]
        lines += [f"  {c.value:,}  {c.what} [{_places(c, verbose)}]" for c in found.near]
    if not found.matches or verbose:
        lines += ["", f"Looked at: {', '.join(dict.fromkeys(found.environments))}."]
        lines += [f"Not looked at: {note}" for note in found.notes]
    return lines


def verdict(found: Decoded) -> str:
    """One line: explained, ambiguous or not explained."""
    figure, count, values = found.figure, len(found.matches), found.values
    name = f"{figure.digits:,}" if figure.exact else figure.text
    if not found.matches:
        meets = "is this number" if figure.exact else "rounds to it, or is cut off to it"
        rounded = figure.exact and figure.digits and figure.digits % 1000 == 0
        hint = f" If it is rounded, write it so: {_rounded(figure.digits)}." if rounded else ""
        return f"{name} for {found.model} is not explained: none of {found.searched:,} candidates {meets}.{hint}"
    if figure.exact:
        return f"{name} for {found.model} is explained:"
    how = "have these digits, the rest cut off (none rounds to them)" if found.cut else "round to it"
    if count == 1:
        how = how.replace("have", "has", 1) if found.cut else "rounds to it"
    held = f"{count} candidate{'s' if count > 1 else ''} {how}"
    if found.ambiguous:
        return f"{name} for {found.model} is ambiguous: {held}, {len(values)} different numbers. The simplest first:"
    return f"{name} for {found.model} is explained: {held}{', all' if count > 1 else ','} {values[0]:,}:"


def _rounded(value: int) -> str:
    digits = str(value).rstrip("0")
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{len(str(value)) - 1}"


def _readings(found: Decoded, verbose: bool) -> Iterator[str]:
    """For each number the readings of the lowest rank and the next; with ``verbose`` all."""
    shown = 0
    for value in found.values if verbose else found.values[:VALUES]:
        same = [c for c in found.matches if c.value == value]
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
    rest = len(found.matches) - shown
    if rest:
        yield ""
        yield f"  {rest} more {'readings' if rest > 1 else 'reading'}: --verbose"


def _places(candidate: Candidate, verbose: bool) -> str:
    held = candidate.where if verbose else candidate.where[:PLACES]
    more = len(candidate.where) - len(held)
    return "; ".join(held) + (f"; and {more} more" if more else "")
