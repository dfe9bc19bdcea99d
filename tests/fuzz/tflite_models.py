"""TensorFlow Lite models with bytes changed: a trace whose work is whole numbers from 0 up, or one sentence."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from . import mutate
from .harness import Target, Wrong, drawn
from .onnx_models import check_trace


def ready() -> None:
    """Import what a worker imports."""
    from reconcile.adapters.tflite import load

    load.ready()


@cache
def bases() -> list[bytes]:
    """Small models: a convolution with a pool and a product, and a loop around a computed size."""
    from tests.adapters.tflite.making import graph, schema, write

    conv = schema.Conv2DOptionsT(
        padding=1, strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1, fusedActivationFunction=3
    )
    pool = schema.Pool2DOptionsT(padding=0, strideW=2, strideH=2, filterWidth=3, filterHeight=3)
    network = graph(
        [("float32", (1, 6, 6, 3), None), ("float32", (4, 3, 3, 3), [0.5] * 108), ("float32", (4,), [0.5] * 4),
         ("float32", (1, 4, 4, 4), None), ("float32", (1, 2, 2, 4), None), ("int32", (2,), [1, 16]), ("float32", (1, 16), None),
         ("float32", (5, 16), [0.5] * 80), ("float32", (1, 5), None)],
        [("CONV_2D", conv, (0, 1, 2), (3,)), ("AVERAGE_POOL_2D", pool, (3,), (4,)), ("RESHAPE", None, (4, 5), (6,)),
         ("FULLY_CONNECTED", schema.FullyConnectedOptionsT(), (6, 7, -1), (8,))],
        ((0,), (8,)),
    )  # fmt: skip
    counter, state = ("int32", (), None), ("float32", (4, 4), None)
    loop = graph(
        [("int32", (), 0), state, counter, state],
        [("WHILE", schema.WhileOptionsT(condSubgraphIndex=1, bodySubgraphIndex=2), (0, 1), (2, 3))], ((1,), (3,)),
    )  # fmt: skip
    condition = graph(
        [counter, state, ("int32", (), 5), ("bool", (), None)], [("LESS", None, (0, 2), (3,))], ((0, 1), (3,))
    )
    body = graph(
        [counter, state, ("int32", (), 1), counter, state],
        [("ADD", schema.AddOptionsT(), (0, 2), (3,)), ("BATCH_MATMUL", schema.BatchMatMulOptionsT(), (1, 1), (4,))],
        ((0, 1), (3, 4)),
    )  # fmt: skip
    return [write(network), write(loop, condition, body)]


def models(rng: Random) -> bytes:
    """One of them with a few bytes changed."""
    return mutate.blob(rng, rng.choice(bases()))


def _models() -> st.SearchStrategy[bytes]:
    for data in bases():
        _read(data)
    return drawn(models)


def _read(data: bytes) -> None:
    from reconcile.adapters.tflite.load import read_model
    from reconcile.adapters.tflite.trace import trace

    check_trace(trace(read_model(data, "net.tflite", None)[0]))


def check(data: bytes, folder: Path) -> None:
    """Raises Wrong for work that is no whole number from 0 up, and whatever is no sentence."""
    from reconcile.products.files.model_file import FileError

    try:
        _read(data)
    except FileError as error:
        if "\n" in str(error):
            raise Wrong("its sentence has several lines") from error


TARGETS = (Target("tflite", _models, check, ready, needs="tensorflow"),)
