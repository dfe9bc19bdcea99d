"""Archives: whatever a reader may find in one, a framework is handed the members that it needs, as they were looked at."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.protocol import ModelFile
from reconcile.products.files import kinds
from reconcile.products.files.model_file import FileError
from reconcile.products.files.repacked import fresh
from tests.products.files.hostile import Members, Stream, archive, long_end, two_ends

SCRIPT = {
    "data.pkl": b"\x80\x02}q\x00.",
    "code/__torch__.py": b"class M(Module):\n  training : bool\n",
    "constants.pkl": b"\x80\x02).",
    "version": b"3\n",
}
"""What makes a TorchScript archive one; no framework reads it here."""
PLAIN = archive(SCRIPT)


def handed(path: Path, kind: str = "torchscript", data: bytes | None = None) -> Members:
    """The members that a framework is handed, stored as they were looked at, below a folder of ours. Raises FileError."""
    if data is not None:
        path.write_bytes(data)
    seen: Members = {}

    def look(member: str, data: bytes) -> bytes:
        seen[member] = data
        return data.replace(b"3", b"4")

    with fresh(ModelFile(str(path), kind, 1 << 20), look) as made, zipfile.ZipFile(made) as file:
        root = "" if kind == "keras" else "archive/"
        assert {i.filename: file.read(i) for i in file.infolist()} == {
            root + name: data.replace(b"3", b"4") for name, data in seen.items()
        }
        assert {i.compress_type for i in file.infolist()} == {zipfile.ZIP_STORED}
    return seen


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


def written(change: Callable[[zipfile.ZipInfo], None]) -> bytes:
    """The same members, one of them described otherwise by zipfile."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in SCRIPT.items():
            info = zipfile.ZipInfo(f"a/{name}")
            if name == "version":
                change(info)
            file.writestr(info, data)
    return made.getvalue()


def commented(info: zipfile.ZipInfo) -> None:
    info.comment = b"PK\x05\x06"


def foldered(info: zipfile.ZipInfo) -> None:
    info.external_attr = 0x10


def unicode_path(info: zipfile.ZipInfo) -> None:
    info.extra = struct.pack("<HHBI", 0x7075, 9, 1, 0) + b"a/xx"


HIDDEN = {**SCRIPT, "version": b"4\n"}
ODD = {
    "a comment": PLAIN[:-2] + b"\x04\0note",
    "another archive before it": archive(HIDDEN) + PLAIN,
    "a member's comment": written(commented),
    "a member that is a folder": written(foldered),
    "a second name": written(unicode_path),
    "another locator": two_ends(PLAIN, HIDDEN),
}


@pytest.mark.parametrize("name", ODD)
def test_of_two_readings_a_framework_is_handed_the_one_that_was_looked_at(tmp_path: Path, name: str) -> None:
    assert read(tmp_path / "net.pt", ODD[name]) == "torchscript"
    assert handed(tmp_path / "net.pt") == SCRIPT


def test_a_member_with_another_name_in_its_header_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"^net\.pt cannot be loaded: its member 'a/data\.pkl' is damaged: "):
        handed(tmp_path / "net.pt", data=PLAIN.replace(b"a/data.pkl", b"a/dAta.pkl", 1))


NOT_NEEDED = (
    "a/Versions", "a/data.pkl2", "a//version", "a/./version", "a/code/./__torch__.py", "a/ version", "a/version ",
    "a/version\t", "a/vers\u00efon", "a/vers\u0131on", "a\\version", "a/code\\__torch__.py", "a/version:b", "a/x\x01",
    "A/version2", "a/Code/x.py", "a/code/x.pyc", "a/code/x.PY", "a/code/x y.py", "a/code/x.py/y", "a/model.json", "a/tensors/0",
    "a/data/0x", "a/data/weights/weight_0", "a/models/other.json", "a/constants/a", "a/data", "a/__main__.py", "a/x.so",
    "b/Version", "a/extra/a note.txt", "a/bytecode.pkl", "a/code/__torch__.py.debug_pkl", "version",
)  # fmt: skip
EQUAL = ("a/Version", "a/DATA.pkl", "a/code/__torch__.py", "a/con\u017ftants.pkl", "b/version")
"""Names of members that some reader takes for another one's, or that are another one's below the folder of ours."""


