"""Rules for a pattern of ops, and how they stand beside rules for one op, a library's and other versions'."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconcile.adapters.counters.bridge import View
from reconcile.adapters.counters.module_bridge import Hooks, bridge_modules
from reconcile.adapters.counters.rulebook import Rule, RuleBook
from reconcile.core.records import Op, Sighting, Trace
from reconcile.work import Work

MAC = Work(mac=1)


def op(name: str, **attrs: object) -> Op:
    return Op("m", name, "m", (), (), attrs)


def book(of_library: Callable[[Op], Rule | None] | None = None) -> RuleBook:
    rules = RuleBook("toy", "toy", {"F": "toy.py"}, of_library=of_library)
    rules.rule("own.Conv2d", source="F:1", formula="1")(lambda op: MAC)
    rules.pattern("classes with Conv", lambda op: "Conv" in op.op, source="F:2", formula="2", versions=">=1")(
        lambda op: MAC * 2
    )
    rules.pattern("modules with parameters", lambda op: bool(op.attrs.get("parameters")), source="F:3", formula="3")(
        lambda op: MAC * 3
    )
    return rules


@pytest.mark.parametrize(
    ("record", "version", "formula"),
    [
        (op("own.Conv2d"), "1", "1"),
        (op("their.Conv2d"), "1", "2"),
        (op("their.Conv2d", parameters=1), "1", "2"),
        (op("their.Conv2d", parameters=1), "0.9", "3"),
        (op("their.Linear", parameters=1), "1", "3"),
        (op("their.Conv2d"), "0.9", None),
        (op("their.Linear"), "1", None),
    ],
)
def test_an_own_rule_comes_before_the_first_pattern_that_matches(record: Op, version: str, formula: str | None) -> None:
    rule = book().of(record, {"toy": version})
    assert (rule.formula if rule else None) == formula


def test_the_rule_of_a_library_comes_before_a_pattern() -> None:
    taught = book().rules()[0]
    rules = book(lambda op: taught if op.op == "their.Conv2d" else None)
    assert rules.of(op("their.Conv2d"), {"toy": "1"}) is taught
    of_pattern = rules.of(op("their.Conv3d"), {"toy": "1"})
    assert of_pattern is not None
    assert of_pattern.formula == "2"


def test_patterns_are_listed_after_the_rules_for_one_op() -> None:
    assert [rule.id for rule in book().rules()] == [
        "toy/own.Conv2d",
        "toy/classes with Conv (>=1)",
        "toy/modules with parameters",
    ]


def test_a_second_pattern_of_one_name_and_versions_is_refused() -> None:
    rules = book()
    with pytest.raises(ValueError, match="toy already has a rule for modules with parameters"):
        rules.pattern("modules with parameters", lambda op: True, source="F:4", formula="4")(lambda op: MAC)


@pytest.mark.parametrize("inherited", [True, False])
def test_the_rule_of_a_base_explains_what_the_bridge_books_by_it(inherited: bool) -> None:
    """An item of two calls: whatever rule the bridge takes, the book finds it again from the evidence alone."""
    rules = RuleBook("toy", "toy", {"F": "toy.py"}, inherited=inherited)
    rules.pattern("classes with Conv", lambda op: "Conv" in op.op, source="F:2", formula="2")(lambda op: MAC * 2)
    module = op("their.Stem", bases=["their.Layer", "own.Conv2d", "own.Module"])._replace(calls=2)
    view = View("toy", "torch", "MAC", {"toy": "1"}, (Sighting(module, "m"),), ())
    trace = Trace("torch", {}, "cpu", (), (), (), (), ())
    items = bridge_modules(view, trace, Hooks("toy", rules)).items
    assert [item.counted for item in items] == ([MAC * 4] if inherited else [])
    again = [(rules.of(seen, view.versions), seen.calls) for item in items for seen in item.sightings]
    assert [rule.compute(module) * calls for rule, calls in again if rule] == [item.counted for item in items]
