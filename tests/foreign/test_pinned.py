"""Models of the user's own in the named environments, and in an environment of theirs that is as old."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from tests.foreign.conftest import Repository

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

CONV, DENSE = 2 * 7 * 6 * 8 * 27, 2 * 8 * 7 * 6 * 4

KERAS = """
    import sizes
    import tensorflow as tf

    def make():
        layers = tf.keras.layers
        parts = [layers.Conv2D(8, 3, name="conv"), layers.Flatten(name="flat"), layers.Dense(4, name="fc")]
        return tf.keras.Sequential(parts), tf.ones(sizes.IMAGE)
"""

TORCH = """
    from collections import OrderedDict
    from torch import nn, ones

    def make():
        parts = [("conv", nn.Conv2d(3, 8, 3)), ("flat", nn.Flatten()), ("fc", nn.Linear(8 * 7 * 6, 4))]
        return nn.Sequential(OrderedDict(parts)), ones(1, 3, 9, 8)
"""


@pytest.fixture
def models(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Both models; a module that one of them needs is where PYTHONPATH says."""
    repository.write(keras_net=KERAS, torch_net=TORCH, lib__of__sizes="IMAGE = (1, 9, 8, 3)\n")
    monkeypatch.setenv("PYTHONPATH", "lib")
    return repository


def work(data: dict[str, Any]) -> dict[str, int]:
    """The work that ran by layer, and no counter without a number."""
    assert None not in {ledger["normalised_total"] for ledger in data["ledgers"]}
    return {row["layer"]: row["work"] for row in data["layers"] if row["work"]}


def test_tensorflow_2_3(models: Repository) -> None:
    data = models.report("keras_net.make", "--tf", "keras_net:make", "--environment", "tf-2.3.1")
    assert work(data) == {"conv": CONV, "fc": DENSE}
    assert data["environment"]["tensorflow"] == "2.3.1"
    assert [x["counter"].partition("@")[2] for x in data["ledgers"]] == ["function", "frozen", "runmeta"]
    assert not list(models.folder.rglob("__pycache__"))


def test_pytorch_1_10_borrows_the_trace(models: Repository) -> None:
    data = models.report("torch_net.make", "--torch", "torch_net:make", "--environment", "torch-1.10.1")
    assert work(data) == {"conv": CONV, "fc": DENSE}
    assert {x["versions"]["torch"] for x in data["ledgers"]} == {"1.10.1"}
    assert data["traces"][0]["notes"][0].startswith("borrows the current environment's trace: ImportError")


def test_an_old_environment_of_the_users(models: Repository) -> None:
    """As above, taken by its path: what that PyTorch does not have is said, and what cannot be lent."""
    there = ("--python", str(ensure(load()["torch-1.10.1"])))
    result = models.run("--torch", "torch_net:make", *there)
    assert result.exit_code == 3, result.output
    said = " ".join(result.stdout.split())
    assert (
        "flop_counter: skipped: it needs torch.utils.flop_counter, which the PyTorch of this environment does not have"
        in said
    )
    assert "thop: exact." in said
    models.write(only_there='import torch\nassert torch.__version__ < "2"\nfrom torch_net import make\n')
    result = models.run("--torch", "only_there:make", "--counter", "thop", *there)
    assert result.exit_code == 1, result.output
    said = " ".join(result.stdout.split())
    assert "and the current environment could not lend its trace: importing only_there raised AssertionError" in said


def test_what_an_environment_is_not_for(models: Repository) -> None:
    torch, keras = ("--torch", "torch_net:make"), ("--tf", "keras_net:make")
    assert models.refusal(*torch, "--environment", "tf-2.3.1") == (
        "the environment tf-2.3.1 has no PyTorch, which the model needs."
    )
    assert models.refusal(*keras, "--environment", "tf-1.12") == (
        "TensorFlow 1.12.0 has no tf.function, which a model without a pair file needs: write one (see `reconcile zoo new`) "
        "and run it with --counter tf.profiler@session."
    )
