"""Links to this environment's counter packages, so that a worker in another environment that lacks them can import them.

Only pure Python packages are lent. A counter finds the compiled packages that it needs (PyTorch, numpy) in the other environment.
Nothing is copied or installed: the links are removed with the run's folder.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...core.registry import known_counters


def lend(folder: Path, python: str) -> Path:
    """Fill ``folder`` with the counters' packages of this environment that a Python of that version (``3.11``) can run."""
    folder.mkdir()
    for name in dict.fromkeys(counter.distribution for counter in known_counters().values() if counter.distribution):
        packages: dict[str, Distribution] = {}
        _gather(name, packages)
        if all(_runs_on(python, dist) for dist in packages.values()):
            for dist in packages.values():
                _link(dist, folder)
    return folder


def _gather(name: str, packages: dict[str, Distribution]) -> None:
    """Add that distribution and those that it requires, if they are installed here and pure Python."""
    key = canonicalize_name(name)
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return
    if key in packages or "Root-Is-Purelib: true" not in (dist.read_text("WHEEL") or ""):
        return
    packages[key] = dist
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _gather(requirement.name, packages)


def _runs_on(python: str, dist: Distribution) -> bool:
    needs = dist.metadata.get_all("Requires-Python", [])
    return SpecifierSet(",".join(needs)).contains(f"{python}.99")


def _link(dist: Distribution, folder: Path) -> None:
    """Link everything that the distribution has at the top of an import path: its packages, modules and metadata."""
    for top in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(Path(str(dist.locate_file(top))).resolve())
