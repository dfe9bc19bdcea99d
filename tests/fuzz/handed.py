"""The arguments of a loader: a stand-in takes the argument and loads nothing."""

from __future__ import annotations

import contextlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from .harness import Wrong

CANNOT_BE_READ = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError)
"""What a library says of a damaged file: model_file.py makes a sentence of it. Any other error is a check that fell over."""


class Handed(BaseException):
    """What a loader was handed: a path, or bytes; nothing is loaded."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.data: bytes = source.read() if hasattr(source, "read") else Path(source).read_bytes()


def _take(source: Any, *_args: Any, **_named: Any) -> None:
    raise Handed(source)


@contextlib.contextmanager
def patched(*names: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch(name, _take))
        yield


def handed(framework: str, path: Path, load: Callable[[Any], object]) -> bytes | None:
    """The bytes that a file's loader is handed; None for a file that is refused by a sentence before."""
    from reconcile.core.errors import UsageError
    from reconcile.products.files import kinds
    from reconcile.products.files.model_file import FileError

    try:
        found = kinds.read_model_file(framework, str(path))
        load(found)
    except (UsageError, FileError) as error:
        if "\n" in str(error):
            raise Wrong("its sentence has several lines") from error
        return None
    except CANNOT_BE_READ:
        return None
    except Handed as found:
        return found.data
    raise Wrong("nothing was loaded, and nothing said")


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
