"""A user's compiled Keras model: its own step in TensorFlow, the standard one elsewhere or if the user asks for it."""

from __future__ import annotations

import pytest

from tests.own.conftest import Repository

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

FACTORY = """
    import keras
    import numpy

    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.line = keras.layers.Dense(2, name="line")

        def call(self, one, two):
            return self.line(one) + two

    def made():
        model = keras.Sequential([keras.Input((4,), batch_size=3), keras.layers.Dense(2, name="line")])
        model.compile(keras.optimizers.SGD(momentum=0.9), "mse")
        return model

    def given():
        return made(), numpy.zeros((3, 4), "float32"), numpy.zeros((3, 1))

    def wrong():
        return made(), numpy.zeros((3, 4), "float32"), numpy.zeros((3, 7))

    def two():
        model = Two()
        model.compile("sgd", "mse")
        return model, (numpy.zeros((3, 4), "float32"), numpy.zeros((3, 2), "float32"))
"""
WORK = 2 * (3 * 4 * 2) * 2  # forward and the gradient of the weights


def step(repository: Repository, name: str, *options: str) -> str:
    """The notes of the traces of a training step that reconciles; each trace has the model's products."""
    counters = ("flop_counter",) if "--torch" in options else ("tf.profiler@function", "tf.profiler@runmeta")
    counted = [word for counter in counters for word in ("--counter", counter)]
    data = repository.report(f"net.{name}-training", *options, "--pass", "training", *counted)
    assert [trace["totals"]["matmul"] for trace in data["traces"]] == [WORK] * len(data["traces"])
    return "\n".join(note for trace in data["traces"] for note in trace["notes"])


def test_a_factory_of_a_compiled_model(repository: Repository) -> None:
    repository.write(net=FACTORY)
    own = step(repository, "given", "--tf", "net:given")
    assert "a call of its own train_step" in own
    assert "optimizer: keras.optimizers.SGD(momentum=0.9); " in own
    assert "targets: float32 (3, 1), as given" in own
    asked = step(repository, "given", "--tf", "net:given", "--optimizer", "sgd")
    assert "--optimizer asks for this step in place of its own train_step" in asked
    assert "mean of squares" in asked
    called = repository.report("net.given", "--tf", "net:given")  # y is no input
    assert [trace["totals"]["matmul"] for trace in called["traces"]] == [WORK // 2]


def test_a_compiled_model_on_pytorch(repository: Repository) -> None:
    repository.write(net=FACTORY)
    notes = step(repository, "made", "--torch", "net:made")
    assert "its own train_step runs only in TensorFlow: this is the standard step" in notes


def test_steps_that_cannot_be_taken(repository: Repository) -> None:
    repository.write(net=FACTORY)
    wrong = repository.refusal("--tf", "net:wrong", "--pass", "training")
    assert wrong.startswith(
        "the model of net:wrong, called with (float32 (3, 4), in its own train_step with targets: float32 (3, 7)"
    )
    two = repository.run("--tf", "net:two", "--pass", "training").output
    assert "fit gives a model its inputs as one argument, and this one takes 2" in " ".join(two.split())
