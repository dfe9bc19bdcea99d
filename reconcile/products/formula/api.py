"""``reconcile.polynomials``: finds the counts of a model as polynomials of its sizes; returns a Formula, the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.escaping import escape_line
from ...core.option import PYTHON, Group
from ...launch.keywords import keywords_of, speaks_python
from ...launch.options import keywords_taken_by

if TYPE_CHECKING:
    from fractions import Fraction

    from ...launch.workers.supervisor import Event
    from . import formula as formulas

PASSED_ON = keywords_taken_by(PYTHON, Group.CONVENTION, Group.COUNT, Group.MANNER)
"""The keyword arguments of ``run`` that ``polynomials`` takes, too."""


@dataclass(frozen=True, slots=True, repr=False)
class Formula:
    """The result of ``reconcile.polynomials``: the counts of a model as polynomials; ``result`` is the whole record."""

    result: formulas.Formula

    @property
    def exit_code(self) -> int:
        """0 every count is a polynomial, 1 some are not, or unexplained or incomplete, 3 a counter failed."""
        return self.result.exit_code

    def at(self, **sizes: int) -> dict[str, int | Fraction]:
        """What ran, each counter and each cause, at a size of each variable: ``counts.at(B=8, T=128)["thop"]``.

        It is a fraction only at sizes that the model cannot have. A count without a polynomial is left out. Raises UsageError
        unless every variable has a size.
        """
        return self.result.at(**sizes)

    def write(self, folder: str | Path, formats: Sequence[str] = ("json", "txt", "tex", "py")) -> list[Path]:
        """Write ``<name>-formula.<format>`` into that folder. Returns the files. Raises UsageError as ``Run.write`` does."""
        from ...core import atomic
        from ...core.errors import check_names
        from . import report

        check_names("format", formats, report.FORMATS)
        atomic.prepare(Path(folder))
        return atomic.write(Path(folder), report.stem(self.result), report.render(self.result, formats))

    def __str__(self) -> str:
        from ...report.document.terminal import to_text
        from .report import WIDTH, describe_formula

        return to_text(describe_formula(self.result, layers=False), WIDTH).rstrip("\n")

    def __repr__(self) -> str:
        return f"<reconcile.Formula of {escape_line(self.result.model)}>"


@speaks_python(*PASSED_ON)
def polynomials(
    *,
    at: Mapping[str, Any],
    inputs: str | Sequence[str] = (),
    torch: Any = None,
    tf: Any = None,
    model: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    python: str | Path | None = None,
    progress: Callable[[Event], None] | None = None,
    **options: Any,
) -> Formula:
    """Find the counts of a model as polynomials of its sizes, as ``reconcile formula`` does.

    ``inputs`` are shapes with names for the sizes that vary, such as ``"ids=B,T:int64"``, and ``at`` says what each stands for:
    ``{"B": range(1, 4), "T": "16..96"}``. ``torch`` and ``tf`` are as in ``run``: ``"module:function"`` runs in worker processes,
    and anything else in this one. ``model`` names a pair, with ``overrides`` such as ``{"units": "H"}``. ``python`` and the
    ``options`` are those of ``run``: convention, convention_files, counters, formulas, device, timeout, pass_, optimizer,
    context.

    Raises UsageError, with one sentence, for what cannot be used.
    """
    from ...core.errors import UsageError, unknown
    from ...core.registry import frameworks
    from ...launch import choose
    from ...launch import importable_models as workers
    from ...launch.environments.definitions import at as environment_at
    from ...launch.environments.runs import collect_at_in
    from ...launch.request import models_of, run_request
    from .formula import formula
    from .run_points import in_this_process, in_workers
    from .variables import Template, read_variables, texts_of

    models = {name: options.pop(name) for name in frameworks() if name in options}
    stray = next((name for name in options if name not in PASSED_ON), None)
    if stray is not None:
        known = {*PASSED_ON, *frameworks(), *keywords_of(polynomials)}
        raise unknown("argument of reconcile.polynomials", stray, known)
    given = models_of(dict(torch=torch, tf=tf, **models))
    texts, set_ = workers.shapes(inputs), {name: str(value) for name, value in (overrides or {}).items()}
    choose.check_one_model(model, given, set_, texts)
    template = Template(read_variables(texts_of(at)), texts, set_)
    tell = progress or (lambda _event: None)
    if model is None and not any(isinstance(each, str) for each in given.values()):
        if python is not None or options.get("timeout") is not None:
            raise UsageError("timeout= and python= are for worker processes: name the model as 'module:function'.")
        here = run_request(**options)
        choose.check_cached(here, given)
        return Formula(formula(template, in_this_process(given, here, tell)))
    request = run_request(model=model, **workers.name_models(given), **options)
    if request.files:
        raise UsageError("a model file has the sizes that it was saved with: name a function that makes the model.")
    there = collect_at_in(environment_at(str(python))) if python else None
    return Formula(formula(template, in_workers(replace(request, paths=workers.paths()), tell, there)))
