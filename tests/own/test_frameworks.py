"""One framework or both: TensorFlow models of every kind, and a pair of factories."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from reconcile.engine.settle import Collected
from reconcile.launch import runner
from tests.own.conftest import Repository

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

KERAS = """
    import tensorflow as tf

    layers = tf.keras.layers

    def sequential():
        return tf.keras.Sequential([layers.Dense(4, name="first"), layers.Dense(3, name="second")])

    def functional():
        a, b = tf.keras.Input((5,), name="a"), tf.keras.Input((5,), name="b")
        return tf.keras.Model({"a": a, "b": b}, layers.Dense(2)(a + b)), {"a": tf.ones((2, 5)), "b": tf.ones((2, 5))}

    class Subclass(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = layers.Embedding(20, 4, name="embedding")
            self.parts = [layers.Dense(3, name="dense")]

        def call(self, ids, weights):
            return {"out": self.parts[0](self.embedding(ids)) * weights[..., None]}

    def function():
        w = tf.Variable(tf.ones((5, 4)))
        return (lambda x, more: {"o": tf.matmul(x, w) + more["y"][0]}), [tf.ones((2, 5)), {"y": (tf.ones((2, 4)),)}]

    def net():
        parts = [layers.Conv2D(8, 3, name="conv"), layers.Flatten(), layers.Dense(4, name="fc")]
        return tf.keras.Sequential(parts), tf.ones((1, 9, 8, 3))
"""

TORCH = """
    from collections import OrderedDict
    from torch import nn, ones

    def net():
        parts = OrderedDict(conv=nn.Conv2d(3, 8, 3), flat=nn.Flatten(), head=nn.Linear(8 * 7 * 6, 4), extra=nn.Linear(4, 2))
        return nn.Sequential(parts), ones(1, 3, 9, 8)
"""

CASES = [
    ("sequential", ("2,5",), 2 * (5 * 4 + 4 * 3), "float32 (2, 5)"),
    ("functional", (), 2 * 5 * 2, "a=float32 (2, 5), b=float32 (2, 5)"),
    ("functional", ("b=3,5", "a=3,5"), 3 * 5 * 2, "b=float32 (3, 5), a=float32 (3, 5)"),
    ("Subclass", ("2,6:int32", "2,6"), 2 * 6 * 4 * 3, "int32 (2, 6), float32 (2, 6)"),
    ("Subclass", ("2,6:int32", "weights=2,6"), 2 * 6 * 4 * 3, "int32 (2, 6), weights=float32 (2, 6)"),
    ("function", (), 2 * 5 * 4, "float32 (2, 5), {y: (float32 (2, 4))}"),
]


@pytest.mark.parametrize(("name", "inputs", "macs", "said"), CASES)
def test_a_tensorflow_model(repository: Repository, name: str, inputs: tuple[str, ...], macs: int, said: str) -> None:
    repository.write(models=KERAS)
    asked = [word for text in inputs for word in ("--input", text)]
    data = repository.report(f"models.{name}", "--tf", f"models:{name}", *asked)
    (trace,) = data["traces"]
    assert trace["totals"]["matmul"] == 2 * macs
    assert [x["counter"] for x in data["ledgers"]] == [
        "tf.profiler@function",
        "tf.profiler@frozen",
        "tf.profiler@runmeta",
    ]
    assert trace["notes"] == [f"called with {said}"]
    if name == "Subclass":  # its layers are found before it was ever called
        assert {row["layer"]: row["work"] for row in data["layers"]}["dense"] == 2 * macs


def test_two_factories_are_aligned_and_corrected_by_a_file(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``fc`` is ``head`` there: order, filter and work say so. A layer that only one has is a row of its own."""
    found = []

    def once(*args: Any) -> Collected:
        """Only the first run starts the frameworks."""
        if not found:
            found.append(collect(*args))
        return found[0]

    collect = runner.collect
    monkeypatch.setattr(runner, "collect", once)
    repository.write(keras_net=KERAS, torch_net=TORCH)
    name, asked = "keras_net.net+torch_net.net", ("--tf", "keras_net:net", "--torch", "torch_net:net")
    data = repository.report(name, *asked, "--write-mapping", "layers.csv")
    assert data["params"] == {"tf": "keras_net:net", "torch": "torch_net:net"}
    conv, fc, extra = 2 * 7 * 6 * 8 * 27, 2 * 8 * 7 * 6 * 4, 2 * 4 * 2
    assert works(data) == {"conv": [conv, conv], "head": [fc, fc], "torch:extra": [0, extra]}
    assert changes(data) == [("real-work-differs", "torch:extra", extra)]
    written = (repository.folder / "layers.csv").read_text().splitlines()[4:]
    assert written == [
        "conv,conv,conv,name+work,",
        "head,fc,head,order+shape+work,",
        "torch:extra,,extra,,no layer of the other model fits",
    ]
    screen = " ".join(repository.run(*asked).output.split())
    assert "Layers matched: 1 by name+work, 1 by order+shape+work. Without a partner in torch: extra." in screen

    (repository.folder / "layers.csv").write_text("tf,torch\nfc,extra\n")
    data = repository.report(name, *asked, "--mapping", "layers.csv")
    assert works(data) == {"conv": [conv, conv], "torch:head": [0, fc], "extra": [fc, extra]}
    assert {row["layer"]: row["by"] for row in data["alignment"]}["extra"] == "mapping"
    assert changes(data) == [("real-work-differs", "torch:head", fc), ("real-work-differs", "extra", extra - fc)]
    assert "| extra | fc | extra | mapping |" in (repository.folder / "out" / f"{name}.md").read_text()

    (repository.folder / "layers.csv").write_text("tf,torch\nfc,extra\nfc,head\n")
    shutil.rmtree(repository.folder / "out")
    assert repository.refusal(*asked, "--mapping", "layers.csv") == (
        "the mapping file layers.csv, line 3: the TensorFlow layer 'fc' is already in line 2; a layer can be in only one row."
    )


def works(data: dict[str, Any]) -> dict[str, list[int]]:
    return {row["layer"]: [row["work_by_framework"][f] for f in ("tf", "torch")] for row in data["layers"]}


def changes(data: dict[str, Any]) -> list[tuple[str, str, int]]:
    (between,) = (s for s in data["statements"] if (s["from"], s["to"]) == ("trace@tf", "trace@torch"))
    return [(a["cause"], a["layer"], a["amount"]) for a in between["adjustments"]]


def test_a_mapping_file_is_looked_at_before_anything_runs(repository: Repository) -> None:
    """There is no module ``net``: what is said first is said of the files."""
    asked = ("--torch", "net:Net", "--tf", "net:net")
    (repository.folder / "layers.csv").write_text("a,b\n")
    assert "layers.csv, line 1 is not the header of a mapping file" in repository.refusal(
        *asked, "--mapping", "layers.csv"
    )
    assert "there is no folder far" in repository.refusal(*asked, "--write-mapping", "far/layers.csv")
    assert "this is a folder" in repository.refusal(*asked, "--write-mapping", ".")
