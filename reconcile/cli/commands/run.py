"""``reconcile run``: run the counters, reconcile them, show the statement and write the reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ...core.option import RUN, Group
from ...launch.options import OPTIONS
from ..options import options_taken_by, pictures
from ..run_options import RUN as ADDED
from ..run_options import RunCall
from ..streams import say


@click.command()
@options_taken_by(RUN, Group.MODEL, Group.CONVENTION, Group.COUNT, Group.PLACE)
@ADDED.decorate
@options_taken_by(RUN, Group.OUTPUT, Group.MANNER, Group.PRINT, formats=pictures)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    write_mapping: Path | None,
    from_: str | None,
    to: str | None,
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    out: Path,
    formats: tuple[str, ...],
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Run the counters on a model and reconcile them.

    \b
    reconcile run --torch package.module:Net --input 1,3,224,224
    reconcile run --model gru_demo --from tf.profiler@frozen --to thop

    A model is a class, a function or a file; trace@torch is the work that ran.

    Exit codes: 0 reconciled, 1 unexplained or incomplete, 2 bad usage or input, 3 a counter failed,
    4 a defect of reconcile itself.
    """
    from ...core import atomic
    from ...core.registry import load_formats
    from ...launch.choose import check_one_model
    from ...launch.request import models_of, run_request
    from ...report import reports
    from ...report.view import default_statement
    from ...workflow import run as run_counters
    from ..options import again
    from ..progress import progress
    from ..screen import show

    added = ADDED.take_values(asked)
    mapped = "--mapping" if asked["mapping"] else "--write-mapping" if write_mapping else ""
    check_one_model(asked["model"], models_of(asked), asked["overrides"], asked["inputs"], mapped, asked["args"])
    if mapped:
        from ...align.mapping import check, format_mapping

        check(asked["mapping"], write_mapping, list(models_of(asked)))
    request = run_request(**asked, formats=formats)
    for check_request in load_formats(formats, "check").values():
        check_request(request)
    call, additions = ADDED.prepare(RunCall(ctx, request, added, out, formats, quiet, verbose))
    for addition, own_call in additions:
        if (code := addition.run_instead(own_call)) is not None:
            ctx.exit(code)
    request = call.request
    wanted = take = None
    if request.factories:
        from ...launch.user_models import counters_of

        counters_of(request.factories, request.counters, request.files)
    if from_ is not None or to is not None:
        from ..statement_ends import choose, ends_of

        wanted = ends_of(request, from_, to)
    if file or with_ or python or environment != OPTIONS["environment"].default:
        from ..environment import choose_environment, collect_there

        take = collect_there(choose_environment(environment, file, with_, python, request.factories))
    atomic.prepare(out)
    with progress(quiet=quiet, verbose=verbose) as tell:
        result = run_counters(request, tell, take)
    statement = choose(result, wanted) if wanted else default_statement(result)
    stem = reports.stem(result.model, training=bool(request.training), pass_=result.pass_)
    if ctx.get_parameter_source("formats") is ParameterSource.DEFAULT:
        formats = reports.add_outdated_pictures(out, stem, formats)
    texts = reports.render(result, formats, statement, again(ctx, (), *call.words))
    kept = atomic.write(out, stem, texts)
    if said := reports.explain_missing_page(result, formats):
        say(said, err=True)
    if write_mapping is not None and result.alignment:
        kept.append(atomic.write_file(write_mapping, format_mapping(result.alignment, result.model)))
    elif write_mapping is not None:
        say(f"{write_mapping} was not written: that takes the traces of both models.", err=True)
    show(result, statement, kept, quiet=quiet, verbose=verbose)
    stem = reports.stem(result.model, pass_=result.pass_)
    ctx.exit(max([result.exit_code, *(addition.follow(own, result, stem) for addition, own in additions)]))
