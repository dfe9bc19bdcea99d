"""TensorFlow Lite files that are not as they should be: one sentence, and the right status; read in a confined process."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconcile.adapters.tflite import trace as tracing
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.products.files.model_file import FileError
from reconcile.work import UnknownWork, known_part, load
from tests.adapters.tflite.making import flops, graph, overwrite, schema, trace_of, write
from tests.products.files.processes import found_by
from tests.programs import run_program

load()

MATRIX = ("float32", (4, 4), None)
HELD = ("float32", (4, 4), [1.0] * 16)
PRODUCT = ("BATCH_MATMUL", schema.BatchMatMulOptionsT(), (0, 1), (2,))
GRAPH = graph([MATRIX, HELD, MATRIX], [PRODUCT], ((0,), (2,)))
GOOD = write(GRAPH)
CALL = schema.CallOptionsT


def call(*callees: int) -> Any:
    """A graph that calls others, one after another."""
    return graph([MATRIX] * 2, [("CALL", CALL(subgraph=number), (0,), (1,)) for number in callees], ((0,), (1,)))


def test_a_good_one() -> None:
    assert flops(trace_of(GOOD)) == 2 * 4 * 4 * 4


def test_what_is_cut_or_changed_is_one_sentence_or_a_model() -> None:
    """At every fourth byte, and with any 32 bits of the first half replaced by a number that is no offset there."""
    changed = [GOOD[:size] for size in range(8, len(GOOD), 4)]
    rng = Random(7)
    for at in range(0, len(GOOD) // 2, 4):
        changed.append(overwrite(GOOD, at, rng.choice((0, 1, -1, 7, 1 << 20, 2**31 - 1, -(2**31)))))
    sentences: list[str] = []
    sizes: list[int | None] = []
    counts: list[int] = []
    for data in changed:
        try:
            found = trace_of(data)
        except FileError as error:
            sentences.append(str(error))
            continue
        sizes += [size for op in found.ops for t in (*op.inputs, *op.outputs) for size in t.shape or ()]
        counts += [count for op in found.ops for count in known_part(op).work]
    assert [number for number in (*sizes, *counts) if number is not None and number < 0] == []
    assert [said for said in sentences if "\n" in said or not said.endswith(".")] == []
    assert len(sentences) > len(changed) // 4


def resize(index: int, shape: list[int]) -> Any:
    def change(model: Any) -> None:
        model.subgraphs[0].tensors[index].shape = shape

    return change


HOSTILE: dict[str, tuple[bytes, str]] = {
    "good.tflite": (GOOD, "128 FLOP"),
    "cut.tflite": (GOOD[: len(GOOD) // 2], "cut.tflite is cut short or damaged: it cannot be read ("),
    "empty.tflite": (b"\0\0\0\0TFL3", "empty.tflite is cut short or damaged: it cannot be read ("),
    "far.tflite": (overwrite(GOOD, 0, 2**31 - 1), "far.tflite is cut short or damaged: it cannot be read ("),
    "below.tflite": (write(GRAPH, change=resize(0, [-4, 4])), "below.tflite is cut short or damaged: it cannot be read (a size "),
    "rank.tflite": (
        write(GRAPH, change=lambda m: setattr(m.subgraphs[0].tensors[0], "shapeSignature", [-1])), "rank.tflite is cut short",
    ),
    "itself.tflite": (write(call(0)), "itself.tflite is damaged: a graph in it calls itself."),
    "circle.tflite": (write(call(1), call(2), call(1)), "circle.tflite is damaged: a graph in it calls itself."),
    "outside.tflite": (write(call(9)), "outside.tflite is cut short or damaged: it cannot be read ("),
    "index.tflite": (write(graph([MATRIX], [("ABS", None, (0,), (5,))], ((0,), (0,)))), "index.tflite is cut short or damaged: "),
    "negative.tflite": (write(graph([MATRIX], [("ABS", None, (-3,), (0,))], ((0,), (0,)))), "negative.tflite is cut short or "),
    "many.tflite": (  # 10^7 calls
        write(*(call(*[number + 1] * 10) for number in range(7)), GRAPH), "many.tflite runs more than 200,000 operators: ",
    ),
    "open.tflite": (
        write(GRAPH, change=lambda m: setattr(m.subgraphs[0].tensors[0], "shapeSignature", [-1, 4])),
        "the input t0 of open.tflite is float32 (?, 4): give its size. For example: --input t0=1,4",
    ),
    "signed.tflite@mine": (GOOD, "signed.tflite has no signature 'mine'; it has none."),
    "huge.tflite": (write(GRAPH, change=resize(0, [2**31 - 1, 4])), f"{2 * 4 * 4 * 4} FLOP"),  # its result is as declared
}  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, (data, _) in HOSTILE.items():
        (folder / name.partition("@")[0]).write_bytes(data)
    return found_by("loading", folder, "tflite", *HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_said_of_it_by_a_confined_process(said: dict[str, str], name: str) -> None:
    assert said[name].startswith(HOSTILE[name][1])
    assert "\n" not in said[name]


@pytest.mark.parametrize(("name", "status"), [("cut.tflite", 2), ("good.tflite", 0)])
def test_the_status_of_a_run(tmp_path: Path, name: str, status: int) -> None:
    (tmp_path / name).write_bytes(HOSTILE[name][0])
    done = run_program("-m", "reconcile", "run", "--tflite", name, "--format", "json", "--out", "out", folder=tmp_path)
    assert done.returncode == status, done.stderr
    if status:
        (line,) = done.stderr.strip().splitlines()
        assert line.startswith(f"Error: {name} is cut short or damaged: ")
    else:
        assert json.loads((tmp_path / "out" / f"{name}.json").read_text())["traces"][0]["totals"]["matmul"] == 128


def test_a_pool_over_two_billion_places_is_not_looked_at_one_by_one() -> None:
    options = schema.Pool2DOptionsT(strideW=1, strideH=1, filterWidth=3, filterHeight=3)
    places = ("float32", (1, 2**31 - 1, 9, 4), None)
    found = trace_of(write(graph([places] * 2, [("MAX_POOL_2D", options, (0,), (1,))], ((0,), (1,)))))
    assert known_part(found.ops[0]).unknown == set(SINGLE_COMPONENTS)


def test_a_loop_that_never_ends_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its condition is always true: after MOST_TURNS its turns are not known."""
    monkeypatch.setattr(tracing, "MOST_TURNS", 9)
    state = ("bool", (), None)
    options = schema.WhileOptionsT(condSubgraphIndex=1, bodySubgraphIndex=1)
    loop = graph([("bool", (), True), state], [("WHILE", options, (0,), (1,))], ((), (1,)))
    found = trace_of(write(loop, graph([state], [], ((0,), (0,)))))
    with pytest.raises(UnknownWork, match="how often this loop runs is not constant"):
        flops(found)
