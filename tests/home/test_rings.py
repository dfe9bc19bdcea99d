"""The core imports nothing that can be taken away, and says none of their names: not lazily, not in a string."""

from __future__ import annotations

import pytest

from tests.home.modules import LINKS, MODULES, source_files
from tests.home.rings import CORE, REMOVABLE, needs, owner, seams, strings


def test_the_core_imports_no_product_and_no_optional_part() -> None:
    assert {owner(module) for module in LINKS} == {CORE, *REMOVABLE}
    assert seams(LINKS) == []


@pytest.mark.parametrize("module", ["reconcile.engine.settle", "reconcile.adapters.counters.thop.rules"])
@pytest.mark.parametrize("name", sorted(REMOVABLE))
def test_a_planted_import_is_found(module: str, name: str) -> None:
    planted = {**LINKS, module: LINKS[module] | {REMOVABLE[name]}}
    assert seams(planted) == [f"{module} imports {REMOVABLE[name]}"]


def test_a_planted_import_between_parts_is_found() -> None:
    for name, package in REMOVABLE.items():
        stranger = next(other for other in REMOVABLE if other not in {name, *needs()[name]})
        assert seams({**LINKS, package: frozenset({REMOVABLE[stranger]})}) == [
            f"{package} imports {REMOVABLE[stranger]}"
        ]


def test_no_string_names_a_part_that_can_be_taken_away() -> None:
    assert strings(MODULES) == []


def test_a_string_that_names_one_is_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "planted.py"
    parts = {package.removeprefix("reconcile."): name for name, package in REMOVABLE.items()}
    file.write_text("".join(f'P{n} = "import .{part}.x"\n' for n, part in enumerate(parts)))
    monkeypatch.setitem(MODULES, "reconcile.engine.planted", file)
    assert len(strings(["reconcile.engine.planted"])) == len(parts)
    assert source_files().keys() < MODULES.keys()
