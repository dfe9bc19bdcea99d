"""What lands on a machine: `reconcile`, whole, and nothing generic, from a wheel, an sdist or an editable install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.programs import ROOT, build, copy_tree


def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def shipped_files() -> set[str]:
    """Every file under reconcile/, links followed, as the path it should have in a wheel."""
    found = set()
    for folder, folders, files in os.walk(ROOT / "reconcile", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found |= {(Path(folder) / name).relative_to(ROOT).as_posix() for name in files if not name.endswith(".pyc")}
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_tree(tmp_path_factory)


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree, tmp_path_factory.mktemp("wheel") / "out", "wheel")


def test_only_reconcile_lands_in_site_packages(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names(wheel)}
    assert {re.sub(r"-[\d.]+\.dist-info$", ".dist-info", top) for top in tops} == {
        "reconcile",
        "flop_reconcile.dist-info",
    }


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Modules, linked folders, templates, schemas: a file that package-data forgets would only fail for users."""
    shipped = shipped_files()
    assert {"reconcile/core/records.py", "reconcile/adapters/__init__.py", "reconcile/model_zoo/__init__.py"} <= shipped
    assert {name for name in names(wheel) if name.startswith("reconcile/")} == shipped


@pytest.mark.slow
def test_a_wheel_from_the_sdist_is_the_same(tree: Path, wheel: Path, tmp_path: Path) -> None:
    sdist = build(tree, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build(source, tmp_path / "wheel", "wheel")
    assert names(again) == names(wheel)
    assert [zipfile.ZipFile(w).read("reconcile/core/records.py") for w in (again, wheel)] == [
        (ROOT / "reconcile/core/records.py").read_bytes()
    ] * 2


def run_unpacked(wheel: Path, folder: Path, code: str, *flags: str) -> list[str]:
    """The lines that the code prints beside the unpacked wheel, where nothing of the checkout is near."""
    zipfile.ZipFile(wheel).extractall(folder / "site")
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    command = [sys.executable, *flags, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_wheel_runs_from_anywhere(wheel: Path, tmp_path: Path) -> None:
    code = (
        "import sys, runpy, reconcile, reconcile.adapters.counters.thop, reconcile.model_zoo\n"
        "print(reconcile.__file__, reconcile.adapters.counters.thop.__file__, reconcile.model_zoo.__file__)\n"
        "sys.argv = ['reconcile', '--help']\n"
        "runpy.run_module('reconcile', run_name='__main__')\n"
    )
    first, *rest = run_unpacked(wheel, tmp_path, code, "-W", "error")
    assert first.count(str(tmp_path / "site")) == 3
    assert [line for line in rest if "Usage" in line], rest


@pytest.mark.slow
def test_the_wheel_explains_a_number_of_an_old_environment(wheel: Path, tmp_path: Path) -> None:
    """README's own example, which only the saved baselines have."""
    code = (
        "import sys, runpy\n"
        "sys.argv = ['reconcile', 'decode', '--no-run', '--model', 'resnet50', '51112224']\n"
        "runpy.run_module('reconcile', run_name='__main__')\n"
    )
    assert "tf.profiler@batch_none, as reported" in "\n".join(run_unpacked(wheel, tmp_path, code))


def test_an_editable_install_exposes_reconcile_alone(tree: Path, tmp_path: Path) -> None:
    """The editable wheel maps `reconcile`; it does not put the repository on sys.path, `tests` and all."""
    editable = build(tree, tmp_path / "wheel", "editable")
    zipfile.ZipFile(editable).extractall(tmp_path / "site")
    code = (
        "import site, sys; from importlib.util import find_spec\n"
        f"site.addsitedir({str(tmp_path / 'site')!r})\n"
        "import reconcile.adapters.counters.thop, reconcile.model_zoo\n"
        "assert [n for n in ('adapters', 'model_zoo', 'tests', 'benchmarks', 'docs', 'tools') if find_spec(n)] == []\n"
        "print(reconcile.adapters.counters.thop.__file__)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tree))


def test_metadata(wheel: Path) -> None:
    (info,) = {name.split("/")[0] for name in names(wheel) if ".dist-info/" in name}
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(f"{info}/METADATA").decode()
    light = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert {re.split(r"[ <>=;]", line.split(": ")[1])[0] for line in light} == {
        "click",
        "jinja2",
        "jsonschema",
        "landlock",
        "packaging",
        "pyseccomp",
        "rich",
        "tomli",
    }
    assert "Requires-Python: >=3.10" in metadata.splitlines()
    entry_points = archive.read(f"{info}/entry_points.txt").decode()
    assert "reconcile = reconcile.cli:main" in entry_points
    assert "reconcile = reconcile.pytest_plugin" in entry_points


@pytest.mark.parametrize("name", ["requirements.lock", "release.lock"])
def test_what_is_installed_is_pinned_as_there_and_has_hashes(name: str) -> None:
    pins = [line for line in (ROOT / "constraints.lock").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9.-]+==[\w.]+( ; .+)?", line)] == []
    text = re.sub(r"^#.*\n", "", (ROOT / name).read_text(), flags=re.MULTILINE)
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) > 50
    assert [
        each for each in entries if not re.fullmatch(r"\S+==[^\\]+( \\\n    --hash=sha256:[0-9a-f]{64})+", each)
    ] == []
    versions = {line.split(" ;")[0] for line in pins}
    assert [each for each in entries if each.split()[0] not in versions] == []


def test_the_types_name_what_the_package_exports() -> None:
    import ast

    import reconcile
    from reconcile.core.registry import products

    stub = ast.parse((ROOT / "reconcile" / "__init__.pyi").read_text())
    named = {
        alias.asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    added = {
        name: f"products.{product.name}{place.partition(':')[0]}"
        for product in products().values()
        for name, place in product.functions
    }
    assert named == {**reconcile._HOMES, **added}
    assert [name for name in named if getattr(reconcile, name).__name__ != name] == []
