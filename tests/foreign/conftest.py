"""A user's own environment: a virtual environment with the running interpreter's packages, except some."""

from __future__ import annotations

import sys
import sysconfig
import venv
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from reconcile.core import registry
from tests.own.conftest import Repository, repository, stand_in

__all__ = ["Repository", "repository", "stand_in"]

Make = Callable[..., Path]


@pytest.fixture
def environment(tmp_path: Path) -> Make:
    """``environment("venv", without=("fvcore",))``: its interpreter. This tool is in none of them."""

    def made(name: str = "venv", without: Collection[str] = ()) -> Path:
        return virtual(tmp_path / name, without)

    return made


def virtual(folder: Path, without: Collection[str] = ()) -> Path:
    """The interpreter of a virtual environment that is made here, with the running one's packages but for this tool."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    left_out = {"reconcile", "flop_reconcile", *without}
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if package.name.partition("-")[0].partition(".")[0] not in left_out and package.name != "__pycache__":
            (packages(folder) / package.name).symlink_to(package)
    return folder / "bin" / "python"


def packages(folder: Path) -> Path:
    """Where an environment's packages are."""
    (found,) = folder.glob("lib/python*/site-packages")
    return found


def everything(folder: Path) -> set[Path]:
    """Every file and folder below this one, links not followed."""
    return set(folder.rglob("*"))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """``registered(site)``: the packages in this folder are installed in this process, until the test ends."""
    held = (registry.products, registry.frameworks, registry.known_counters)
    sites: list[Path] = []

    def register(site: Path) -> None:
        sites.append(site)
        monkeypatch.syspath_prepend(site)
        for known in held:
            known.cache_clear()

    yield register
    for known in held:
        known.cache_clear()
    names = {path.stem for site in sites for path in site.iterdir()}
    for name in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[name]
