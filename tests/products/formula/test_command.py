"""``reconcile formula``: wrong inputs are one sentence and exit code 2, before any framework is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.launch import runner
from reconcile.launch.request import Point, run_request
from reconcile.launch.workers import worker_files

OWN = ("--torch", "net:make")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name a model: --model NAME"),
        (("--model", "gru_demo", "--input", "B,4", "--at", "B=1..9"), "a pair defines its own inputs"),
        ((*OWN, "--input", "B,4", "--at", "B=1..9", "--counter", "fhop"), "unknown counter 'fhop'. Did you mean"),
        (
            (*OWN, "--input", "B,4", "--at", "B=1..9", "--environment", "tf-2.3.1", "--with", "torch==2.0"),
            "--environment names one environment and --with or --python another",
        ),
        ((*OWN, "--pass", "decode"), "a decoding step needs the number of tokens in its cache: add --context 128"),
        (("--tf", "net.h5", "--input", "B,4", "--at", "B=1..9"), "a model file has the sizes that it was saved with"),
    ],
)
def test_wrong_inputs_are_one_sentence(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    done = CliRunner().invoke(cli, ["formula", "--out", "out", *words], prog_name="reconcile")
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_the_counts_at_a_point_know_their_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "start_workers", lambda *_: ({"frameworks": []}, {}))
    monkeypatch.setattr(worker_files, "point_descriptions", lambda *_: [{}])
    asked = run_request(torch="net:make", pass_="decode", context=8)
    (collected,) = runner.collect_at(asked, [Point({}, ())], lambda _event: None, counting=False)
    assert collected.meta["context"] == 8
