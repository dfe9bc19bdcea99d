"""Home imports no framework, and imports run one way.

The probe runs in a subprocess whose path starts with empty stand-ins for every heavy module, so that it sees an
import attempt whether or not the real one is installed; `test_the_probe_can_fail` shows that it does.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys

import pytest

from tests.home.modules import ENGINE, MODULES, ROOT, ZOO, imports, links, part
from tests.home.rings import needs, owner

pytestmark = pytest.mark.usefixtures("facts")

FRAMEWORKS = ("tensorflow", "keras", "torch", "jax", "flax", "thop", "fvcore")
HEAVY = (*FRAMEWORKS, "numpy", "pandas", "matplotlib")
HELP = "import runpy, sys; sys.argv = ['reconcile', '--help']; runpy.run_module('reconcile', run_name='__main__')"


OF_PRODUCTS = (
    r"products\.(sweep\.(lists|small_models)|(kernels|ranks)\.pytorch|torchvision\.pytorch|steps\.(pytorch|tensorflow))"
)
"""The folders of products whose modules run beside a framework."""


@functools.cache
def travelling() -> set[str]:
    """What runs beside a framework: captures, tracers and the zoo, with everything that they import."""
    own = r"adapters\.\w+\.(trace|training|module_copy|step|devices\.\w+)"
    beside = rf"reconcile\.(adapters\.counters\..*\.(capture|nested)|{own}|{OF_PRODUCTS}\.\w+|model_zoo\.)"
    pending = [m for m in MODULES if re.match(beside, m)]
    found: set[str] = set()
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending += imports(module)
    return found


CALLBACKS = ("transformers", "lightning", "keras")
"""Modules named after the library whose callback they have, which a program imports beside it; nothing of ours does."""
NOT_HOME = {"reconcile.__main__", "reconcile.worker.main", *(f"reconcile.{name}" for name in CALLBACKS)}
UNUSED = re.compile(r"reconcile\.adapters\.counters\.(formulas\.configured|dispatched|module_calls)")
"""Modules beside a framework, which no capture imports where the optional counters have been taken away."""


@functools.cache
def find_home() -> list[str]:
    """The modules of the home side."""
    return [m for m in MODULES if m not in travelling() and m not in NOT_HOME and not UNUSED.match(m)]


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
    } <= set(find_home())
    assert probe("import " + ", ".join(find_home())) == (0, [])


def test_the_probe_can_fail(probe) -> None:
    tries = "".join(f"try:\n    import {name}.missing\nexcept ImportError: pass\n" for name in HEAVY)
    assert probe(f"{tries}{HELP}") == (0, sorted(HEAVY))


FLOORS = (
    "core",
    "work",
    "model_zoo",
    "adapters",
    "worker",
    "align",
    "engine",
    "launch",
    "report",
    "drift",
    "matrix",
    "workflow",
    "pages",
    "api",
    "cli",
    "products",
    *CALLBACKS,
    "pytest_plugin",
    "__main__",
)
"""The parts of the house from the ground up: a module imports from its own part and from those below, and one of an optional
framework from the products that this needs, too."""
ROOT_HOLDS = {"__init__", "__main__", "pytest_plugin", "workflow", *CALLBACKS}


def upward(linked: dict[str, frozenset[str]]) -> list[str]:
    """The imports that do not go down, out of {module: modules that it imports}."""
    floor, allowed = {name: number for number, name in enumerate(FLOORS)}, needs()
    return sorted(
        f"{m} imports {i}"
        for m, found in linked.items()
        for i in found
        if part(m) != part(i) and floor[part(m)] < floor[part(i)] and owner(i) not in allowed.get(owner(m), ())
    )


def circles(linked: dict[str, frozenset[str]]) -> list[list[str]]:
    """Modules that import each other, directly or through others: what is left when those that import nothing left are gone."""
    left = {m: set(found) - {m} for m, found in linked.items()}
    while free := {m for m, found in left.items() if not found & left.keys()}:
        left = {m: found for m, found in left.items() if m not in free}
    return [sorted(left)] if left else []


def test_the_root_holds_few_files() -> None:
    assert {path.stem for path in (ROOT / "reconcile").glob("*.py")} == ROOT_HOLDS
    assert {path.name for path in (ROOT / "adapters").glob("*.py")} == {"__init__.py"}
    assert {part(m) for m in links()} == set(FLOORS)


def test_nothing_of_ours_imports_a_callback() -> None:
    callbacks = {f"reconcile.{name}" for name in CALLBACKS}
    assert callbacks <= set(links())
    assert [(m, i) for m, found in links().items() for i in sorted(found & callbacks)] == []


def test_every_import_goes_down() -> None:
    assert upward(links()) == []


def test_no_two_files_import_each_other() -> None:
    assert circles(links()) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("reconcile.engine.booking", "reconcile.report.view"),
        ("reconcile.core.records", "reconcile.work"),
        ("reconcile.drift.compare", "reconcile.cli.screen"),
    ],
)
def test_one_planted_import_up_is_found(module: str, imported: str) -> None:
    planted = {**links(), module: links()[module] | {imported}}
    assert upward(planted) == [f"{module} imports {imported}"]


def test_a_planted_circle_is_found() -> None:
    planted = {**links(), "reconcile.core.records": frozenset({"reconcile.core.results"})}
    (found,) = circles(planted)
    assert {"reconcile.core.records", "reconcile.core.results"} <= set(found)


def test_records_import_nothing() -> None:
    assert imports("reconcile.core.records") == set()


def test_what_travels_takes_only_records_along() -> None:
    assert {"reconcile.adapters.tensorflow.trace", "reconcile.adapters.counters.thop.capture"} <= travelling()
    core = {f"reconcile.core{name}" for name in ("", ".counter", ".framework", ".message", ".protocol", ".records")}
    products = re.compile(rf"reconcile\.({OF_PRODUCTS}|products\.files\.model_file)\b")
    allowed = {m for m in travelling() if part(m) in {"adapters", "model_zoo"} or m in core or products.match(m)}
    assert sorted(travelling() - allowed) == []
    assert sorted(m for m in travelling() if m.endswith((".rules", ".bridge"))) == []


def test_the_zoo_imports_no_adapter() -> None:
    assert sorted(f"{m} imports {i}" for m in ZOO for i in imports(m) if part(i) != "model_zoo") == []


def test_the_engine_imports_no_counter() -> None:
    shared = {f"reconcile.adapters{name}" for name in ("", ".counters", ".counters.bridge", ".counters.rulebook")}
    taken = [(m, i) for m in ENGINE for i in imports(m) if part(i) == "adapters"]
    assert taken
    assert [(m, i) for m, i in taken if i not in shared] == []


COMPUTING = tuple(
    name
    for name in ("formula", "decode", "authors", "gallery", "scorecard", "upgrade")
    if f"reconcile.products.{name}" in MODULES
)
SHOWING = {"report", "training_report", "page", "terminal", "picture", "github", "ci_formats", "api"}
"""Files of a product's room that show what its other files compute."""
COMMAND = re.compile(r"(commands?|printed|executors|model_notes)$")
"""Files of a product that belong to its command."""


@pytest.mark.parametrize("name", ["engine", "drift", "matrix", *(f"products.{folder}" for folder in COMPUTING)])
def test_what_computes_knows_no_report(name: str) -> None:
    modules = [m for m in MODULES if f"{m}.".startswith(f"reconcile.{name}.") and m.rpartition(".")[2] not in SHOWING]
    assert modules
    modules = [m for m in modules if not COMMAND.search(m)]
    shown = {m for m in MODULES if part(f"{m}.") in {"report", "cli"} or m.rpartition(".")[2] in SHOWING}
    assert [(m, i) for m in modules for i in imports(m) if i in shown] == []


def test_reports_reach_no_counter_and_no_worker() -> None:
    modules = [m for m in MODULES if m.startswith("reconcile.report")]
    assert modules
    assert [(m, i) for m in modules for i in imports(m) if part(i) in {"adapters", "model_zoo", "worker"}] == []
