"""Counters that somebody's environment lacks, lent by this one: links to packages that are Python alone.

What a counter needs of compiled packages (PyTorch, numpy) it finds there. Nothing is copied and nothing installed: the links
go with the run's own folder.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..adapters import COUNTERS


def lend(folder: Path, python: str) -> Path:
    """Make ``folder`` hold the counters' packages of this environment that a Python of that version (``3.11``) can run."""
    folder.mkdir()
    for name in dict.fromkeys(counter.distribution for counter in COUNTERS.values() if counter.distribution):
        found: dict[str, Distribution] = {}
        _gather(name, found)
        if all(_runs_on(python, dist) for dist in found.values()):
            for dist in found.values():
                _link(dist, folder)
    return folder


def _gather(name: str, found: dict[str, Distribution]) -> None:
    """That distribution and those it requires, as far as they are here and Python alone."""
    key = canonicalize_name(name)
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return
    if key in found or "Root-Is-Purelib: true" not in (dist.read_text("WHEEL") or ""):
        return
    found[key] = dist
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _gather(requirement.name, found)


def _runs_on(python: str, dist: Distribution) -> bool:
    needs = dist.metadata.get_all("Requires-Python", [])
    return SpecifierSet(",".join(needs)).contains(f"{python}.99")


def _link(dist: Distribution, folder: Path) -> None:
    """Everything that the distribution has at the top of an import path: its packages, modules and metadata."""
    for top in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(Path(str(dist.locate_file(top))).resolve())
