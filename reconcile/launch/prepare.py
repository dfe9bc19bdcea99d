"""What every command needs before it reconciles: the conventions that were asked for, and the formulas of the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..core.conventions import BUILT_IN, NAMED, Conventions, choose, load_conventions
from ..work import load, scoped
from ..work.formula_files import load_formulas
from .request import RunRequest


@contextmanager
def prepared(request: RunRequest) -> Iterator[Conventions]:
    """The conventions of the request, and within this context its formulas. Raises UsageError as both of these do."""
    conventions = conventions_of(request)
    with formulas_of(request):
        yield conventions


@contextmanager
def formulas_of(request: RunRequest) -> Iterator[None]:
    """Within this context, the work of an op is known by the user's formulas as well. Raises UsageError for a file of formulas
    that cannot be used."""
    load()
    with scoped():
        load_formulas(request.formulas, request.timeout)
        yield


def conventions_of(request: RunRequest) -> Conventions:
    """The conventions of every report, the request's if it is another, and those of its files. Raises UsageError for an unknown
    name and as load_conventions does."""
    every = dict(BUILT_IN)
    if request.convention in NAMED:
        every[request.convention] = NAMED[request.convention]
    for file in request.convention_files:
        every.update(load_conventions(file))
    return Conventions(choose(request.convention, every), every)
