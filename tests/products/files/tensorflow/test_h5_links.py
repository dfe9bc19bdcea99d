"""Links in an HDF5 file are one short sentence, however deep they lead; none of them is followed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.protocol import ModelFile
from reconcile.products.files.model_file import FileError
from reconcile.products.files.tensorflow.load_keras import check_h5

h5py = pytest.importorskip("h5py")


def loop(root: Any) -> None:
    root.create_group("a")["up"] = root["/"]


def own(root: Any) -> None:
    group = root.create_group("a")
    group["a"] = group


def twice(root: Any) -> None:
    root["b"] = root.create_group("a")


def soft(root: Any) -> None:
    root["n" * 5000] = h5py.SoftLink("/elsewhere")


def virtual(root: Any) -> None:
    root.create_virtual_dataset("v" * 5000, h5py.VirtualLayout((4,), "f4"))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (loop, "m.h5 is damaged: it holds one group in two places, "),
        (own, "m.h5 is damaged: it holds one group in two places, "),
        (twice, "m.h5 is damaged: it holds one group in two places, "),
        (soft, "m.h5 holds a link, /nnn"),
        (virtual, "m.h5 keeps the tensor /vvv"),
    ],
)
def test_a_link_is_a_short_sentence(made: Callable[[Any], None], says: str, tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as root:
        made(root)
    with pytest.raises(FileError) as raised:
        check_h5("m.h5", str(path), ModelFile(str(path), "keras_h5", path.stat().st_size))
    assert str(raised.value).startswith(says)
    assert len(str(raised.value)) < 200


def test_groups_in_groups_are_none(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as root:
        root.create_group("a/b/c")["w"] = [1.0, 2.0]
        root.create_group("b/b/c")["w"] = [1.0, 2.0]
    assert check_h5("m.h5", str(path), ModelFile(str(path), "keras_h5", path.stat().st_size)) is None
