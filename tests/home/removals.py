"""``make removals``: each product, optional framework and optional counter is taken away from a copy; the rest has to be green.

The copy lacks the part's folder and its row in core/registry.py, and those of the parts that need it, which go with it. There run
every import of the home side, the rules of the two rings, the tests of the core's mathematics and records, ``reconcile --help``
and ``reconcile explain``. Once, without all parts, ``run --model gru_demo`` has to write the committed report, byte for byte.

``python -m tests.home.removals products.decode ...`` takes these away, each by itself. ``all`` stands for all at once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.home.modules import ROOT
from tests.home.rings import CALLBACKS, REMOVABLE, TABLE, with_dependents

COPIED = (
    "reconcile",
    "adapters",
    "model_zoo",
    "tests",
    "docs",
    "reports",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
)
TESTS = (
    "tests/home/test_imports.py::test_home_loads_no_framework_numpy_or_pandas",
    "tests/home/test_rings.py::test_the_core_imports_no_product_and_no_optional_part",
    "tests/core",
    "tests/align",
    "tests/engine",
)
MARKS = "not frameworks and not slow and not matrix and not browser and not heavy"
COMMANDS = (("--help",), ("run", "--help"), ("explain",), ("explain", "counters"), ("explain", "models"))
ALL = "all"


def remove_parts(tree: Path, names: Iterable[str]) -> None:
    """Delete the folders of these parts, and their rows, from a copy of the repository."""
    table = tree / (TABLE.replace(".", "/") + ".py")
    text = table.read_text()
    for name in names:
        package = REMOVABLE[name].removeprefix("reconcile.").replace(".", "/")
        folder = tree / package if package.startswith("adapters/") else tree / "reconcile" / package
        shutil.rmtree(folder)
        row = name.partition(".")[2]
        text, rows = re.subn(rf'(?m)^    "{row}"(: \(.*\))?,\n|(?<=, )"{row}"(, )?|(?<=\()"{row}", ', "", text, count=1)
        assert rows == 1, f"{TABLE} has no row for {name}"
        for module, owner in CALLBACKS.items():
            if owner == name:
                (tree / (module.replace(".", "/") + ".py")).unlink()
    table.unlink()  # the copy shares its files with the repository
    table.write_text(text)


def check(name: str) -> str:
    """What is wrong without this part, or without ``all``; '' if everything works."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for part in COPIED:
            _link(ROOT / part, tree / part)
        remove_parts(tree, REMOVABLE if name == ALL else with_dependents([name]))
        said = [_run(tree, "-m", "reconcile", *words) for words in COMMANDS]
        said.append(_run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKS, *TESTS))
        if name == ALL:
            said.append(_run(tree, "-m", "reconcile", "run", "--model", "gru_demo", "--out", "reports"))
            said += [
                f"{file} is another\n"
                for file in ("gru_demo.md", "gru_demo.csv")
                if not said[-1] and (tree / "reports" / file).read_bytes() != (ROOT / "reports" / file).read_bytes()
            ]
    return "".join(said)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        os.link(source, target)
    else:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, symlinks=True, ignore=unwanted, copy_function=os.link)


def _run(tree: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "few"}
    done = subprocess.run([sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}\n"


def main(names: list[str]) -> int:
    """Check these parts, or every one and all at once. Returns 1 if something is wrong."""
    failed = 0
    with ThreadPoolExecutor(int(os.environ.get("JOBS", 2))) as pool:
        wanted = names or [*REMOVABLE, ALL]
        for name, wrong in zip(wanted, pool.map(check, wanted), strict=True):
            print(f"without {name}: {'FAILED' if wrong else 'green'}\n{wrong}", end="", flush=True)
            failed += bool(wrong)
    print(f"{len(wanted) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
