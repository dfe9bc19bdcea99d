"""PyTorch model files that attack: confined, none does harm, and trusted, each would have.

They are made and loaded by processes of their own (attacks.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconcile.products.files.model_file import FileError
from tests.products.files.processes import found_by

pytestmark = pytest.mark.frameworks

ATTACKS = {
    "names.pt2": " cannot be loaded: raised PermissionError: ",
    "factory.pt2": " cannot be loaded: raised PermissionError: ",
    "enum.pt2": " cannot be loaded: raised PermissionError: ",
    "filed.pt2": ", called with (float32 (2, 8)), raised ",
    "filed.pt": ", called with (float32 (2, 8)), raised ",
}
"""Python in an argument's name, a module that is imported for a container and for a key, and an operator that writes a file."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where attacks are made."""
    return tmp_path_factory.mktemp("attacks")


@pytest.fixture(scope="module")
def attacked(folder: Path) -> dict[str, Any]:
    """What is said of each file, whether it did harm, and whether it did when it was trusted."""
    found: dict[str, Any] = found_by("pytorch.attacks", folder, ".")
    return found


def test_what_they_do(attacked: dict[str, Any]) -> None:
    assert set(attacked) == {*ATTACKS, "good.pt2", "good.pt"}
    for name, (said, harmed, trusted) in attacked.items():
        assert (harmed, trusted) == (False, name in ATTACKS), name
        assert said.startswith(name + ATTACKS[name] if name in ATTACKS else ("128 FLOP", "0 FLOP")), said
        assert "\n" not in said


CONTAINERS = """
from torch.utils import _pytree

class Output:
    def __init__(self, values):
        self.values = values

_pytree.register_pytree_node(
    Output, lambda it: ([it.values], None), lambda values, _: Output(*values), serialized_type_name="containers_of_mine.Output"
)
"""


def test_a_foreign_container_is_imported_or_named(
    attacked: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconcile.products.files.pytorch.load import _import_containers

    path = folder / "foreign.pt2"
    with pytest.raises(FileError, match=r"containers_of_mine\.Output, which torch\.utils\._pytree does not"):
        _import_containers(str(path))
    (folder / "containers_of_mine.py").write_text(CONTAINERS)
    monkeypatch.syspath_prepend(str(folder))
    _import_containers(str(path))
