"""The folder of a sweep that another user or bad luck prepared: links, folders, damaged cells, a full disk.

Whatever lies there, nothing outside of it is touched, nothing of others is taken away, and no page is made of junk.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.products.sweep.conftest import Sweep

pytestmark = pytest.mark.timeout(60)
MODELS = ("a:make", "b:make")
CLEAN = "2 of 2 models reconciled"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sweep"


@pytest.fixture
def sweep(sweep: Sweep) -> Sweep:
    """A sweep of two models on the command line."""
    return lambda *more: sweep(*MODELS, "-q", *more)


def ran(tmp_path: Path) -> list[str]:
    log = tmp_path / "log"
    return sorted(log.read_text().split()) if log.exists() else []


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


WRITTEN = [
    "README.md", "a.make.md", "b.make.md", "cells/.lock", "cells/a.make.json", "cells/b.make.json", "costs.csv", "sweep.csv",
]  # fmt: skip


def test_only_what_a_killed_sweep_was_writing_is_taken_away(sweep: Sweep, out: Path) -> None:
    (out / "cells").mkdir(parents=True)
    ours = ["cells/.a.make.json.sweep-0123abcd.tmp", ".b.make.html.sweep-01234567.tmp", ".README.md.sweep-01234567.tmp"]
    theirs = [
        ".secret.tmp", "cells/.secret.tmp", ".a.make.md.01234567.tmp", ".c.make.md.sweep-01234567.tmp",
        ".a.make.md.sweep-0123456g.tmp", "cells/.a.make.md.sweep-01234567.tmp", ".notes.md.sweep-01234567.tmp",
    ]  # fmt: skip
    for name in (*ours, *theirs):
        (out / name).write_text("mine")
    (out / ".sweep.csv.sweep-01234567.tmp").mkdir()
    assert sweep().stdout.startswith(CLEAN)
    assert files(out) == sorted([*WRITTEN, *theirs])
    assert {(out / name).read_text() for name in theirs} == {"mine"}


def test_links_are_replaced_and_not_written_through(sweep: Sweep, out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (out / "cells").mkdir(parents=True)
    other.mkdir()
    names = [name for name in WRITTEN if name != "cells/.lock"]
    for name in names:
        (other / Path(name).name).write_text("mine")
        (out / name).symlink_to(other / Path(name).name)
    assert sweep().stdout.startswith(CLEAN)
    assert {path.read_text() for path in other.iterdir()} == {"mine"}
    assert not [name for name in names if (out / name).is_symlink()]
    assert files(out) == WRITTEN


@pytest.mark.parametrize("what", ["lock", "cells"])
def test_a_link_where_the_sweep_is_held_is_refused(sweep: Sweep, out: Path, tmp_path: Path, what: str) -> None:
    place = out / "cells" / ".lock" if what == "lock" else out / "cells"
    place.parent.mkdir(parents=True)
    target = tmp_path / "target"
    if what == "lock":
        target.write_text("mine")
    else:
        target.mkdir()
    place.symlink_to(target)
    done = sweep()
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"Error: {place.relative_to(tmp_path)} is a link: remove it, or give another folder with --out.\n"
    )
    assert not ran(tmp_path)
    assert target.read_text() == "mine" if what == "lock" else not list(target.iterdir())


def test_a_lock_keeps_what_stands_in_it(sweep: Sweep, out: Path) -> None:
    (out / "cells").mkdir(parents=True)
    (out / "cells" / ".lock").write_text("mine")
    assert sweep().stdout.startswith(CLEAN)
    assert (out / "cells" / ".lock").read_text() == "mine"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_a_lock_that_is_no_file_is_refused(
    sweep: Sweep, out: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (out / "cells").mkdir(parents=True)
    make(out / "cells" / ".lock")
    done = sweep()
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("Error: ")
    assert not ran(tmp_path)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "cells/.lock"])
def test_a_folder_in_place_of_a_file_is_refused_before_the_run(
    sweep: Sweep, out: Path, tmp_path: Path, name: str
) -> None:
    (out / name).mkdir(parents=True)
    done = sweep()
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"Error: sweep/{name} is a folder, and the sweep writes a file of that name: remove it"
    )
    assert not ran(tmp_path)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda _data: b"",
    "no table": lambda _data: b"[3]",
    "nested": lambda _data: b"[" * 100_000,
    "too large": lambda data: b" " * (1 << 24) + data,
    "no text": lambda data: data.replace(b"a.make", b"a.m\xe4ke"),
    "a number": lambda data: data.replace(b'"work": 10', b'"work": 11', 1),
    "a name": lambda data: data.replace(b"fvcore", b"f\\u001b[2Jvcore"),
    "without a part": lambda data: json.dumps({k: v for k, v in json.loads(data).items() if k != "cost"}).encode(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_is_run_again_and_said(sweep: Sweep, out: Path, tmp_path: Path, damage: str) -> None:
    sweep()
    page, kept = (out / "README.md").read_bytes(), out / "cells" / "a.make.json"
    whole = kept.read_bytes()
    kept.write_bytes(DAMAGES[damage](whole))
    assert kept.read_bytes() != whole
    done = sweep()
    assert (done.exit_code, done.stdout) == (0, f"{CLEAN}, 1 of them before; wrote sweep/README.md\n")
    assert done.stderr == "a.make runs again: cells/a.make.json is damaged.\n"
    assert ran(tmp_path) == ["a.make", "a.make", "b.make"]
    assert (kept.read_bytes(), (out / "README.md").read_bytes()) == (whole, page)


def test_a_cell_that_is_no_file_is_run_again(sweep: Sweep, out: Path, tmp_path: Path) -> None:
    """A pipe without a writer: a reader waits."""
    sweep()
    kept = out / "cells" / "a.make.json"
    kept.unlink()
    os.mkfifo(kept)
    assert sweep().stderr == "a.make runs again: cells/a.make.json is not a regular file.\n"
    assert ran(tmp_path) == ["a.make", "a.make", "b.make"]
    assert kept.is_file()


@pytest.mark.parametrize("gone", ["deleted", "link"])
def test_a_report_that_is_missing_is_written_again(sweep: Sweep, out: Path, tmp_path: Path, gone: str) -> None:
    sweep()
    (out / "a.make.md").unlink()
    if gone == "link":
        (out / "a.make.md").symlink_to(out / "b.make.md")
    done = sweep()
    assert done.stderr == "a.make runs again: its report a.make.md is missing.\n"
    assert done.exit_code == 0
    assert (out / "a.make.md").read_text() == "# a.make\n"
    assert (out / "b.make.md").read_text() == "# b.make\n"
    assert ran(tmp_path) == ["a.make", "a.make", "b.make"]
    assert sweep().stderr == ""


@pytest.mark.parametrize("room", range(7))
def test_a_full_disk_ends_the_sweep_in_a_sentence(
    sweep: Sweep, out: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """There is room for this number of files: two reports and two cells, and the sweep's own three."""
    wrote = 0

    def full(_file: int) -> None:
        nonlocal wrote
        wrote += 1
        if wrote > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = sweep("--jobs", "1")
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "No space left on device" in done.stderr
    assert not list(out.rglob("*.tmp"))
    assert len(files(out)) == room + 1  # and the lock
    monkeypatch.setattr(os, "fsync", lambda _file: None)
    assert sweep().stdout.startswith(CLEAN)
    assert files(out) == WRITTEN
