"""The house in numbers: where tests stand, and how many names are defined three times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest

from tests.home.measure import (
    OURS,
    is_participle,
    is_sentence,
    lonely_files,
    participles,
    sentences,
    undescribed_records,
)
from tests.home.modules import MODULES, ROOT, WIDE, Facts, facts, facts_of

pytestmark = [pytest.mark.text, pytest.mark.usefixtures("facts")]


PROTOCOL = {"capture", "bridge", "to_markdown"}
"""Functions that the modules of several folders have because something calls them by that name."""
MANY = 3
OFTEN = 90
"""The public functions and classes that are defined ``MANY`` times or more, the protocol's apart. It may only fall: the aim is
none."""
PARTICIPLES = 86
"""Functions that a bare participle may name, verbs among them whose forms are equal: ``run``, ``put``, ``read``."""
LONELY = 15
"""Files under 60 lines that one other imports."""
PATHS = [PurePosixPath(MODULES[module].relative_to(ROOT / "reconcile")) for module in OURS]
TESTS = [PurePosixPath(path.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")]


def misplaced(tests: Iterable[PurePosixPath], paths: Iterable[PurePosixPath]) -> list[str]:
    """The tests named after one module of the part of the house that they are for, in another folder than that module."""
    found = []
    known = list(paths)
    for test in tests:
        name = test.stem.removeprefix("test_")
        depth = {"adapters": 3 if test.parts[1] == "counters" else 2, "products": 2}.get(test.parts[0], 1)
        homes = {path.parent for path in known if path.stem == name and path.parts[:depth] == test.parts[:depth]}
        if len(homes) == 1 and test.parent not in homes:
            found.append(f"tests/{test} tests {min(homes)}/{name}.py")
    return sorted(found)


def test_tests_stand_beside_what_they_test_by_name() -> None:
    assert len(TESTS) > 200
    assert misplaced(TESTS, PATHS) == []


def test_a_test_in_another_folder_is_found() -> None:
    assert misplaced([PurePosixPath("launch/test_reaper.py")], [PurePosixPath("launch/workers/reaper.py")]) == [
        "tests/launch/test_reaper.py tests launch/workers/reaper.py"
    ]


def often(modules: Iterable[Facts]) -> list[str]:
    """The public top-level functions and classes that several of these modules define."""
    defined = Counter(name for each in modules for name in each.public)
    return sorted(name for name, times in defined.items() if times >= MANY)


def test_few_names_are_defined_three_times() -> None:
    ours = [facts(module) for module in OURS]
    found = often(ours)
    assert set(found) >= PROTOCOL
    assert len(set(found) - PROTOCOL) <= OFTEN, "\n".join(found)
    assert often([*ours, *[facts_of("def planted(): ...\n")] * MANY]) == sorted([*found, "planted"])


def test_few_functions_are_named_by_a_bare_participle() -> None:
    found = [f"{module}.{name}" for module, names in participles().items() for name in names]
    assert len(found) <= PARTICIPLES, "\n".join(found)
    assert [
        name for name in ("told", "_asked", "counting", "count_ops", "tell", "asked_ranks") if is_participle(name)
    ] == ["told", "_asked", "counting"]


def test_few_small_files_serve_a_single_other() -> None:
    assert len(lonely_files()) <= LONELY, "\n".join(lonely_files())


def test_a_constant_that_holds_a_sentence_says_what_it_says() -> None:
    assert sentences() == []


def test_every_field_of_a_wide_record_has_its_line() -> None:
    assert undescribed_records() == []


def test_a_sentence_under_one_word_is_found() -> None:
    source = """
NOTHING = "nothing of it ran in this step of the program"
AGAIN: str = f"make it again by {NAME} with the option --update"
NO_OP_RAN = "nothing of it ran in this step of the program"
PROGRAM = "import a\\nwith a.b() as the, it:\\n    that = which(the, of=it)"
FORMULA = "2 B Hq Sq Sk (Dq + Dv)"
NAMES = "abs add all any is_nan rsub where"
"""
    assert [name for name, text in facts_of(source).constants if is_sentence(text)] == ["NOTHING", "AGAIN"]


def test_a_field_without_a_line_is_found() -> None:
    names = [f"f{number}" for number in range(WIDE)]
    lines = "".join(f"        {name}: The number {name}.\n" for name in names)
    fields = "".join(f"    {name}: int\n" for name in names)
    record = 'class Record:\n    """A record.\n\n    Attributes:\n{}    """\n\n{}'
    described = record.format(lines, fields)
    named = record.format(lines.replace("        f3: The", "        f2 and f3, the"), fields)
    below = named.replace("    f3: int\n", '    f3: int\n    """The number f3."""\n')
    narrow = record.format("", fields.replace("    f3: int\n", ""))
    assert [facts_of(text).silent for text in (described, below, narrow)] == [(), (), ()]
    assert facts_of(named).silent == ("Record: f3",)
