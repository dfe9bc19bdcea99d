"""Frameworks, counters and models are named in their own folders alone: all other code asks the registry."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable

import pytest

from reconcile.core import registry, user_files
from tests.home.modules import ADAPTERS, ENGINE, LINKS, ROOT, ZOO, parsed, part, words


def test_the_engine_knows_no_counter_by_name() -> None:
    counters = {path.parent.name for path in (ROOT / "adapters" / "counters").glob("*/rules.py")}
    assert {"thop", "fvcore", "tf_profiler", "flop_counter"} <= counters
    counters |= {name.replace("_", ".") for name in counters} | {"FlopCounterMode"}
    assert [(m, name) for m in ENGINE for name in sorted(counters) if name in words(m).replace("--formulas", "")] == []


def test_engine_and_adapters_know_no_model_by_name() -> None:
    """But for formulas: the sources of some choose by the class or the type of a configuration, and so do their rules."""
    models = {m.rpartition(".")[2] for m in ZOO if ".bricks" not in m}  # a file each; bricks are what some are made of
    assert "gru_demo" in models
    read = [m for m in ENGINE + ADAPTERS if not m.startswith("reconcile.adapters.counters.formulas.")]
    assert [(m, name) for m in read for name in sorted(models) if name in words(m)] == []


NAMING = {"core.registry", "work", "core.records", "products.files.kinds", "products.files.worker"}
"""Modules that hold such a name: the registry its folders; prefixes of ops; kinds of files; frameworks whose layers' paths follow
by position; and, until a counter states it, which of tf.profiler's runs a model that comes from a file."""
RECORD = re.compile(rf"reconcile\.products\.\w+(\.({'|'.join(registry.BUILT_IN)})\.\w+)?")
"""A product's record names the frameworks to whose records it adds something, and the libraries that it adds; its folder of a
framework's name is that framework's."""


def named(modules: Iterable[str]) -> list[tuple[str, int, str]]:
    """Strings in the code of reconcile/ that are the name of a framework or of a counter: module, line, name."""
    names = {*registry.frameworks(), *registry.known_counters()}
    return [
        (m, node.lineno, node.value)
        for m in modules
        if part(m) not in ("adapters", "model_zoo")
        and m.removeprefix("reconcile.") not in NAMING
        and not RECORD.fullmatch(m)
        for node in ast.walk(parsed(m))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]


def test_no_framework_and_no_counter_is_named_outside_its_folder() -> None:
    assert named(LINKS) == []


def test_a_name_in_the_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "NAMING", set())
    assert ("reconcile.products.files.worker", "tf.profiler@runmeta") in {(m, name) for m, _, name in named(LINKS)}


PACKAGES = {each.package for each in (*registry.frameworks().values(), *registry.known_counters().values())} - {""}
FOLDERS = {*registry.BUILT_IN, *(f"counters.{folder}" for folder in registry.COUNTER_FOLDERS)}
HIDDEN = re.compile(
    rf"\badapters\.(?:{'|'.join(map(re.escape, sorted(FOLDERS)))})\b"
    rf"|(?:^|[;\n])\s*(?:import|from)\s+(?:{'|'.join(map(re.escape, sorted(PACKAGES)))})\b"
)
"""What a program in a string imports: the adapter of a framework or of a counter, or the package of one."""


def test_no_program_in_a_string_imports_what_a_folder_hides() -> None:
    """The test of imports does not see into strings."""
    found = [
        (m, node.lineno, node.value)
        for m in LINKS
        if part(m) not in ("adapters", "model_zoo")
        for node in ast.walk(parsed(m))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and HIDDEN.search(node.value)
    ]
    assert found == []


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nimport torch",
        "from reconcile.adapters.pytorch.steps import x",
        "x=1; from thop import profile",
    ],
)
def test_such_a_program_is_found(program: str) -> None:
    assert HIDDEN.search(program)


ENVIRONMENTS = set(
    user_files.toml(ROOT / "reconcile" / "launch" / "environments" / "environments.toml", "the environment file")
)
DECLARING = "launch.environments"
"""The module that declares the name of the running interpreter's environment."""


def places(modules: Iterable[str]) -> list[tuple[str, int, str]]:
    """Strings in the code of reconcile/ that are the name of an environment: module, line, name."""
    return [
        (m, node.lineno, node.value)
        for m in modules
        if part(m) not in ("adapters", "model_zoo")
        and m.removeprefix("reconcile.") != DECLARING
        and not RECORD.fullmatch(m)
        for node in ast.walk(parsed(m))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ENVIRONMENTS
    ]


def test_no_environment_is_named_outside_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"current", "tf-1.12"} <= ENVIRONMENTS
    assert places(LINKS) == []
    monkeypatch.setattr(sys.modules[__name__], "DECLARING", "")
    assert [name for _, _, name in places(LINKS)] == ["current"]
