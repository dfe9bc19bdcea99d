"""Archives: one reading or none, members by a list, and a framework that is handed only what was looked at."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.protocol import ModelFile
from reconcile.products.files import kinds
from reconcile.products.files.model_file import FileError
from reconcile.products.files.repacked import fresh
from tests.products.files.hostile import Stream, archive, end64, long_end, two_ends

ROOT = Path(__file__).parents[3]
SCRIPT = {
    "data.pkl": b"\x80\x02}q\x00.",
    "code/__torch__.py": b"class M(Module):\n  training : bool\n",
    "constants.pkl": b"\x80\x02).",
    "version": b"3\n",
}
"""What makes a TorchScript archive one; no framework reads it here."""
PLAIN = archive(SCRIPT)
DIRECTORY = PLAIN.find(b"PK\x01\x02")
END = PLAIN.rfind(b"PK\x05\x06")


def patched(at: int, form: str, *values: Any, data: bytes = PLAIN) -> bytes:
    """The same bytes with numbers written over them."""
    made = bytearray(data)
    struct.pack_into(form, made, at, *values)
    return bytes(made)


def moved(by: bytes, at: int, data: bytes = PLAIN) -> bytes:
    """The same archive with bytes in between, every offset after them put right."""
    made = bytearray(data[:at] + by + data[at:])
    entry = made.find(b"PK\x01\x02", DIRECTORY + (len(by) if at <= DIRECTORY else 0))
    end = made.rfind(b"PK\x05\x06")
    if at <= DIRECTORY:
        struct.pack_into("<I", made, end + 16, DIRECTORY + len(by))
    while entry >= 0:
        (place,) = struct.unpack_from("<I", made, entry + 42)
        struct.pack_into("<I", made, entry + 42, place + (len(by) if place >= at else 0))
        entry = made.find(b"PK\x01\x02", entry + 4)
    return bytes(made)


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


SECOND = PLAIN.find(b"PK\x03\x04", 4)
AMBIGUOUS = {
    "a comment": PLAIN[:-2] + b"\x04\0note",
    "bytes after the end": PLAIN + bytes(9),
    "another archive after it": PLAIN + archive({"version": b"3\n"}),
    "bytes before it": b"MZ" * 9 + PLAIN,
    "bytes before it, offsets put right": b"PK" + moved(b"PK" * 9, 0)[2:],
    "a gap between members": moved(bytes(50), SECOND),
    "a gap before the directory": moved(bytes(50), DIRECTORY),
    "a gap after the directory": PLAIN[:END] + bytes(50) + PLAIN[END:],
    "another name in the header": patched(30, "6s", b"a/dAta"),
    "another method in the header": patched(8, "<H", 8),
    "other flags in the header": patched(6, "<H", 8),
    "another sum in the header": patched(14, "<I", 1),
    "another size in the header": patched(22, "<I", 1),
    "another size in both": patched(DIRECTORY + 20, "<II", 3, 3, data=patched(18, "<II", 3, 3)),
    "fewer members in the end": patched(END + 8, "<HH", 3, 3),
    "two disks": patched(END + 4, "<H", 1),
    "a member on another disk": patched(DIRECTORY + 34, "<H", 1),
    "a member's comment": written(commented),
    "a member that is a folder": written(foldered),
    "a second name": written(unicode_path),
    "a locator that leads elsewhere": two_ends(PLAIN, {**SCRIPT, "version": b"4\n"}),
    "a locator without a record": PLAIN[:END] + struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1) + PLAIN[END:],
    "a record that the end contradicts": patched(len(long_end(PLAIN)) - 12, "<H", 3, data=long_end(PLAIN)),
    "a record of another length": patched(END + 4, "<Q", 99, data=long_end(PLAIN)),
    "a record without a locator": PLAIN[:END] + end64(4, END - DIRECTORY, DIRECTORY) + PLAIN[END:],
    "sizes in a record that is not there": patched(END + 8, "<HHII", 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
}


def refusal(path: Path, data: bytes, framework: str = "torch") -> str:
    """The one sentence about an archive of these bytes."""
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        kinds.read_model_file(framework, str(path))
    said = str(caught.value)
    assert said.startswith(f"{path}: it")
    assert said.endswith(".")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


def test_the_archive_that_is_changed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(PLAIN)
    found = kinds.read_model_file("torch", str(path))
    assert (found.kind, found.size) == ("torchscript", sum(map(len, SCRIPT.values())))


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_archive_with_two_readings(tmp_path: Path, name: str) -> None:
    """At home, and beside the framework, where home has not looked."""
    said = refusal(tmp_path / "net.pt", AMBIGUOUS[name])
    assert said.startswith(
        ("it can be read in more than one way: ", "it is not a complete zip archive: ", "it is not a model that")
    )
    with pytest.raises(FileError, match=r"^net\.pt cannot be loaded: "):
        fresh(request(tmp_path / "net.pt"), lambda _, data: data)


def test_an_end_is_refused_in_the_same_words_by_every_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zipfile of newer releases refuses itself what that of older ones reads."""
    ends = ("a locator that leads elsewhere", "a locator without a record", "a record of another length")
    said = [refusal(tmp_path / "net.pt", AMBIGUOUS[name]) for name in ends]
    monkeypatch.setattr(zipfile, "_EndRecData64", strict)
    assert [refusal(tmp_path / "net.pt", AMBIGUOUS[name]) for name in ends] == said
    assert {each.partition(":")[0] for each in said} == {"it can be read in more than one way"}


