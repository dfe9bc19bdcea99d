"""Hints of decode and audit beyond the search: environments that it did not read, and other versions of the network.

``find_reading`` looks the number up in the saved baselines of other environments, ``list_unread_environments`` gives those that
could be run, ``find_origin`` the one that gives a total again, and ``find_sibling`` looks the number up in the work of the zoo's
other versions of the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.records import CALLED_WITH, Trace
from ...core.registry import frameworks, known_counters
from ...launch.environments.definitions import CURRENT, Environment
from ...launch.environments.runs import counters_of
from ...launch.user_models import READ_BACK
from .grammar import Source
from .printed_figure import PrintedFigure
from .readings import Candidate
from .search import search


def find_reading(
    model: str, wanted: PrintedFigure, kept: Sequence[Source], looked_at: Sequence[Source]
) -> tuple[str, Candidate] | None:
    """The environment whose saved data has a total with these digits, and that total, if the search left it out."""
    seen = {source.name for source in looked_at}
    for source in kept:
        if source.name in seen:
            continue
        decoded = search(model, wanted, [source])
        if decoded.close:
            return source.name, decoded.matches[0]
    return None


def list_unread_environments(
    known: Mapping[str, Environment],
    kept: Sequence[Source],
    looked_at: Sequence[Source],
    own: Mapping[str, str],
    counters: Sequence[str] = (),
) -> tuple[str, ...]:
    """The environments that can be run for this model and whose data was not read. ``own`` are the factories of a model of the
    user's own, none for a pair: one of a library that is listed needs its release, which an older environment does not have. Of
    ``counters``, if there are any, an environment has to run one."""
    listed = {
        part
        for record in frameworks().values()
        for part in (*dict(record.libraries), *(f[1] for f in record.functions))
    }
    if listed & {where.partition(":")[0] for where in own.values()}:
        return ()
    seen = {source.name.partition("@")[0] for source in (*kept, *looked_at)}
    sides = set(own) or {framework for source in looked_at for framework in source.collected.meta["frameworks"]}
    return tuple(
        name
        for name, environment in known.items()
        if environment.unasked
        and name not in seen
        and name != CURRENT
        and sides & set(environment.frameworks)
        and _usable(environment, own).intersection(counters or known_counters())
    )


def _usable(environment: Environment, own: Mapping[str, str]) -> set[str]:
    """The counters of an environment that take the model: a recipe builds a pair, not a model of the user's own."""
    names = environment.counters or counters_of(environment)
    return {name for name in names if not own or known_counters()[name].recipe in ("", READ_BACK)}


def describe_made(sources: Sequence[Source]) -> str:
    """What a trace notes of how its model was made, beside its inputs, such as the class of a configuration; '' for nothing."""
    traces = [trace for source in sources for trace in source.collected.traces if isinstance(trace, Trace)]
    starts = ((trace, [note.startswith(CALLED_WITH) for note in trace.notes]) for trace in traces)
    made = (trace.notes[flags.index(True) + 1 :] for trace, flags in starts if True in flags)
    return "; ".join(dict.fromkeys(note for notes in made for note in notes))


def find_origin(candidate: Candidate, known: Mapping[str, Environment]) -> str:
    """The environment to run to get this total of a counter again; '' if it is the one here, or cannot be run."""
    name = candidate.where[0].partition(" (")[0].partition("@")[0]
    return name if candidate.counter in known_counters() and name in known and name != CURRENT else ""


def list_versions(model: str, totals: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """The other versions of this network, of ``totals``, which are by network and by unit. Two networks are versions of one if
    the name of one begins with the other's, as ``resnet50`` and ``resnet50_v1_5``; a library's own name is in any case."""
    short = model.partition("(")[0].rpartition(":")[2].lower()
    return {
        name: numbers
        for name, numbers in totals.items()
        if name != short and (name.startswith(f"{short}_") or short.startswith(f"{name}_"))
    }


def find_sibling(
    model: str, wanted: PrintedFigure, totals: Mapping[str, Mapping[str, int]]
) -> tuple[str, str, int] | None:
    """The name of another version of this network whose work is the figure, the unit of that number, and the number: the first of
    ``list_versions``."""
    for name, numbers in list_versions(model, totals).items():
        for unit, number in numbers.items():
            if wanted.holds(number):
                return name, unit, number
    return None
