"""``reconcile decode`` as it is typed."""

from __future__ import annotations

from click.testing import CliRunner, Result

from reconcile.cli import cli
from tests.decode import data


def typed(*args: str) -> Result:
    return CliRunner().invoke(cli, ["decode", "--no-run", "--baselines", str(data.SAVED), *args], prog_name="reconcile")


def test_explained() -> None:
    done = typed("--model", "gru_demo", "22,938,560")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "22,938,560 for gru_demo is explained:",
        "",
        "  22,938,560",
        "    thop × 2 (it counts MACs)",
        "      2 × 11,469,280 = 22,938,560",
        "      1 of the 3 layers that convolve or multiply matrices is not in it: gru.",
        "      torch-1.10.1-thop-2001 (saved; thop 0.0.31.post2001170342, torch 1.10.1)",
    ]


def test_not_explained() -> None:
    done = typed("--model", "gru_demo", "12345678")
    assert done.exit_code == 1
    assert done.output.startswith("12,345,678 for gru_demo is not explained: none of ")
    assert "Looked at: current" in done.output


def test_a_rounded_number_written_as_an_exact_one() -> None:
    done = typed("--model", "gru_demo", "250000000")
    assert done.exit_code == 1
    assert "If it is rounded, write it so: 2.5e8." in done.output


def test_ambiguous() -> None:
    done = typed("--model", "gru_demo", "250e6")
    assert done.exit_code == 0
    assert "250e6 for gru_demo is ambiguous: " in done.output
    assert "different numbers. The simplest first:" in done.output
    assert "more readings: --verbose" in done.output
    longer = typed("--model", "gru_demo", "250e6", "--verbose")
    assert "more readings" not in longer.output
    assert "Nearest candidates that it is not:" in longer.output


def test_one_number_behind_the_digits() -> None:
    done = typed("--model", "resnet50", "3.86e9", "--quiet", "--environment", "tf-2.3.1")
    assert done.output == "3.86e9 for resnet50 is explained: 1 candidate rounds to it, 3,857,973,248:\n"


def test_cut_off() -> None:
    assert "have these digits, the rest cut off (none rounds to them)" in typed("--model", "resnet50", "3.8e9").output


def test_bad_usage() -> None:
    for args, said in (
        (("--model", "gru_demo", "many"), "is not a number"),
        (("--model", "gru_dem", "5"), "unknown model"),
        (("--model", "gru_demo", "5", "--environment", "x"), "unknown environment"),
        (("--model", "conv1x1", "2"), "there is no data on conv1x1"),
    ):
        done = typed(*args)
        assert done.exit_code == 2
        assert said in done.stderr
