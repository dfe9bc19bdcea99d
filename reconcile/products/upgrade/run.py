"""The comparison of ``reconcile upgrade``: a model, or the zoo's families of layers, run under two releases, and what changed.

``sides`` chooses the two environments and the counters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...core.causes import State
from ...core.errors import UsageError
from ...core.records import FORWARD, TRAINING
from ...core.registry import frameworks as known_frameworks
from ...core.registry import known_counters, list_default_counters
from ...drift.changes import Drift
from ...drift.compare import compare
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.environments.definitions import (
    CURRENT,
    Environment,
    adhoc,
    load,
    packages_of,
)
from ...launch.request import RunRequest, run_request
from ...launch.user_models import name_of
from ..scorecard.run import installed_version, settings

Take = Callable[[RunRequest], Collected]
"""Runs a request in one of the two environments. Raises UsageError if it cannot."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One model in one pass under both releases; ``failed`` says why there is nothing to compare, ``absent`` are counters that
    gave nothing to compare with under the older one."""

    model: str
    pass_: str
    drift: Drift | None
    failed: str = ""
    absent: tuple[Missing, ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        """The counters whose entries the rules of the newer release do not explain, though they explained the older one's."""
        counters = self.drift.counters if self.drift is not None else ()
        return tuple(c.counter for c in counters if c.open[1] and not c.open[0])


def of_families(families: Sequence[str], passes: Sequence[str], counters: Sequence[str]) -> Iterator[RunRequest]:
    """The requests that run each family in each pass."""
    for pass_ in passes:
        for family in families:
            overrides, device = settings(family, pass_)
            yield run_request(model=family, overrides=overrides, device=device, pass_=pass_, counters=tuple(counters))


def compare_models(requests: Iterable[RunRequest], before: Take, after: Take) -> Iterator[Compared]:
    """Each model in its pass, as soon as it has run under both releases."""
    for request in requests:
        model, pass_ = request.model or name_of(request.factories), TRAINING if request.training else FORWARD
        try:
            old = before(request)
            drift = compare(old, after(request))
        except UsageError as error:
            yield Compared(model, pass_, None, str(error))
        else:
            missing = (ledger for ledger in old.ledgers if isinstance(ledger, Missing))
            yield Compared(model, pass_, drift, absent=tuple(m for m in missing if m.state is not State.NOT_COMPARABLE))


def sides(
    requirements: Sequence[str],
    older: Sequence[str],
    python: str,
    counters: Sequence[str],
    frameworks: Collection[str] = (),
) -> tuple[Environment, Environment, tuple[str, ...]]:
    """The environments before and after an upgrade of these packages, and the counters that it may move.

    ``frameworks`` are those of the models, if these are the user's own. A counter with its own environment runs there, with
    these packages in place of its pins. Raises UsageError for a string that is not a requirement, for counters without a common
    environment, and where there is no counter of these models.
    """
    after = adhoc(tuple(requirements), python, frameworks)
    chosen = tuple(counters) or list_moved_counters(requirements) or _beside_frameworks(after)
    if frameworks and not counters:
        chosen = tuple(name for name in chosen if known_counters()[name].framework in frameworks)
        if not chosen:
            raise UsageError(f"{', '.join(requirements)} moves no counter of this model: name one with --counter.")
    homes = {known_counters()[name].family for name in chosen if known_counters()[name].requirements}
    replaced = packages_of(requirements)
    if not homes:
        here = [f"{name}=={version}" for name in sorted(replaced) if (version := installed_version((name,)))]
        running = replace(load()[CURRENT], title=", ".join(here) or "the packages here")
        before = adhoc(tuple(older), python, frameworks) if older else running
        return _beside(before, older, python, chosen), _beside(after, requirements, python, chosen), chosen
    if len(homes) > 1 or any(not known_counters()[name].requirements for name in chosen):
        raise UsageError(f"{', '.join(chosen)} run in environments of their own: name one of them with --counter.")
    home = load()[homes.pop()]
    pins = [text for text in home.requirements if packages_of([text]) <= replaced]
    before = _in_home(home, older, python, chosen) if older else replace(home, title=", ".join(pins) or home.title)
    return before, _in_home(home, requirements, python, chosen), chosen


def is_there(env: Environment, requirements: Sequence[str]) -> bool:
    """Whether the environment before the upgrade has these releases, each ``package==version``."""
    if env.name != CURRENT:
        return set(requirements) <= set(env.requirements)
    asked = [(Requirement(text).specifier, installed_version(tuple(packages_of([text])))) for text in requirements]
    return all(version and specifier.contains(version, prereleases=True) for specifier, version in asked)


def _in_home(home: Environment, requirements: Sequence[str], python: str, counters: Sequence[str]) -> Environment:
    """The counters' own environment with these packages. All others are resolved anew for another Python, and for another
    release of its framework, which does not run beside those that are pinned for this one."""
    changed, names = home.with_(requirements), packages_of(requirements)
    title = f"{', '.join(requirements)} on {'the running Python' if python == CURRENT else f'Python {python}'}"
    brought = {name for record in known_frameworks().values() for name in record.distributions}
    if python != CURRENT or names & brought & packages_of(home.requirements):
        others = sorted(packages_of(home.requirements) - names)
        anew = adhoc((*requirements, *others), python, {known_counters()[name].framework for name in counters})
        label = changed.name + ("" if python == CURRENT else f"-py{python}")
        return replace(anew, name=label, title=title)
    return replace(changed, title=title)


def _beside(env: Environment, requirements: Sequence[str], python: str, counters: Sequence[str]) -> Environment:
    """The environment. If no framework itself is requested, it is over the running interpreter's packages: nothing else changes,
    and no framework is fetched. Elsewhere the counters come in the releases that are installed here."""
    if not requirements:
        return env
    known, asked = known_counters(), packages_of(requirements)
    if python == CURRENT and not any(asked & set(record.distributions) for record in known_frameworks().values()):
        return replace(env, requirements=tuple(requirements), over=CURRENT)
    beside = sorted({known[name].distribution for name in counters})
    pins = (
        f"{name}=={installed_version((name,))}"
        for name in beside
        if installed_version((name,)) and not packages_of([name]) & asked
    )
    return replace(env, requirements=(*env.requirements, *pins))


def list_moved_counters(requirements: Sequence[str]) -> tuple[str, ...]:
    """The counters of these packages, which an upgrade of them asks for."""
    names = packages_of(requirements)
    return tuple(
        name
        for name, c in known_counters().items()
        if not (c.quoted or c.recipe or c.rare)
        and (
            canonicalize_name(c.distribution) in names
            if c.distribution
            else bool(c.requirements and names & packages_of(c.requirements))
        )
    )


def _beside_frameworks(env: Environment) -> tuple[str, ...]:
    """The counters that run unasked beside the frameworks of this environment: of several, those that share an environment."""
    beside = [name for framework in env.frameworks for name in list_default_counters(framework)]
    return tuple(name for name in beside if not known_counters()[name].requirements) or tuple(beside)