def with_member(name: str, data: bytes = b"x", base: bytes = PLAIN) -> bytes:
    made = io.BytesIO(base)
    with warnings.catch_warnings(), zipfile.ZipFile(made, "a") as file:
        warnings.simplefilter("ignore")  # a name that is there
        file.writestr(name, data)
    return made.getvalue()


@pytest.mark.parametrize("name", NOT_NEEDED)
def test_what_no_model_needs_is_left_out(tmp_path: Path, name: str) -> None:
    assert handed(tmp_path / "net.pt", data=with_member(name)) == SCRIPT


@pytest.mark.parametrize("name", EQUAL)
def test_two_members_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    if name.startswith("a/"):
        assert "it has two members called" in read(tmp_path / "net.pt", with_member(name))
    with pytest.raises(FileError, match=r"^net\.pt cannot be loaded: it has two members called"):
        handed(tmp_path / "net.pt", data=with_member(name))


PROGRAM = dict.fromkeys(("models/model.json", "archive_format", "archive_version", ".data/version"), b"{}")


@pytest.mark.parametrize(
    "name",
    [
        "models/other.json", "Models/other.json", "data/constants/custom_obj_0",
        "data/constants/opaque_obj_0", "data/aotinductor/model/x.o", "data/weights/Weight_0", "data/weights/weight_x",
        "data/sample_inputs/model.pt", "data/executorch/x", "data/weights/weight_\u0661",
    ],
)  # fmt: skip
def test_what_no_program_needs_is_left_out(tmp_path: Path, name: str) -> None:
    assert handed(tmp_path / "net.pt2", "exported_program", archive({**PROGRAM, name: b"x"})) == PROGRAM


def test_a_program_of_an_older_pytorch(tmp_path: Path) -> None:
    said = read(tmp_path / "net.pt2", archive({**PROGRAM, "data/weights/model.pt": b"x"}))
    assert said == "it is a .pt2 from an older PyTorch; save it again with torch.export.save."


def test_a_keras_archive_has_its_own_members(tmp_path: Path) -> None:
    own = {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b"", "assets/a/words.txt": b"a"}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in own.items():
            file.writestr(name, data)
    for name in ("model.weights.npz", "code.py", "x/config.json", "saved_model.pb", "Assets/x"):
        assert handed(tmp_path / "net.keras", "keras", with_member(name, base=made.getvalue())) == own
    for name in ("Config.json", "assets/../../up"):
        assert read(tmp_path / "net.keras", with_member(name, base=made.getvalue()), "tf").startswith("it")


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


def timed(info: zipfile.ZipInfo) -> None:
    info.extra = struct.pack("<HHBI", 0x5455, 5, 1, 0) + struct.pack("<HHBBIBI", 0x7875, 11, 1, 4, 0, 4, 0)


HONEST = {
    "plain": PLAIN,
    "a zip64 end": long_end(PLAIN),
    "sums after the data": streamed(),
    "sizes of 64 bits": long_sizes(),
    "times and owners": written(timed),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_a_framework_is_handed(tmp_path: Path, name: str) -> None:
    """The members that are loaded, each as it was looked at, and those that are added."""
    path = tmp_path / "net.pt"
    assert read(path, HONEST[name]) == "torchscript"
    assert handed(path) == SCRIPT
    with fresh(ModelFile(str(path), "torchscript", 1 << 20), lambda _, data: data, ("more", b"added")) as made:
        assert zipfile.ZipFile(made).read("archive/more") == b"added"


def test_a_trusted_file_is_handed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(ODD["a comment"])
    file = kinds.read_model_file("torch", str(path), trusted=True)
    with fresh(file._replace(trusted=True), lambda _, data: b"") as made:
        assert made.read() == path.read_bytes()


def test_a_file_that_grew_since_it_was_looked_at_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(PLAIN)
    size = sum(map(len, SCRIPT.values()))
    fresh(ModelFile(str(tmp_path / "net.pt"), "torchscript", size), lambda _, data: data).close()
    with pytest.raises(FileError, match="unpacks to"):
        fresh(ModelFile(str(tmp_path / "net.pt"), "torchscript", size - 1), lambda _, data: data)
