"""What products add to the records of frameworks."""

from __future__ import annotations

import pytest

from reconcile.core import registry
from reconcile.core.framework import Framework
from reconcile.core.product import Product, extend_records

FIRST = Framework("first", "First", "first", "first.adapter", "first.work", "model", libraries=(("own", "first.own"),))
SECOND = FIRST._replace(name="second", libraries=())


def test_a_tuple_is_appended_and_any_other_value_is_set() -> None:
    products = (
        Product(
            "a", "a", framework_fields=(("first", "libraries", (("more", "a.more"),)), ("first", "steps", "a.steps"))
        ),
        Product(
            "b", "b", framework_fields=(("first", "libraries", (("last", "b.last"),)), ("missing", "steps", "b.steps"))
        ),
    )
    found = extend_records({"first": FIRST, "second": SECOND}, products, "framework_fields")
    libraries = (("own", "first.own"), ("more", "a.more"), ("last", "b.last"))
    assert found == {"first": FIRST._replace(libraries=libraries, steps="a.steps"), "second": SECOND}


def test_the_registry_extends_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    name, held = next(iter(registry.frameworks().items()))
    whole = {
        **registry.products(),
        "more": Product("more", "more", framework_fields=((name, "libraries", (("more", "more.library"),)),)),
    }
    monkeypatch.setattr(registry, "products", lambda: whole)
    found = registry.frameworks.__wrapped__()[name]
    assert found == held._replace(libraries=(*held.libraries, ("more", "more.library")))


def test_the_registry_extends_its_records_of_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    name, held = next(iter(registry.known_counters().items()))
    whole = {**registry.products(), "more": Product("more", "more", counter_fields=((name, "nested", "more.nested"),))}
    monkeypatch.setattr(registry, "products", lambda: whole)
    assert registry.known_counters.__wrapped__()[name] == held._replace(nested="more.nested")


def test_what_needs_a_product_is_left_out_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"tensorflow": (), "pytorch": ("products.mine",)}
    monkeypatch.setattr(registry, "BUILT_IN", rows)
    monkeypatch.setattr(registry, "COUNTER_FOLDERS", {"thop": ("frameworks.pytorch",), "tf_profiler": ()})
    for there in ({}, {"mine": Product("mine", "mine")}):
        monkeypatch.setattr(registry, "products", lambda there=there: there)
        assert list(registry.frameworks.__wrapped__()) == (["tf", "torch"] if there else ["tf"])
        assert ("thop" in registry.built_in_counters()) == bool(there)
