"""Files are whole or untouched, and a folder that cannot be written is known before anything else starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconcile.cli.options import FORMATS
from reconcile.errors import UsageError
from reconcile.report import write
from tests.report import samples


def test_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    write.prepare(folder)
    texts = write.render(samples.clean(), write.FORMATS)
    files = write.write(folder, "toy", texts)
    assert [f.name for f in files] == ["toy.md", "toy.csv", "toy.json", "toy.html"]
    assert sorted(os.listdir(folder)) == sorted(f.name for f in files)
    assert files[1].read_bytes().decode("utf-8") == texts["csv"]


def test_only_the_formats_asked_for() -> None:
    assert list(write.render(samples.clean(), ("json", "csv"))) == ["csv", "json"]
    assert FORMATS == write.FORMATS


def test_preparing_leaves_nothing_behind(tmp_path: Path) -> None:
    write.prepare(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "deeper"):
        with pytest.raises(
            UsageError, match=r"^cannot write reports to .*taken.*: .*\. Choose another folder with --out\.$"
        ):
            write.prepare(folder)


def test_a_folder_in_place_of_a_file_is_refused_and_the_old_files_stay(tmp_path: Path) -> None:
    (tmp_path / "toy.json").mkdir()
    with pytest.raises(UsageError, match="cannot write reports"):
        write.write(tmp_path, "toy", {"json": "new"})
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
        write.write(tmp_path, "toy", {"md": "new" * 1000, "json": "new"})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"toy.md": "old", "toy.json": "old"}


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("gru_demo", "gru_demo"), ("../up", "_up"), ("a/b\\c", "a_b_c"), ("..", "model"), ("", "model"),
        ("x" * 300, "x" * 100), ("модель", "модель"),
    ],
)  # fmt: skip
def test_a_models_name_cannot_leave_the_folder(name: str, stem: str) -> None:
    assert write.safe(name) == stem


def test_names_that_utf8_cannot_hold_are_written_escaped(tmp_path: Path) -> None:
    (file,) = write.write(tmp_path, "toy", {"csv": "a\ud800b"})
    assert file.read_bytes() == b"a\\ud800b"


def test_a_large_result_is_rendered_in_time_that_grows_with_its_size() -> None:
    import time

    def seconds(layers: int) -> float:
        result = samples.grown(layers)
        start = time.process_time()
        write.render(result, write.FORMATS)
        return time.process_time() - start

    seconds(10)
    small = min(seconds(500) for _ in range(3))
    large = min(seconds(4000) for _ in range(2))
    assert large < 20 * small
