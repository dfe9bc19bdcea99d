"""The core imports nothing that can be taken away, and says none of their names: not lazily, not in a string."""

from __future__ import annotations

import pytest

from tests.home.modules import FACTS, MODULES, facts_of, links
from tests.home.rings import CORE, REMOVABLE, SHARED, needs, owner, seams, strings

pytestmark = [pytest.mark.text, pytest.mark.usefixtures("facts")]


def test_the_core_imports_no_product_and_no_optional_part() -> None:
    assert {owner(module) for module in links()} == {CORE, SHARED, *REMOVABLE}
    assert seams(links()) == []


@pytest.mark.parametrize("module", ["reconcile.engine.settle", "reconcile.adapters.counters.thop.rules"])
def test_a_planted_import_is_found(module: str) -> None:
    planted = links()[module] | set(REMOVABLE.values())
    assert seams({module: planted}) == sorted(f"{module} imports {package}" for package in REMOVABLE.values())


def test_a_planted_import_between_parts_is_found() -> None:
    for name, package in REMOVABLE.items():
        stranger = next(other for other in REMOVABLE if other not in {name, *needs()[name]})
        assert seams({package: {REMOVABLE[stranger]}}) == [f"{package} imports {REMOVABLE[stranger]}"]


def test_no_string_names_a_part_that_can_be_taken_away() -> None:
    assert strings(MODULES) == []


def test_a_string_that_names_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {package.removeprefix("reconcile."): name for name, package in REMOVABLE.items()}
    text = "".join(f'P{n} = "import .{part}.x"\n' for n, part in enumerate(parts))
    monkeypatch.setitem(FACTS, "reconcile.engine.planted", facts_of(text))
    assert len(strings(["reconcile.engine.planted"])) == len(parts)
