"""``reconcile mfu``: exit codes, its formats, its table, and bad input in one sentence each."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.conftest import Stub, sentence

H100 = ("--device", "H100 SXM")
RATE = (*H100, "--flops-per-second", "400T")


def test_an_explained_claim_is_zero_and_another_one(stub: Stub) -> None:
    assert stub.call("mfu", "40.43%", *RATE).exit_code == 0
    assert stub.call("mfu", "1.2345%", *RATE).exit_code == 1


def test_the_formats(stub: Stub) -> None:
    found = json.loads(stub.call("mfu", "40.43%", *RATE, "--format", "json").stdout)
    assert (found["state"], found["factors"], found["remainder"]["low"] != "") == ("explained", [], True)
    (line,) = stub.call("mfu", "40.43%", *RATE, "--quiet").stdout.splitlines()
    assert line.startswith("40.43% is explained")


def test_the_lists(stub: Stub) -> None:
    assert "NVIDIA H100 SXM5 80GB\n" in stub.call("mfu", "peaks").stdout
    assert "| torchtitan |" in stub.call("mfu", "trainers").stdout


def test_the_peaks_of_a_name(stub: Stub) -> None:
    shown = stub.call("mfu", "peaks", "H100", "SXM").stdout
    assert "NVIDIA H100 SXM5 80GB\n" in shown
    assert "A100" not in shown


def test_without_a_claim_it_is_the_utilisation_itself(stub: Stub) -> None:
    """2,000 tokens in half a second, 3.12 GFLOPs each, on 8 devices of 312 TFLOP/s: A100 has this peak in all of its forms."""
    step = ("--step-seconds", "0.5", "--tokens-per-step", "2000", "--flops-per-token", "3.12G", "--devices", "8")
    found = json.loads(stub.call("mfu", "--device", "A100", *step, "--format", "json").stdout)
    share = Fraction(2 * 2000 * 3_120_000_000, 8 * 312 * 10**12)
    assert Fraction(found["mfu"]) == share
    whole = ("--step-seconds", "0.5", "--flops-per-step", str(2000 * 3_120_000_000), "--devices", "8")
    assert json.loads(stub.call("mfu", "--device", "A100", *whole, "--format", "json").stdout) == found
    (line,) = stub.call("mfu", "--device", "A100", *RATE[2:], "--quiet").stdout.splitlines()
    assert line.startswith(f"MFU {400 / 312:.2%}".replace("%", " %"))


def test_a_small_utilisation_has_two_digits(stub: Stub) -> None:
    (line,) = stub.call("mfu", "--peak", "1000T", "--flops-per-second", "21.8G", "--quiet").stdout.splitlines()
    assert line.startswith("MFU 0.0022 % ")


def test_a_table_is_a_page_and_a_file(stub: Stub, tmp_path: Path) -> None:
    claims = tmp_path / "claims.csv"
    claims.write_text("claimed,claimed_kind\n40%,MFU\n")
    result = stub.call("mfu", "--table", str(claims), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "1 not enough stated" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"README.md", "mfu.csv"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-50%", *RATE], "the claim '-50%' is negative"),
        (["50%", *H100, "--step-seconds", "0", "--tokens-per-step", "5", "--flops-per-token", "3"], "--step-seconds is '0'"),
        (["50%", *H100, "--step-seconds", "2", "--flops-per-token", "3"], "a step needs both"),
        (["50%", *H100, "--tokens-per-second", "2"], "give either --flops-per-token or --config"),
        (["50%", *RATE, "--tokens-per-second", "2"], "leave tokens and steps out"),
        (["50%", *RATE, "--flops-per-step", "2", "--step-seconds", "1"], "leave --flops-per-second out"),
        (["50%", *H100, "--flops-per-step", "2"], "goes with --step-seconds"),
        (["50%", "--flops-per-second", "4T"], "needs the peak of a device"),
        (["50%", "60%", *RATE], "give one CLAIM"),
        ([], "give one CLAIM"),
        (["50%", "--table", "claims.csv"], "leave CLAIM out"),
        (["--table", "claims.csv"], "--table needs --out DIR"),
        (["--table", "none.csv", "--out", "out"], "cannot read the claims none.csv"),
        (["compare", "a.toml"], "takes two TOML files"),
        (["compare", "none.toml", "none.toml"], "cannot read the setup none.toml"),
        (["trainers", "none.py"], "cannot read the source none.py"),
        (["peaks", "H1000"], "is not in the table of peaks"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(stub: Stub, words: list[str], said: str) -> None:
    assert said in sentence(stub.call("mfu", *words))
