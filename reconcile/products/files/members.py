"""Lists of the member names that a model's archive may have, for each kind of file, and which of these members are loaded.

Ignored members are known and not needed: they are never read. An archive with a member of any other name is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Shapes(NamedTuple):
    """Names in a kind of archive: members that are loaded, members that are ignored; ``rooted`` if all are below one folder."""

    loaded: re.Pattern[str]
    left: re.Pattern[str]
    rooted: bool


_WRITER = r"\.data/serialization_id|\.format_version|\.storage_alignment"
"""Members that PyTorch's writer adds to every archive; nothing depends on them."""
_VERSIONS = r"version|\.data/version|byteorder"

KINDS = {
    "exported_program": Shapes(
        re.compile(
            r"models/model\.json|data/weights/(model_weights_config\.json|weight_\d+)|archive_format|archive_version"
            rf"|data/constants/(model_constants_config\.json|tensor_\d+)|{_VERSIONS}",
            re.ASCII,
        ),
        re.compile(rf"data/sample_inputs/model\.pt|extra/.+|{_WRITER}"),
        rooted=True,
    ),
    "torchscript": Shapes(
        re.compile(rf"data\.pkl|constants\.pkl|code/[\w/]+\.py|(data|constants)/\d+|{_VERSIONS}", re.ASCII),
        re.compile(
            rf"code/[\w/]+\.py\.debug_pkl|traced_inputs\.pkl|traced_inputs/\d+|extra/.+|bytecode\.pkl|mobile_debug_handles\.pkl|{_WRITER}",
            re.ASCII,
        ),
        rooted=True,
    ),
    "keras": Shapes(
        re.compile(r"config\.json|metadata\.json|model\.weights\.h5|assets/.*"),
        re.compile(r"(?!)"),
        rooted=False,
    ),
}
"""Kind of a file (kinds.KINDS) -> the names that torch.export.save, torch.jit.save and Keras write."""


class Outside(Exception):
    """A member that does not belong in its kind of archive; the message says which."""


def inside(kind: str, name: str) -> str:
    """A member's name below the folder that PyTorch puts all members in."""
    return name.partition("/")[2] if KINDS[kind].rooted else name


def check(kind: str, names: Iterable[str]) -> None:
    """Raise Outside for a member that no model of this kind has, or if the members are in several folders."""
    shapes, roots = KINDS[kind], set()
    for name in sorted(names):
        roots.add(name.partition("/")[0])
        within = inside(kind, name)
        if not shapes.loaded.fullmatch(within) and not shapes.left.fullmatch(within):
            raise Outside(f"its member {name!r} does not belong in such a model")
    if shapes.rooted and len(roots) != 1:
        raise Outside(f"its members are in {len(roots)} folders, {', '.join(sorted(roots)[:3])}, instead of one")


def is_loaded(kind: str, name: str) -> bool:
    """Whether the framework gets this member."""
    return KINDS[kind].loaded.fullmatch(inside(kind, name)) is not None
