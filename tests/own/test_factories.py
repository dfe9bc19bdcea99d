"""A factory that cannot be used: one sentence with the last line of its own traceback, exit 2, and a log of it all."""

from __future__ import annotations

import time

import pytest

from tests.own.conftest import Repository

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("warmed")]

NET = """
    import torch
    from torch import nn

    def linear():
        return nn.Linear(5, 2)
"""

BAD = """
    import os, sys, time
    import torch
    from torch import nn

    print("importing bad")
    model = nn.Linear(5, 2)
    number = 3

    def raises():
        print("about to raise")
        raise ValueError("no weights here\\nand a second line.")

    def exits():
        sys.exit("enough")

    def lacks():
        import a_package_that_is_not_there.part

    def nothing():
        pass

    def pair():
        return {"model": model}, 3

    def wrong_inputs():
        return nn.Linear(5, 2), 3, 4

    def takes(width):
        return nn.Linear(width, 2)

    class Net(nn.Module):
        def forward(self, x, y):
            return x @ y
"""

CASES = [
    ("bad:raises", "raised ValueError: no weights here (bad.py, line 12)."),
    ("bad:exits", "called sys.exit('enough') (bad.py, line 15)."),
    ("bad:lacks", "needs the package a_package_that_is_not_there, which is not installed"),
    ("bad:nothing", "returned None; it must return a torch.nn.Module, or (model, example inputs)."),
    ("bad:pair", "returned a tuple that starts with a dict; it must return"),
    ("bad:wrong_inputs", "returned (model, an int, an int); after the model, return a tuple"),
    ("bad:takes", "raised TypeError: takes() missing 1 required positional argument: 'width'."),
    ("bad:model", "bad:model is a model, not a function that makes one"),
    ("bad:number", "bad:number is an int, not a function that returns a model."),
    ("bad:wrong", "Did you mean wrong_inputs?"),
    ("bad:riases", "bad has no 'riases' (bad:riases). Did you mean raises?"),
    ("bda:raises", "there is no module bda (bda:raises)"),
    ("bad.deep:raises", "there is no module bad.deep (bad.deep:raises)"),
    ("lacking:make", "needs the package not_there_either, which is not installed in this environment (lacking.py, line 2)."),
    ("broken:make", "importing broken raised SyntaxError: invalid syntax (broken.py, line 2)."),
    ("net:linear", "returned a model without example inputs: return (model, inputs)"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "said"), CASES, ids=[where for where, _ in CASES])
def test_a_factory_that_cannot_be_used(repository: Repository, where: str, said: str) -> None:
    repository.write(net=NET, bad=BAD, lacking="\nimport not_there_either\n", broken="\ndef make(:\n")
    assert said in repository.refusal("--torch", where, "--counter", "thop")


def test_a_package_is_run_from_the_folder_that_holds_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(
        package__of____init__="", package__of__net="from . import parts\n", package__of__other="import package\n"
    )
    repository.write(src__of__hidden__of____init__="")
    assert repository.refusal("--torch", "hidden.net:make").endswith(
        "or in the working directory. Set PYTHONPATH=src, which contains hidden."
    )
    monkeypatch.chdir(repository.folder / "package")
    for module in ("net", "other"):
        assert repository.refusal("--torch", f"{module}:make").endswith(
            " This folder is inside the package package: run from the folder that contains the package, with "
            f"package.{module}:make."
        )


def test_the_log_holds_what_it_printed_and_its_whole_traceback(repository: Repository) -> None:
    repository.write(bad=BAD)
    repository.refusal("--torch", "bad:raises")
    log = repository.log()
    assert "about to raise" in log
    assert 'raise ValueError("no weights here\\nand a second line.")' in log
    assert "and a second line." in log


@pytest.mark.slow
def test_the_other_framework_is_stopped(repository: Repository) -> None:
    repository.write(
        bad=BAD,
        slow="""
            import time

            def make():
                time.sleep(1000)
        """,
    )
    start = time.monotonic()
    assert "raised ValueError" in repository.refusal("--torch", "bad:raises", "--tf", "slow:make")
    assert time.monotonic() - start < 500


@pytest.mark.slow
def test_a_tensorflow_factory_is_refused_alike(repository: Repository) -> None:
    repository.write(
        bad="""
            import tensorflow as tf

            def make():
                return tf.keras.Sequential([tf.keras.layers.Dense(2)])

            def wrong():
                return 3
        """
    )
    assert "it must return a TensorFlow model" in repository.refusal("--tf", "bad:wrong")
    asked = ("--tf", "bad:make", "--input", "x=2,3", "--input", "y=4")
    assert "the model of bad:make, called with (x=float32 (2, 3), y=float32 (4,)), raised " in repository.refusal(
        *asked
    )
