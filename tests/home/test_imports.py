"""Home imports no framework, and imports run one way.

The probe runs in a subprocess whose path starts with empty stand-ins for every heavy module, so that it sees an
import attempt whether or not the real one is installed; `test_the_probe_can_fail` shows that it does.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FRAMEWORKS = ("tensorflow", "keras", "torch", "thop", "fvcore")
HEAVY = (*FRAMEWORKS, "numpy", "pandas", "matplotlib")
HELP = "import runpy, sys; sys.argv = ['reconcile', '--help']; runpy.run_module('reconcile', run_name='__main__')"


def source_files() -> dict[str, Path]:
    """Every module of the package by its dotted name, links followed."""
    found = {}
    for folder, folders, files in os.walk(ROOT / "reconcile", followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for file in sorted(files):
            if file.endswith(".py"):
                path = Path(folder, file)
                parts = path.relative_to(ROOT).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = source_files()


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The modules of this package that `module` imports, anywhere in it."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            found.add(".".join(base))
            found |= {".".join([*base, alias.name]) for alias in node.names}
    return frozenset(name for name in found if name in MODULES and name != "reconcile")


def travelling() -> set[str]:
    """What runs beside a framework: captures, tracers and the zoo, with everything that they import."""
    pending = [m for m in MODULES if re.match(r"reconcile\.(adapters\.(.*\.capture|trace_)|model_zoo\.)", m)]
    found: set[str] = set()
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending += imports(module)
    return found


TRAVELLING = travelling()
HOME = [
    m
    for m in MODULES
    if m not in TRAVELLING and m not in ("reconcile.__main__", "reconcile.worker.capture", "reconcile.worker.main")
]


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory):
    """A function: run code in a fresh interpreter, give back (exit status, the heavy modules that it loaded)."""
    stand_ins = tmp_path_factory.mktemp("stand-ins")
    for name in HEAVY:
        (stand_ins / f"{name}.py").touch()

    def run(code: str) -> tuple[int, list[str]]:
        wrapped = (
            "import atexit, json, sys\n"
            f"atexit.register(lambda: print('\\nLOADED', json.dumps(sorted(set({HEAVY!r}) & set(sys.modules)))))\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(stand_ins), str(ROOT)])}
        done = subprocess.run(
            [sys.executable, "-c", wrapped + code], cwd=stand_ins, env=environment, capture_output=True, text=True
        )
        marked = [line for line in done.stdout.splitlines() if line.startswith("LOADED ")]
        assert marked, done.stderr
        if done.returncode:
            print(done.stderr, file=sys.stderr)
        return done.returncode, json.loads(marked[-1].removeprefix("LOADED "))

    return run


def test_help_loads_no_framework_numpy_or_pandas(probe) -> None:
    assert probe(HELP) == (0, [])


def test_home_loads_no_framework_numpy_or_pandas(probe) -> None:
    assert {
        "reconcile",
        "reconcile.cli",
        "reconcile.engine.reconcile",
        "reconcile.work",
        "reconcile.adapters.counters.thop.rules",
    } <= set(HOME)
    assert probe("import " + ", ".join(HOME)) == (0, [])


@pytest.mark.parametrize("module", HEAVY)
def test_the_probe_can_fail(probe, module: str) -> None:
    assert probe(f"import {module}\n{HELP}") == (0, [module])
    assert probe(f"try:\n    import {module}.missing\nexcept ImportError: pass\nimport reconcile.core.records") == (
        0,
        [module],
    )


def part(module: str) -> str:
    """The part of the house a module belongs to: `records`, `adapters`, `cli` ..."""
    return module.split(".")[1]


WORDS = {"records", "errors", "user_files", "table", "text", "toml", "causes", "conventions", "work"}
FACES = {"report", "cli", "api", "notebook", "pytest_plugin"}
RUNNING = {"runner", "worker", "taking", "process"}
ENGINE = [m for m in MODULES if re.match(r"reconcile\.(align|booking|bridging|engine|traces)\b", m)]
ADAPTERS = [m for m in MODULES if m.startswith("reconcile.adapters")]
ZOO = [m for m in MODULES if m.startswith("reconcile.model_zoo.") and m != "reconcile.model_zoo.pair"]


def wrong(modules: list[str], forbidden: set[str]) -> list[str]:
    return sorted(f"{m} imports {i}" for m in modules for i in imports(m) if part(i) in forbidden)


def test_records_import_nothing() -> None:
    assert imports("reconcile.core.records") == set()


def test_the_words_know_only_each_other() -> None:
    modules = [m for m in MODULES if m != "reconcile" and part(m) in WORDS]
    assert sorted(f"{m} imports {i}" for m in modules for i in imports(m) if part(i) not in WORDS) == []


def test_what_travels_takes_only_records_along() -> None:
    assert {"reconcile.adapters.tensorflow.trace", "reconcile.adapters.counters.thop.capture"} <= TRAVELLING
    assert sorted(m for m in TRAVELLING if part(m) not in {"records", "adapters", "model_zoo"}) == []
    assert sorted(m for m in TRAVELLING if m.endswith((".rules", ".bridge"))) == []


def test_adapters_import_no_zoo_engine_or_face() -> None:
    assert wrong(ADAPTERS, {"model_zoo", "engine", "align", "results"} | FACES | RUNNING) == []


def test_the_zoo_imports_no_adapter() -> None:
    assert wrong(ZOO, {"adapters", "engine", "align", "results", "work"} | FACES | RUNNING) == []


def test_the_engine_imports_no_zoo_counter_or_face() -> None:
    assert ENGINE
    assert wrong(ENGINE, {"model_zoo"} | FACES | RUNNING) == []
    shared = {"reconcile.adapters.counters.bridge", "reconcile.adapters.counters.rulebook"}
    taken = [(m, i) for m in ENGINE for i in imports(m) if i.startswith("reconcile.adapters.")]
    assert [(m, i) for m, i in taken if i not in shared] == []


def test_only_the_entry_points_import_the_cli() -> None:
    importers = {m for m in MODULES if m != "reconcile" and any(part(i) == "cli" for i in imports(m))}
    assert {m for m in importers if part(m) != "cli"} <= {"reconcile.__main__"}


def test_reports_reach_no_counter_pair_or_process() -> None:
    modules = [m for m in MODULES if m.startswith("reconcile.report")]
    assert modules
    assert wrong(modules, {"adapters", "model_zoo", "cli"} | RUNNING) == []


def words(module: str) -> str:
    """The module's text without comments: what the code says, docstrings included."""
    return ast.unparse(ast.parse(MODULES[module].read_text()))


def test_the_engine_knows_no_counter_by_name() -> None:
    counters = {path.parent.name for path in (ROOT / "adapters").glob("*/rules.py")}
    assert {"thop", "fvcore", "tf_profiler", "flop_counter"} <= counters
    counters |= {name.replace("_", ".") for name in counters} | {"FlopCounterMode"}
    assert [(m, name) for m in ENGINE for name in sorted(counters) if name in words(m)] == []


def test_engine_and_adapters_know_no_model_by_name() -> None:
    models = {m.rpartition(".")[2] for m in ZOO if ".bricks" not in m}  # a file each; bricks are what some are made of
    assert "gru_demo" in models
    assert [(m, name) for m in ENGINE + ADAPTERS for name in sorted(models) if name in words(m)] == []
