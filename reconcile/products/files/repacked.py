"""The archive that a framework loads in place of the user's file: rebuilt from the members that were checked.

The file is read once. The framework gets only these bytes, whatever its own reader would find in the file: each name has
one spelling, no member is compressed, and there is nothing between the members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from ...core.protocol import ModelFile
from . import archive, members
from .model_file import FileError, member

ROOT = "archive/"
"""The folder around all members of PyTorch's archives; its name means nothing."""


def fresh(file: ModelFile, look: Callable[[str, bytes], bytes], *added: tuple[str, bytes]) -> BinaryIO:
    """A model's archive, rebuilt from the bytes that ``look`` returns for each loaded member (its name below the archive's
    folder, its bytes) and from the added members; a trusted file is opened unchanged. Raises FileError."""
    if file.trusted:
        return open(file.path, "rb")
    kind, root = file.kind, ROOT if members.KINDS[file.kind].rooted else ""

    def looked_at() -> Iterator[tuple[str, bytes]]:
        with open(file.path, "rb") as source:
            for name, data in archive.contents(source, file.size, lambda names: members.check(kind, names)):
                if members.is_loaded(kind, name):
                    within = members.inside(kind, name)
                    yield root + within, look(within, data)
        for name, data in added:
            yield root + name, data

    try:
        return archive.pack_members(looked_at())
    except (archive.Hostile, members.Outside) as error:
        raise FileError(f"{member(file.path)} cannot be loaded: {error}.") from error
