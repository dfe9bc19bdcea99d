"""Every rule of every counter, in every range of versions that it tells apart, has a case that was worked out by hand."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence

import pytest
from packaging.version import Version

import tests.adapters.counters as here
from reconcile.adapters.counters.rulebook import NotCounted, RuleBook
from reconcile.core.registry import known_counters
from reconcile.engine.booking import own_value
from tests.adapters.counters.cases import Case

FAMILIES: Mapping[str, tuple[Sequence[str], Sequence[Case]]] = {
    family: hand
    for module in pkgutil.iter_modules(here.__path__, "tests.adapters.counters.")
    if module.name.endswith("_cases")
    for family, hand in importlib.import_module(module.name).FAMILIES.items()
}
"""For every ``*_cases.py``: releases whose sources were read, one or more for every range that rules tell apart, and cases."""


def book(family: str) -> RuleBook:
    module = next(counter.module for counter in known_counters().values() if counter.family == family)
    rules: RuleBook = importlib.import_module(f"{module}.rules").BOOK
    return rules


def rule_name(rules: RuleBook, case: Case, release: str) -> str:
    """The op or the pattern whose rule is for the case; the case's own op if the release has none."""
    rule = rules.of(case.op, {rules.package: release})
    return rule.op if rule is not None else case.op.op


def without_case(rules: RuleBook, releases: Iterable[str], cases: Iterable[Case]) -> list[str]:
    """Every op of the book, in every release, that no case is about."""
    covered = {(rule_name(rules, case, release), release) for case in cases for release in case.releases}
    ops = dict.fromkeys(rule.op for rule in rules.rules())
    return [f"{name} in {release}" for name in ops for release in releases if (name, release) not in covered]


def without_release(rules: RuleBook, releases: Iterable[str]) -> list[str]:
    """Every range between two versions at which some rule begins or ends that none of the releases is in."""
    bounds = sorted({Version(spec.version) for rule in rules.rules() for spec in rule.places})
    read = [rules.place(Version(release)) for release in releases]
    ranges = zip([None, *bounds], [*bounds, None], strict=True)
    return [
        f"from {low} to {high}"
        for low, high in ranges
        if not [v for v in read if (low is None or v >= low) and (high is None or v < high)]
    ]


def test_every_family_has_cases() -> None:
    assert {counter.family for counter in known_counters().values()} - set(FAMILIES) == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_rule_has_a_case_in_every_range_of_versions(family: str) -> None:
    releases, cases = FAMILIES[family]
    rules = book(family)
    assert without_case(rules, releases, cases) == []
    assert without_release(rules, releases) == []
    met = {(rule_name(rules, case, r), r) for case in cases if case.work or case.missed for r in case.releases}
    holding = {(rule.op, r) for rule in rules.rules() for r in releases if rule.holds(rules.place(Version(r)))}
    assert sorted(met ^ holding) == []  # cases and rules agree on which releases count which ops
    places = [rules.place(Version(release)) for release in releases]
    assert [rule.id for rule in rules.rules() if not [p for p in places if rule.holds(p)]] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_rules_count_what_their_counter_counts(family: str) -> None:
    unit = next(counter.unit for counter in known_counters().values() if counter.family == family)
    rules = book(family)
    _, cases = FAMILIES[family]
    for case in cases:
        for release in case.releases:
            if case.op.attrs.get("equation") == "ij,jk->ik":
                pytest.importorskip(
                    "numpy"
                )  # the counter's own arithmetic for an einsum; for fvcore, beyond two patterns
            check_case(rules, unit, release, case)


def check_case(rules: RuleBook, unit: str, release: str, case: Case) -> None:
    rule = rules.of(case.op, {rules.package: release})
    if case.missed is None and case.work is None:
        assert rule is None, (case, release)
        return
    assert rule is not None, (case, release)
    if case.missed is not None:
        with pytest.raises(NotCounted) as raised:
            rule.compute(case.op)
        assert raised.value.cause is case.missed, (case, release)
    else:
        assert rule.compute(case.op) == case.work, (case, release)
        assert own_value(case.work, unit) == case.total, (case, release)
