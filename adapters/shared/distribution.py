"""The version of a counter's distribution, after a check that the imported module is its file.

Several distributions may have a package of the same name (ultralytics-thop, a fork with its own rules, also installs ``thop``),
and the metadata of an environment may name one while the files belong to another: the imported file decides.

Python 3.8 and standard library only.
"""

# ruff: noqa: UP020, UP029  (`open` is bound when the module is: the builtin may be replaced later)

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from io import open
from os import path as paths
from typing import Any, Iterator, List, Tuple

from .refusal import CannotCount


class OtherPackage(CannotCount):
    """The imported package does not belong to the distribution whose rules are known; the message is one sentence."""


def version_of(name: str, module: Any) -> str:
    """The version of the distribution of that name, which must provide the file of this module.

    The ``__version__`` of a package is not always kept up to date.  Raises OtherPackage if another distribution provides the
    file, ValueError if the metadata has no version.
    """
    try:
        from importlib.metadata import version
    except ImportError:
        from pkg_resources import get_distribution

        return _public(name, get_distribution(name).version)
    package = module.__name__.partition(".")[0]
    claims = list(_claims(module))
    provided = [(owner, number) for owner, number, intact in claims if intact or len(claims) == 1]
    for owner, number in provided:
        if _key(owner) == _key(name):
            return _public(name, number)
    if provided:
        owner, number = provided[0]
        raise OtherPackage(
            f"the module {package} here belongs to {owner} {number}, which counts by its own rules, not by those of {name}, "
            f"so its totals cannot be explained; install {name} in an environment without {owner}, or leave this counter out"
        )
    if claims:
        claimants = " and ".join(sorted(f"{claimant} {release}" for claimant, release, _ in claims))
        raise OtherPackage(
            f"the module {package} here is claimed by {claimants}, but its file matches none of them: reinstall {name}"
        )
    return _public(name, version(name))  # from a source tree: no list of files names it


def _claims(module: Any) -> Iterator[Tuple[str, str, bool]]:
    """Name and version of every distribution that lists the file of this module, and whether the file is unchanged."""
    from importlib.metadata import distributions

    tail = module.__name__.replace(".", "/") + ("/__init__" if hasattr(module, "__path__") else "") + ".py"
    file = paths.realpath(module.__file__)
    seen: List[str] = []
    for dist in distributions():
        for line in (dist.read_text("RECORD") or "").splitlines():
            listed, _, rest = line.partition(",")
            if listed == tail and paths.realpath(str(dist.locate_file(listed))) == file:
                name = str(dist.metadata["Name"])
                if name not in seen:  # a folder may be on the path twice
                    seen.append(name)
                    yield name, str(dist.version), _intact(file, rest.partition(",")[0])


def _intact(file: str, digest: str) -> bool:
    """Whether a file has the digest that was recorded for it."""
    kind, _, wanted = digest.partition("=")
    if kind != "sha256":
        return True
    with open(file, "rb") as content:
        return urlsafe_b64encode(sha256(content.read()).digest()).rstrip(b"=").decode() == wanted


def _key(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub("[-_.]+", "-", name).lower()


def _public(name: str, version: Any) -> str:
    """``0.1.1.post2`` for the old spelling ``0.1.1-2``. Raises ValueError if there is no version."""
    if not version:
        raise ValueError(f"the installed metadata of {name} has no version, so its rules cannot be chosen")
    return str(version).replace("-", ".post")
