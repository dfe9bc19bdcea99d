"""Frameworks, counters and models are named in their own folders alone: all other code asks the registry."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable

import pytest

from reconcile.core import registry, user_files
from tests.home.modules import ADAPTERS, ENGINE, MODULES, ROOT, ZOO, facts, links, part

pytestmark = [pytest.mark.text, pytest.mark.usefixtures("facts")]


def find_words(modules: Iterable[str], words: Iterable[str]) -> list[tuple[str, str]]:
    """The modules whose code or docstrings, comments apart, have one of these words in them."""
    wanted = re.compile("|".join(map(re.escape, sorted(words))))
    return [(m, found[0]) for m in modules if wanted.search(read(m)) and (found := wanted.search(say(m)))]


def read(module: str) -> str:
    """The module's text."""
    return MODULES[module].read_text()


@functools.cache
def say(module: str) -> str:
    """What the module's code says: its text without comments, and without the name of an option."""
    return ast.unparse(ast.parse(read(module))).replace("--formulas", "")


def test_the_engine_knows_no_counter_by_name() -> None:
    counters = {path.parent.name for path in (ROOT / "adapters" / "counters").glob("*/rules.py")}
    assert {"thop", "fvcore", "tf_profiler", "flop_counter"} <= counters
    counters |= {name.replace("_", ".") for name in counters} | {"FlopCounterMode"}
    assert find_words(ENGINE, counters) == []


def test_engine_and_adapters_know_no_model_by_name() -> None:
    """But for formulas: the sources of some choose by the class or the type of a configuration, and so do their rules."""
    models = {m.rpartition(".")[2] for m in ZOO if ".bricks" not in m}  # a file each; bricks are what some are made of
    assert "gru_demo" in models
    modules = [m for m in ENGINE + ADAPTERS if not m.startswith("reconcile.adapters.counters.formulas.")]
    assert find_words(modules, models) == []


NAMING = {"core.registry", "work", "core.records", "products.files.kinds", "products.files.worker"}
"""Modules that hold such a name: the registry its folders; prefixes of ops; kinds of files; frameworks whose layers' paths follow
by position; and, until a counter states it, which of tf.profiler's runs a model that comes from a file."""
RECORD = re.compile(rf"reconcile\.products\.\w+(\.({'|'.join(registry.BUILT_IN)})\.\w+)?")
"""A product's record names the frameworks to whose records it adds something, and the libraries that it adds; its folder of a
framework's name is that framework's."""


def find_strings(modules: Iterable[str], is_wrong: Callable[[str], object]) -> list[tuple[str, int, str]]:
    """Strings in the code of reconcile/, adapters and models apart, that are wrong: module, line, text."""
    return [
        (m, line, text)
        for m in modules
        if part(m) not in ("adapters", "model_zoo") and not RECORD.fullmatch(m)
        for line, text in (*facts(m).strings, *facts(m).docstrings)
        if is_wrong(text)
    ]


def named(modules: Iterable[str]) -> list[tuple[str, int, str]]:
    """Strings that are the name of a framework or of a counter."""
    return find_strings(modules, {*registry.frameworks(), *registry.known_counters()}.__contains__)


def test_no_framework_and_no_counter_is_named_outside_its_folder() -> None:
    holding = {f"reconcile.{name}" for name in NAMING}
    assert named(links().keys() - holding) == []
    assert ("reconcile.products.files.worker", "tf.profiler@runmeta") in {(m, name) for m, _, name in named(holding)}


PACKAGES = {each.package for each in (*registry.frameworks().values(), *registry.known_counters().values())} - {""}
FOLDERS = {*registry.BUILT_IN, *(f"counters.{folder}" for folder in registry.COUNTER_FOLDERS)}
HIDDEN = re.compile(
    rf"\badapters\.(?:{'|'.join(map(re.escape, sorted(FOLDERS)))})\b"
    rf"|(?:^|[;\n])\s*(?:import|from)\s+(?:{'|'.join(map(re.escape, sorted(PACKAGES)))})\b"
)
"""What a program in a string imports: the adapter of a framework or of a counter, or the package of one."""


def test_no_program_in_a_string_imports_what_a_folder_hides() -> None:
    """The test of imports does not see into strings."""
    modules = (m for m in links() if not RECORD.fullmatch(m))
    assert find_strings(modules, HIDDEN.search) == []


@pytest.mark.parametrize(
    "program",
    ["import sys\nimport torch", "from reconcile.adapters.pytorch.tracing import x", "x=1; from thop import profile"],
)
def test_such_a_program_is_found(program: str) -> None:
    assert HIDDEN.search(program)


ENVIRONMENTS = set(
    user_files.read_toml(ROOT / "reconcile" / "launch" / "environments" / "environments.toml", "the environment file")
)
DECLARING = "reconcile.launch.environments"
"""The module that declares the name of the running interpreter's environment."""


def test_no_environment_is_named_outside_its_folder() -> None:
    assert {"current", "tf-1.12"} <= ENVIRONMENTS
    assert find_strings(links().keys() - {DECLARING}, ENVIRONMENTS.__contains__) == []
    assert [name for _, _, name in find_strings([DECLARING], ENVIRONMENTS.__contains__)] == ["current"]
