"""The archive that a framework loads in place of the user's file: rebuilt from the members that it needs, which were checked.

The file is read once. The framework gets only these bytes, whatever its own reader would find in the file: each name has
one spelling, no member is compressed, and there is nothing between the members. What no model needs is left out and never read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ...core.protocol import ModelFile
from . import archive
from .model_file import FileError, member

ROOT = "archive/"
"""The folder around all members of PyTorch's archives; its name means nothing."""
OWN_FOLDER = ("exported_program", "torchscript")
"""The kinds of files whose members are all below one folder."""
_VERSIONS = r"version|\.data/version|byteorder"

LOADED = {
    "exported_program": re.compile(
        r"models/model\.json|data/weights/(model_weights_config\.json|weight_\d+)|archive_format|archive_version"
        rf"|data/constants/(model_constants_config\.json|tensor_\d+)|{_VERSIONS}",
        re.ASCII,
    ),
    "torchscript": re.compile(rf"data\.pkl|constants\.pkl|code/[\w/]+\.py|(data|constants)/\d+|{_VERSIONS}", re.ASCII),
    "keras": re.compile(r"config\.json|metadata\.json|model\.weights\.h5|assets/.*"),
}
"""Kind of a file (kinds.KINDS) -> the members that are loaded, of those that torch.export.save, torch.jit.save and Keras write
(their names below the archive's folder)."""


def fresh(file: ModelFile, look: Callable[[str, bytes], bytes], *added: tuple[str, bytes]) -> BinaryIO:
    """A model's archive, rebuilt from the bytes that ``look`` returns for each loaded member (its name below the archive's
    folder, its bytes) and from the added members; a trusted file is opened unchanged. Raises FileError."""
    if file.trusted:
        return open(file.path, "rb")
    root = ROOT if file.kind in OWN_FOLDER else ""

    def inside(name: str) -> str:
        return name.partition("/")[2] if root else name

    def is_loaded(name: str) -> bool:
        return LOADED[file.kind].fullmatch(inside(name)) is not None

    def looked_at() -> Iterator[tuple[str, bytes]]:
        with open(file.path, "rb") as source:
            for name, data in archive.contents(source, file.size, is_loaded):
                yield root + inside(name), look(inside(name), data)
        for name, data in added:
            yield root + name, data

    try:
        return archive.pack_members(looked_at())
    except archive.Hostile as error:
        raise FileError(f"{member(file.path)} cannot be loaded: {error}.") from error
