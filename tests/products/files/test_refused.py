"""Files that are refused before any framework is started: one sentence, exit 2, at once, in little memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.launch import user_models
from reconcile.products.files import kinds
from tests.products.files import hostile
from tests.products.files.hostile import BIG, part

ROOT = Path(__file__).parents[3]
NODE = part(1, part(1, b"x") + part(2, b"Placeholder"))
GRAPH = NODE * 30 + b"\x22\x03\x08\x86\x01"
ONNX = b"\x08\x08" + part(2, b"maker") + part(7, b"") + part(8, b"\x10\x11")


def write(data: bytes) -> Callable[[Path], Path]:
    def made(path: Path) -> Path:
        path.write_bytes(data)
        return path

    return made


def cut(data: bytes) -> Callable[[Path], Path]:
    return write(data[: len(data) * 2 // 3])


def cut_zip(path: Path) -> Path:
    return hostile.cut(hostile.keras(path.with_name("whole")), path)


def member(name: str) -> Callable[[Path], Path]:
    """A Keras file with one more member, whose name zipfile itself would have tidied up."""
    plain = "".join(c if c.isalnum() else "q" for c in name)
    return lambda path: hostile.renamed(hostile.keras(path, **{plain: b"x"}), plain.encode(), name.encode())


PICKLE = (
    "it is a pickle, and loading a pickle runs the code in it, so reconcile does not unpickle anything. Write a factory"
)
UNKNOWN = "it is not a model that can be read. reconcile reads a frozen .pb, a SavedModel folder, .keras, .h5, .pt2"

CASES = {
    "empty.pb": (write(b""), "it is empty"),
    "empty.keras": (write(b""), "it is empty"),
    "empty.pt2": (write(b""), "it is empty"),
    "empty.onnx": (write(b""), "it is empty"),
    "text.pb": (write(b"hello, this is no graph\n" * 9), UNKNOWN),
    "noise.pb": (write(bytes(range(200, 256)) * 9), UNKNOWN),
    "words.pb": (write(b"\x0a\x03abc" * 5), UNKNOWN),
    "cut.pb": (cut(GRAPH), "it is cut short: a part of "),
    "cut.onnx": (cut(ONNX + part(7, bytes(99))), "it is cut short: a part of 99 bytes starts "),
    "cut.keras": (cut_zip, "it is a zip archive that is cut short: its directory, which comes last, is missing"),
    "cut.pt2": (cut_zip, "it is a zip archive that is cut short"),
    "any.zip": (lambda path: hostile.zipped(path, {"a.txt": b"a"}), "it is a zip archive that does not hold a model"),
    "saved_model.pb": (write(b"\x08\x01" + part(2, NODE)), "it is the file inside a SavedModel; pass the folder"),
    "lite.pb": (write(b"\x1c\0\0\0TFL3" + bytes(20)), "it is a TensorFlow Lite model: pass it with --tflite, not --tf"),
    "weights.safetensors": (write(b"\x40\0\0\0\0\0\0\0{" + bytes(99)), "it holds weights without a model. Write a factory"),
    "weights.gguf.bin": (write(b"GGUF" + bytes(99)), "it holds weights without a model. Write a factory"),
    "bomb.keras": (hostile.bomb, "its member 'config.json' is 291,590 bytes that unpack to 300,000,000: a zip bomb"),
    "overlap.keras": (hostile.overlapping, "its member 'conf001json' overlaps another or the end of the file"),
    "encrypted.keras": (hostile.encrypted, "its member 'metadata.json' is encrypted"),
    "up.keras": (member("../../up"), "its member '../../up' points outside the archive"),
    "root.keras": (member("/etc/up"), "its member '/etc/up' points outside the archive"),
    "back.keras": (member("..\\up"), "points outside the archive"),
    "directory.keras": (lambda p: hostile.directory_of(hostile.keras(p), 99 << 20), "its directory claims to be 103,809,024"),
    "aoti.pt2": (
        lambda path: hostile.zipped(path, {"m/data/aotinductor/model/x.so": b"", "m/models/model.json": b"{}"}),
        "it holds compiled code (AOTInductor)",
    ),
    "zeros.pb": (hostile.sparse, UNKNOWN),
    "large.pb": (lambda p: hostile.sparse(p, NODE + b"\x0a" + hostile.varint(BIG - len(NODE) - 6)), f"it holds {BIG:,} bytes"),
    "large.h5": (lambda p: hostile.sparse(p, b"\x89HDF\r\n\x1a\n"), f"it holds {BIG:,} bytes, more than the limit of 2,147"),
    "large.keras": (hostile.large_zip, f"it unpacks to {BIG - 10_000:,} bytes, more than the limit of 2,147"),
}  # fmt: skip


def refusal(framework: str, path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        kinds.read_model_file(framework, str(path))
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_is_refused(tmp_path: Path, name: str) -> None:
    make, said = CASES[name]
    path = make(tmp_path / name)
    start = time.process_time()
    assert refusal("tf", path).startswith(said) or said in refusal("tf", path)
    assert time.process_time() - start < 2


def test_a_pickle_is_refused_and_not_unpickled(tmp_path: Path) -> None:
    mark = tmp_path / "exploded"
    for protocol in (2, 3, 4, 5):
        assert refusal("torch", hostile.pickled(tmp_path / "net.pth", mark, protocol)).startswith(PICKLE)
    assert refusal("torch", hostile.pickled_zip(tmp_path / "net.pt", mark)).startswith(PICKLE)
    assert not mark.exists()
    import pickle

    pickle.loads((tmp_path / "net.pth").read_bytes())
    assert mark.exists()  # they would have


def test_folders(tmp_path: Path) -> None:
    assert refusal("tf", tmp_path) == "there is no saved_model.pb in this folder."
    (tmp_path / "config.json").write_text("{}")
    assert refusal("tf", tmp_path).startswith("it holds weights and a configuration, but no model. Write a factory")
    inside = tmp_path / "saved_model.pb"
    inside.write_bytes(b"")
    with pytest.raises(UsageError, match=r"saved_model\.pb: it is empty"):
        kinds.read_model_file("tf", str(tmp_path))
    inside.write_bytes(b"\x08\x01" + part(2, NODE)[:-3])
    with pytest.raises(UsageError, match=r"saved_model\.pb: it is cut short"):
        kinds.read_model_file("tf", str(tmp_path))
    inside.write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"saved_model\.pb: it is not a SavedModel"):
        kinds.read_model_file("tf", str(tmp_path))
    inside.write_bytes(b"\x08\x01" + part(2, NODE))
    assert kinds.read_model_file("tf", str(tmp_path)).kind == "saved_model"
    (tmp_path / "variables").symlink_to("/etc")
    assert refusal("tf", tmp_path) == "variables is a link that points outside the folder."


def test_what_is_given_with_another_option(tmp_path: Path) -> None:
    keras = hostile.keras(tmp_path / "net.keras")
    assert refusal("torch", keras) == "it is a Keras model: pass it with --tf, not --torch."
    script = hostile.zipped(tmp_path / "net.pt", dict.fromkeys(["n/data.pkl", "n/constants.pkl", "n/code/a.py"], b""))
    assert refusal("tf", script) == "it is a TorchScript archive: pass it with --torch, not --tf."
    onnx = write(ONNX)(tmp_path / "net.onnx")
    assert refusal("torch", onnx) == "it is an ONNX model: pass it with --onnx, not --torch."
    assert refusal("tf", tmp_path / "gone.pb") == "there is no such file."


def test_a_kind_whose_framework_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(kinds.KINDS, "onnx")
    onnx = write(ONNX)(tmp_path / "net.onnx")
    assert refusal("torch", onnx) == "no framework that is installed here reads a file of the kind onnx."


def test_a_kind_is_known_by_its_content(tmp_path: Path) -> None:
    for name, make, kind in (
        ("a.pt", lambda path: write(GRAPH)(path), "graph_def"),
        ("b.pb", hostile.keras, "keras"),
        ("c.bin", write(b"\x89HDF\r\n\x1a\n" + bytes(99)), "keras_h5"),
    ):
        path = make(tmp_path / name)
        found = kinds.read_model_file("tf", str(path))
        assert (found.kind, found.path) == (kind, str(path))


def test_trust_opens_what_is_large_and_nothing_that_leads_out(tmp_path: Path) -> None:
    path = hostile.bomb(tmp_path / "bomb.keras")
    with pytest.raises(UsageError, match="does not hold a model"):
        kinds.read_model_file("tf", str(path), trusted=True)
    assert (
        kinds.read_model_file("tf", str(hostile.sparse(tmp_path / "l.h5", b"\x89HDF\r\n\x1a\n")), trusted=True).size
        == BIG
    )
    with pytest.raises(UsageError, match="points outside the archive"):
        kinds.read_model_file("tf", str(member("../../up")(tmp_path / "up.keras")), trusted=True)


def test_a_factory_is_no_file() -> None:
    assert user_models.read_models({"torch": "package.module:make"}, {}) == ({}, {"torch": "package.module:make"})
    with pytest.raises(UsageError, match=r"does not name a factory. Write MODULE:FUNCTION, such as net:make_model"):
        user_models.read_models({"torch": "net.py"}, {})


@pytest.mark.parametrize("name", ["bomb.keras", "large.keras", "zeros.pb", "overlap.keras"])
def test_the_command_line_says_so_in_little_memory(tmp_path: Path, name: str) -> None:
    """With an address space of 1 GB, no framework fits in; the refusal does, in seconds."""
    path = CASES[name][0](tmp_path / name)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 28, 1 << 28))

    command = [sys.executable, "-m", "reconcile", "run", "--tf", str(path), "--out", str(tmp_path / "out")]
    start = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, preexec_fn=limited,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"Error: {path}: ")
    assert time.monotonic() - start < 500
    assert not (tmp_path / "out").exists()
