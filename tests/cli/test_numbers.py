"""Numbers that users give: each option, with what is no number, not finite, below what there is or thousands of digits long."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

import reconcile
from reconcile.cli import cli
from reconcile.core.errors import UsageError
from reconcile.core.numbers import integer
from reconcile.launch.request import run_request
from reconcile.launch.user_models import read_input
from reconcile.model_zoo.loading import resolve
from reconcile.model_zoo.pair import Pair, PairError

LONG = "9" * 5000
NO_TIME = ["nan", "-nan", "inf", "-inf", "1e400", "0", "-0.0", "-1", "1e9", LONG, "", "ten", "0x10", "1,5", "1e-400"]


def typed(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="reconcile")


def is_a_sentence(done: Result, said: str) -> bool:
    last = done.stderr.strip().splitlines()[-1]
    return done.exit_code == 2 and said in last and len(done.stderr) < 700 and "Traceback" not in done.stderr


TAKERS = [("check", "--model"), ("matrix", "--model"), ("sweep",)]


@pytest.mark.parametrize(
    ("command", "text"), [*((("run", "--model"), text) for text in NO_TIME), *((words, "nan") for words in TAKERS)]
)
def test_a_time_limit_that_is_none(command: tuple[str, ...], text: str) -> None:
    done = typed(*command, "conv_only", "--timeout", text)
    assert is_a_sentence(done, "--timeout must be a number of seconds above 0 and up to 100,000,000, not "), done.output


def test_a_time_limit_that_is_none_in_python() -> None:
    for value in (float("nan"), float("inf"), 0, -1, True, 10**400, "x"):
        with pytest.raises(UsageError, match=r"timeout=? must be a number of seconds above 0"):
            run_request(model="conv_only", timeout=value)
    with pytest.raises(UsageError, match=r"timeout=? must be a number of seconds above 0"):
        reconcile.run(torch="net:make", timeout=float("nan"))


def test_a_time_limit() -> None:
    given = ("0.5", "1e8", 600, 0.25)
    assert [run_request(model="conv_only", timeout=x).timeout for x in given] == [0.5, 10**8, 600, 0.25]


NO_JOBS = ["0", "-1", "1.5", "nan", "1001", "10" * 30, LONG, "", "²", "x"]


@pytest.mark.parametrize(
    ("command", "text"), [*((("sweep", "zoo"), text) for text in NO_JOBS), (("zoo", "gallery"), "nan")]
)
def test_jobs_that_are_none(command: tuple[str, ...], text: str) -> None:
    done = typed(*command, "--jobs", text)
    assert is_a_sentence(done, "--jobs must be a whole number from 1 to 1,000, not "), done.output


def test_the_largest_inputs() -> None:
    assert read_input("9223372036854775807").shape == (2**63 - 1,)
    assert read_input(" 0 , 9223372036854775807 :int8").shape == (0, 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(
            (t, "is not a number. Write it as 25150826")
            for t in (LONG, f"{LONG}e9", "nan", "9" * 101, "1." + "0" * 200)
        ),
        ("1e" + LONG, "is too large for a count"),
    ],
)
def test_a_figure_that_is_none(text: str, why: str) -> None:
    done = typed("decode", "--model", "conv_only", "--no-run", "--", text)
    assert is_a_sentence(done, why), done.output


PAIR = Pair("toy", {"units": 96, "rate": 0.5, "name": "relu"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("units", text) for text in (LONG, "9223372036854775808", "1.5", "nan", "", "x")),
        *(("rate", text) for text in (LONG, "nan", "inf", "-inf", "1e400", "1e19", "x")),
    ],
)  # fmt: skip
def test_a_parameter_that_is_none(name: str, text: str) -> None:
    kind = "a whole number" if name == "units" else "a number"
    with pytest.raises(PairError, match=rf"^toy: {name} must be {kind} between -2\^63 and 2\^63, not .{{1,60}}\.$"):
        resolve(PAIR, {name: text})


def test_parameters() -> None:
    said = {"units": "-9223372036854775807", "rate": "1e-300", "name": LONG}
    assert resolve(PAIR, said) == {"units": 1 - 2**63, "rate": 1e-300, "name": LONG}


@pytest.mark.parametrize("text", ["3." + LONG, "3.", "3.x", "2.7", "3.1111"])
def test_a_python_that_is_none(text: str) -> None:
    done = typed("run", "--model", "conv_only", "--with", "torch", "--python", text)
    assert is_a_sentence(done, "must be a version such as 3.11 or the word current"), done.output


def test_whole_numbers() -> None:
    assert [integer(x, 0, 9) for x in ("0", " 9 ", "10", "-1", "1.0", "", "٣", LONG)] == [0, 9] + [None] * 6
