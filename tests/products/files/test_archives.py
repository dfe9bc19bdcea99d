"""Archives: which kind of model home finds in one, and which it refuses before any framework is started."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.files import kinds
from tests.products.files.hostile import Stream, archive, long_end

SCRIPT = {
    "data.pkl": b"\x80\x02}q\x00.",
    "code/__torch__.py": b"class M(Module):\n  training : bool\n",
    "constants.pkl": b"\x80\x02).",
    "version": b"3\n",
}
"""What makes a TorchScript archive one; no framework reads it here."""
PLAIN = archive(SCRIPT)


def read(path: Path, data: bytes, framework: str = "torch") -> str:
    """What home says of these bytes: their kind, or the one sentence that refuses them."""
    path.write_bytes(data)
    try:
        return kinds.read_model_file(framework, str(path)).kind
    except UsageError as error:
        said = str(error)
    assert said.startswith(f"{path}: it")
    assert said.endswith(".")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


PROGRAM = dict.fromkeys(("models/model.json", "archive_format", "archive_version", ".data/version"), b"{}")


def test_a_program_of_an_older_pytorch(tmp_path: Path) -> None:
    said = read(tmp_path / "net.pt2", archive({**PROGRAM, "data/weights/model.pt": b"x"}))
    assert said == "it is a .pt2 from an older PyTorch; save it again with torch.export.save."


def streamed() -> bytes:
    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in SCRIPT.items():
            file.writestr(f"a/{name}", data)
    return stream.written


def long_sizes() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in SCRIPT.items():
            with file.open(f"a/{name}", "w", force_zip64=True) as member:
                member.write(data)
    return made.getvalue()


READ = {
    "plain": PLAIN,
    "a comment": PLAIN[:-2] + b"\x04\0note",
    "another archive before it": archive({"version": b"4\n"}) + PLAIN,
    "a zip64 end": long_end(PLAIN),
    "sums after the data": streamed(),
    "sizes of 64 bits": long_sizes(),
}


@pytest.mark.parametrize("name", READ)
def test_an_archive_is_known_by_its_members(tmp_path: Path, name: str) -> None:
    assert read(tmp_path / "net.pt", READ[name]) == "torchscript"
