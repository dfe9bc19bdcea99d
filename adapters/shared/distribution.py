"""Which distribution a counter's package is from, and its version.

Several distributions may have a package of the same name (``thop`` is also that of ultralytics-thop, a fork with rules of its
own), and an environment's metadata may name one while its files are another's: the file that was imported decides.

Python 3.6 and standard library only.
"""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from os import path as paths
from typing import Any, Iterator, List, Tuple


class OtherPackage(Exception):
    """The package that was imported is not of the distribution whose rules are known; the message is one sentence."""


def version_of(name, module):
    # type: (str, Any) -> str
    """Version of the distribution of that name, which provides this module's file.

    Packages' own ``__version__`` is not always kept up.  Raises OtherPackage where another distribution provides the file,
    ValueError where the metadata has no version.
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
        raise OtherPackage(
            "the module %s here is that of %s %s, which counts by rules of its own, not by those of %s: no total of it is "
            "explained; install %s where %s is not, or leave this counter out"
            % (package, provided[0][0], provided[0][1], name, name, provided[0][0])
        )
    if claims:
        raise OtherPackage(
            "the module %s here is claimed by %s, and its file is as none of them installed it: reinstall %s"
            % (package, " and ".join(sorted("%s %s" % claim[:2] for claim in claims)), name)
        )
    return _public(name, version(name))  # of a source tree: no list of files names it


def _claims(module):
    # type: (Any) -> Iterator[Tuple[str, str, bool]]
    """Name and version of every distribution whose list of files has this module's, and whether it is as it was installed."""
    from importlib.metadata import distributions

    tail = module.__name__.replace(".", "/") + ("/__init__" if hasattr(module, "__path__") else "") + ".py"
    file = paths.realpath(module.__file__)
    seen = []  # type: List[str]
    for dist in distributions():
        for line in (dist.read_text("RECORD") or "").splitlines():
            listed, _, rest = line.partition(",")
            if listed == tail and paths.realpath(str(dist.locate_file(listed))) == file:
                name = str(dist.metadata["Name"])
                if name not in seen:  # a folder may stand on the path twice
                    seen.append(name)
                    yield name, str(dist.version), _intact(file, rest.partition(",")[0])


def _intact(file, digest):
    # type: (str, str) -> bool
    """Whether a file has the digest that was recorded for it."""
    kind, _, wanted = digest.partition("=")
    if kind != "sha256":
        return True
    with open(file, "rb") as content:
        return urlsafe_b64encode(sha256(content.read()).digest()).rstrip(b"=").decode() == wanted


def _key(name):
    # type: (str) -> str
    """A distribution's name as indexes compare it."""
    return re.sub("[-_.]+", "-", name).lower()


def _public(name, version):
    # type: (str, Any) -> str
    """``0.1.1.post2`` where the metadata has the old spelling ``0.1.1-2``. Raises ValueError where it has no version."""
    if not version:
        raise ValueError("the metadata of %s that is installed there has no version: its rules cannot be told" % name)
    return str(version).replace("-", ".post")
