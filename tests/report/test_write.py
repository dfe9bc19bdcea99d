"""Files are whole or untouched, and a folder that cannot be written is known before anything else starts."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from reconcile.core import atomic
from reconcile.core.errors import UsageError
from reconcile.core.option import FORMATS
from reconcile.report import reports
from tests.report import samples


def test_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    atomic.prepare(folder)
    texts = reports.render(samples.clean(), FORMATS)
    files = atomic.write(folder, "toy", texts)
    assert [f.name for f in files] == ["toy.md", "toy.csv", "toy.json", "toy.html"]
    assert sorted(os.listdir(folder)) == sorted(f.name for f in files)
    assert files[1].read_bytes().decode("utf-8") == texts["csv"]


def test_only_the_formats_asked_for() -> None:
    assert list(reports.render(samples.clean(), ("json", "csv"))) == ["csv", "json"]


def test_preparing_leaves_nothing_behind(tmp_path: Path) -> None:
    atomic.prepare(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "deeper"):
        with pytest.raises(
            UsageError, match=r"^cannot write reports to .*taken.*: .*\. Choose another folder with --out\.$"
        ):
            atomic.prepare(folder)


def test_a_folder_in_place_of_a_file_is_refused_old_files_stay(tmp_path: Path) -> None:
    (tmp_path / "toy.json").mkdir()
    with pytest.raises(UsageError, match="cannot write reports"):
        atomic.write(tmp_path, "toy", {"json": "new"})
    assert [p.name for p in tmp_path.iterdir()] == ["toy.json"]


@pytest.mark.parametrize("stage", ["fsync", "replace"])
def test_an_interruption_leaves_the_old_files_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    for name in ("toy.md", "toy.json"):
        (tmp_path / name).write_text("old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(*{"fsync": (os, "fsync", interrupt), "replace": (Path, "replace", interrupt)}[stage])
    with pytest.raises(KeyboardInterrupt):
        atomic.write(tmp_path, "toy", {"md": "new" * 1000, "json": "new"})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"toy.md": "old", "toy.json": "old"}


@pytest.mark.parametrize("name", ["gru_demo", "net.make+net.other", "gru_demo@tf-1.12", "модель", "x" * 100, "ж" * 50])
def test_a_name_that_can_be_a_files_stays(name: str) -> None:
    assert atomic.safe(name) == name


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("../up", "_up"), ("a/b\\c", "a_b_c"), ("..", "model"), ("", "model"), ("a b", "a_b"), ("a\ud800", "a_"),
        ("x" * 101, "x" * 87), ("ж" * 51, "ж" * 43),
    ],
)  # fmt: skip
def test_another_name_cannot_leave_the_folder_and_gets_a_hash(name: str, stem: str) -> None:
    """100 bytes in all: what is kept of the name, and 12 digits of its hash behind a dash."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    assert atomic.safe(name) == f"{stem}-{digest[:12]}"
    assert len(atomic.safe(name).encode()) <= 100


def test_names_that_differ_anywhere_are_different_files() -> None:
    """Two sets of parameters, a hundred characters of which are the same; and spellings that come out alike."""
    names = [f"pair+{'wide=1+' * 20}units={units}" for units in range(50)]
    names += ["a/b", "a b", "a_b", ".a_b", "a:b", "A/B"]
    assert len({atomic.safe(name).lower() for name in names}) == len(names)


def test_what_a_killed_process_left_of_a_file_goes_with_the_next(tmp_path: Path) -> None:
    """Not what somebody may be writing now, and no file of another name."""
    files = [".toy.md.0123abcd.tmp", ".toy.md.89ab4567.tmp", ".toys.md.0123abcd.tmp", ".toy.md.0123.tmp"]
    for name in files:
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (0, 0))
    os.utime(tmp_path / files[1])
    atomic.write(tmp_path, "toy", {"md": "new"})
    assert sorted(os.listdir(tmp_path)) == sorted([*files[1:], "toy.md"])


@pytest.mark.parametrize("linking", [True, False])
def test_a_new_file_takes_the_place_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linking: bool) -> None:
    if not linking:  # as file systems without hard links do

        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(Path, "hardlink_to", refuse)
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("there", "link"):
        with pytest.raises(FileExistsError):
            atomic.write_file(tmp_path / name, "new", new=True)
    atomic.write_file(tmp_path / "fresh", "new", new=True)
    assert (tmp_path / "there").read_text() == "mine"
    assert (tmp_path / "fresh").read_text() == "new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fresh", "link", "there"]


def test_names_that_utf8_cannot_hold_are_written_escaped(tmp_path: Path) -> None:
    (file,) = atomic.write(tmp_path, "toy", {"csv": "a\ud800b"})
    assert file.read_bytes() == b"a\\ud800b"