def strict(*_given: object) -> None:
    raise zipfile.BadZipFile("its own words")


def request(path: Path, kind: str = "torchscript") -> ModelFile:
    return ModelFile(str(path), kind, 1 << 20)


SPELLED = (
    "a/Version", "a/Data.pkl", "a/vErsion", "a//version", "a/./version", "a/code/./__torch__.py", "a/ version", "a/version ",
    "a/version\t", "a/vers\u00efon", "a/vers\u0131on", "a\\version", "a/code\\__torch__.py", "a/version:b", "a/x\x01",
    "A/version2",
)  # fmt: skip


@pytest.mark.parametrize("name", SPELLED)
def test_a_name_in_another_spelling(tmp_path: Path, name: str) -> None:
    made = io.BytesIO(PLAIN)
    with zipfile.ZipFile(made, "a") as file:
        file.writestr(name, b"x")
    said = refusal(tmp_path / "net.pt", made.getvalue())
    assert said.startswith("its member ") or "two members called" in said or "folders" in said
    with pytest.raises(FileError, match=r"^net\.pt cannot be loaded: "):
        fresh(request(tmp_path / "net.pt"), lambda _, data: data)


OUTSIDE = (
    "Code/x.py", "code/x.pyc", "code/x.PY", "code/x y.py", "code/x.py/y", "model.json", "tensors/0", "data/0x",
    "data/weights/weight_0",
    "models/model.json", "constants/a", "data", "__main__.py", "x.so",
)  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_member_that_no_model_has(tmp_path: Path, name: str) -> None:
    data = archive({**SCRIPT, name: b"x"})
    assert refusal(tmp_path / "net.pt", data) == (
        f"its member 'a/{name}' does not belong in such a model; pass --trust-file to open it anyway."
    )


PROGRAM = dict.fromkeys(("models/model.json", "archive_format", "archive_version", ".data/version"), b"{}")


@pytest.mark.parametrize(
    "name",
    [
        "models/other.json", "Models/other.json", "data/constants/custom_obj_0",
        "data/constants/opaque_obj_0", "data/aotinductor/model/x.o", "data/weights/Weight_0", "data/weights/weight_x",
        "data/sample_inputs/other.pt", "data/executorch/x",
    ],
)  # fmt: skip
def test_a_member_that_no_program_has(tmp_path: Path, name: str) -> None:
    data = archive({**PROGRAM, name: b"x"})
    assert refusal(tmp_path / "net.pt2", data).startswith(f"its member 'a/{name}' does not belong in such a model")
    with pytest.raises(FileError, match="does not belong in such a model"):
        fresh(request(tmp_path / "net.pt2", "exported_program"), lambda _, data: data)


def test_a_program_of_an_older_pytorch(tmp_path: Path) -> None:
    data = archive({**PROGRAM, "data/weights/model.pt": b"x"})
    assert (
        refusal(tmp_path / "net.pt2", data)
        == "it is a .pt2 from an older PyTorch; save it again with torch.export.save."
    )


def test_a_keras_archive_has_its_own_members(tmp_path: Path) -> None:
    for name in ("Config.json", "config.JSON", "model.weights.npz", "code.py", "x/config.json", "saved_model.pb"):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as file:
            for member in ("metadata.json", "config.json", "model.weights.h5", "assets/", "assets/a/words.txt", name):
                file.writestr(member, b"" if member.endswith("/") else b"{}")
        said = refusal(tmp_path / "net.keras", made.getvalue(), "tf")
        assert said.startswith((f"its member {name!r} does not belong", "it has two members called"))


def test_a_second_folder(tmp_path: Path) -> None:
    made = io.BytesIO(PLAIN)
    with zipfile.ZipFile(made, "a") as file:
        file.writestr("b/byteorder", b"little")
    said = refusal(tmp_path / "net.pt", made.getvalue())
    assert said == "its members are in 2 folders, a, b, instead of one; pass --trust-file to open it anyway."


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
    "what is not needed": archive(
        {**SCRIPT, "extra/a note.txt": b"x", "bytecode.pkl": b"x", "code/__torch__.py.debug_pkl": b"x"}
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_a_framework_is_handed(tmp_path: Path, name: str) -> None:
    """The members that are loaded, each as it was looked at, stored, and nothing else."""
    path = tmp_path / "net.pt"
    path.write_bytes(HONEST[name])
    kinds.read_model_file("torch", str(path))
    seen: dict[str, bytes] = {}

    def look(member: str, data: bytes) -> bytes:
        seen[member] = data
        return data.replace(b"3", b"4")

    with fresh(request(path), look, ("more", b"added")) as made:
        data = made.read()
    assert seen == SCRIPT
    expected = {**SCRIPT, "version": b"4\n", "more": b"added"}
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert {i.filename: file.read(i) for i in file.infolist()} == {f"archive/{n}": d for n, d in expected.items()}
        assert {i.compress_type for i in file.infolist()} == {zipfile.ZIP_STORED}


def test_a_trusted_file_is_handed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(AMBIGUOUS["bytes after the end"])
    assert kinds.read_model_file("torch", str(path), trusted=True).kind
    with fresh(request(path)._replace(trusted=True), lambda _, data: b"") as made:
        assert made.read() == path.read_bytes()
