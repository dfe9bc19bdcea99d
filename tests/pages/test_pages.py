"""Every cause, convention and counter has a page that says what it must, and docs/ is made of these pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.formulas import HELD, module_of
from docs.write import TITLES, texts
from reconcile.core.causes import ORDER, Cause
from reconcile.core.conventions import NAMED
from reconcile.core.registry import known_counters
from reconcile.pages import HERE, names, page
from reconcile.work import load as load_formulas
from reconcile.work import registered_formulas
from tests.cli.conftest import Stub, stub  # noqa: F401
from tests.pages.reading import SLOW, THERE, numbers, programs, value

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = {
    "causes": {"See it", "How to avoid it", "Where users met it"},
    "conventions": {"See it", "When not to use it", "Where users met it"},
    "counters": {"Blind spots"},
}
STATEMENTS = 5
FAMILIES = {counter.family for counter in known_counters().values()} - set(known_counters())
"""Pages about several counters, each of which has a page of its own."""


@pytest.fixture(scope="module")
def wanted() -> dict[str, str]:
    """What `make docs` writes."""
    return texts()


def test_there_is_a_page_for_each_and_for_nothing_else() -> None:
    files = {path.stem if path.suffix == ".md" else "" for path in HERE.glob("*/*.md")}
    assert files == set(names())
    counters = {name for name in known_counters() if ":" not in name}  # members after a colon share their family's page
    assert {*(c.value for c in Cause), *NAMED, *counters} == set(names()) - FAMILIES


def all_programs(text: str) -> list[str]:
    return programs(text) + programs(text, SLOW) + programs(text, THERE)


def test_a_page_says_what_it_is_shows_it_and_how_to_avoid_it() -> None:
    for name in names():
        found = page(name)
        assert SECTIONS[found.kind] <= set(re.findall(r"^## (.+)$", found.text, re.M)), name
        assert found.text.partition("##")[0].strip(), name
        assert len(all_programs(found.text)) == (name not in FAMILIES), name


def test_the_numbers_of_a_program_are_their_closed_forms() -> None:
    for name in names():
        for code in all_programs(page(name).text):
            assert numbers(code), name
            assert [number for number, _ in numbers(code)] == [value(form) for _, form in numbers(code)], name
            tops = [line for line in code.splitlines() if re.match(r"(?!import|from|class|print|@)\w", line)]
            assert len(tops) <= STATEMENTS, f"the program of {name} shows too much"


def test_a_wrong_closed_form_is_seen() -> None:
    assert [(n, value(form)) for n, form in numbers("print(1)  # 7 = 2 * 3; 8 = 2 ** 3\n")] == [(7, 6), (8, 8)]


def test_the_order_of_causes_stands_in_their_index_alone(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str]
) -> None:
    """A new cause is a new page and a new row, and moves no page of another one."""
    before = {name: text for name, text in wanted.items() if name.startswith("causes/")}
    monkeypatch.setattr("reconcile.pages.ORDER", {cause: -place for cause, place in ORDER.items()})
    assert {name: text for name, text in texts().items() if name.startswith("causes/")} == before
    rows = re.findall(r"^\| \[([\w-]+)\]", before["causes/README.md"], re.MULTILINE)
    assert rows == [cause.value for cause in sorted(Cause, key=lambda cause: ORDER[cause])]


def test_the_rules_of_every_counter_are_on_its_familys_page() -> None:
    for counter in known_counters().values():
        rules = page(counter.family).rules
        assert rules
        assert [
            rule.source for rule in rules if not re.search(r":(\d+|[A-Z]\w+)", rule.source)
        ] == []  # a line, or a C++ function


def test_docs_are_what_make_docs_writes(wanted: dict[str, str]) -> None:
    stale = [name for name, text in wanted.items() if not (DOCS / name).is_file() or (DOCS / name).read_text() != text]
    gone = [str(p) for kind in TITLES for p in (DOCS / kind).glob("*.md") if f"{kind}/{p.name}" not in wanted]
    assert (stale, gone) == ([], []), "docs/ is stale: run `make docs` and commit what changed"


def test_explain_prints_the_page_with_its_program_as_it_is(stub: Stub) -> None:  # noqa: F811
    for name in names():
        done = stub.call("explain", name)
        assert done.exit_code == 0, name
        folded = " ".join(done.stdout.split())
        assert folded.startswith(f"{name} {page(name).meaning}")
        for code in programs(page(name).text):
            assert "\n".join(f"    {line}".rstrip() for line in code.splitlines()) in done.stdout, name
        assert "\x1b" not in done.stdout, name
        assert "](" not in done.stdout, name
        assert [rule.source for rule in page(name).rules if rule.source not in folded] == [], name


def test_every_formula_says_which_tests_hold_it(wanted: dict[str, str]) -> None:
    load_formulas()
    entries = [
        *registered_formulas().values(),
        *registered_formulas("complex").values(),
        *registered_formulas("sparse").values(),
    ]
    modules = {module_of(entry) for entry in entries if not entry.zero_reason}
    assert sorted(modules) == sorted(HELD)
    tests = {name for names, _ in HELD.values() for name in names.split(", ")}
    files = {name: re.sub(r"(\w+)$", r"test_\1.py", name) for name in sorted(tests)}
    assert [name for name, file in files.items() if not (DOCS.parent / "tests/work" / file).is_file()] == []
    assert [entry.op for entry in entries if f"`{entry.op}`" not in wanted["ops.md"]] == []
