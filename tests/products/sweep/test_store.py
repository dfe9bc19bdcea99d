"""The folder of a sweep that another user or bad luck prepared: links, folders, damaged cells, a full disk.

Whatever lies there, nothing outside of it is touched, nothing of others is taken away, and no page is made of junk.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.products.sweep import cell
from tests.products.sweep.fakes import LOG, answer

pytestmark = pytest.mark.timeout(60)
MODELS = ("a:make", "b:make")
CLEAN = "2 of 2 models reconciled"
Sweep = Callable[..., Result]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sweep"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """A sweep of two models on the command line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setattr(cell, "run_cell", answer)
    return lambda *more: CliRunner().invoke(cli, ["sweep", *MODELS, "-q", *more], prog_name="reconcile")


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


def _set(*places: Any) -> Callable[[str], bytes]:
    """Puts the last of these at the place that the others name."""

    def change(text: str) -> bytes:
        data = json.loads(text)
        at = data
        for place in places[:-2]:
            at = at[place]
        at[places[-2]] = places[-1]
        return json.dumps(data).encode()

    return change


def _without(name: str) -> Callable[[str], bytes]:
    return lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != name}).encode()


DAMAGED: dict[str, Callable[[str], bytes]] = {
    "is not valid JSON": lambda text: text[: len(text) // 2].encode(),
    "is not UTF-8": lambda text: text.replace("a.make", "a.m\xe4ke").encode("latin-1"),
    "is not valid JSON ": lambda _text: b"[" * 100_000,
    "is damaged at key": _set("key", 3),
    "is damaged at its top ": _without("cost"),
    "is damaged at outcome.exit_code  ": _set("outcome", "exit_code", 2),
    "is damaged at outcome.counters.0.causes": _set("outcome", "counters", 0, "causes", {"| junk |": 0}),
    "does not add up for fvcore": _set("outcome", "counters", 0, "residual", 1),
    "is that of another model": _set("outcome", "name", "c"),
    "is larger than any cell": lambda text: text.encode() + b" " * (1 << 24),
}


@pytest.mark.parametrize("why", DAMAGED)
def test_a_damaged_cell_is_run_again_and_said(sweep: Sweep, out: Path, tmp_path: Path, why: str) -> None:
    sweep()
    page, kept = (out / "README.md").read_bytes(), out / "cells" / "a.make.json"
    whole = kept.read_text()
    kept.write_bytes(DAMAGED[why](whole))
    done = sweep()
    assert (done.exit_code, done.stdout) == (0, f"{CLEAN}, 1 of them before; wrote sweep/README.md\n")
    assert done.stderr == f"a.make runs again: cells/a.make.json {why.rstrip()}.\n"
    assert ran(tmp_path) == ["a.make", "a.make", "b.make"]
    assert (kept.read_text(), (out / "README.md").read_bytes()) == (whole, page)


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
