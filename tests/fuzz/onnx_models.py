"""ONNX models with fields changed: a trace whose work is whole numbers from 0 up, or one sentence."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from . import mutate
from .harness import Target, Wrong, drawn

NAMES = mutate.words(
    "x y w MatMul Gemm Conv Loop If Scan Reshape ConstantOfShape Expand Range Einsum GRU Pow Split Pad Resize group kernel_shape "
    "strides axes axis perm value to trips hidden_size ij,jk->ik ai.onnx ai.onnx.ml mine f location ../../escaped data N "
    "com.microsoft transA QLinearAdd"
)
WORDS = (*NAMES, -1, 0, 3, 17, 22)


def ready() -> None:
    """Import what a worker imports, and make the models."""
    from reconcile.adapters.onnx import load as load_onnx

    load_onnx.ready()


@cache
def bases() -> list[Any]:
    """Small models: a network, a loop with a branch in it, computed sizes, a function, a recurrent layer."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def tensor(name: str, *shape: Any, kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    def held(name: str, value: Any, dtype: str = "float32") -> Any:
        return numpy_helper.from_array(numpy.array(value, dtype), name)

    def model(nodes: Any, inputs: Any, outputs: Any, constants: Any = (), **more: Any) -> Any:
        graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
        opsets = [helper.make_opsetid(*each) for each in (("", 17), ("mine", 1), ("com.microsoft", 1))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)

    node, x, y = helper.make_node, tensor("x", 2, 3), tensor("y", None, None)
    weight = held("w", numpy.ones((3, 3)))
    network = model(
        [
            node("Conv", ["i", "k"], ["c"], name="/a/Conv", kernel_shape=[2, 2], strides=[1, 1], group=1),
            node("Relu", ["c"], ["r"]), node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]),
            node("Flatten", ["p"], ["f"]), node("Gemm", ["f", "w9"], ["y"], name="/b/Gemm"),
        ],
        [tensor("i", 1, 1, 5, 5)], [y], [held("k", numpy.ones((1, 1, 2, 2))), held("w9", numpy.ones((9, 2)))],
    )  # fmt: skip
    then = helper.make_graph([node("MatMul", ["v", "w"], ["t"])], "then", [], [tensor("t", 2, 3)])
    other = helper.make_graph([node("Add", ["v", "v"], ["e"])], "else", [], [tensor("e", 2, 3)])
    inside = [node("If", ["cond"], ["vo"], then_branch=then, else_branch=other), node("Identity", ["cond"], ["co"])]
    inputs = [tensor("n", kind=TensorProto.INT64), tensor("cond", kind=TensorProto.BOOL), tensor("v", 2, 3)]
    body = helper.make_graph(inside, "body", inputs, [tensor("co", kind=TensorProto.BOOL), tensor("vo", 2, 3)])
    loop = model(
        [node("Loop", ["trips", "go", "x"], ["y"], body=body)], [x], [tensor("y", 2, 3)],
        [weight, held("trips", 5, "int64"), held("go", True, "bool")],
    )  # fmt: skip
    sizes = model(
        [
            node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"], axis=0),
            node("Concat", ["b", "three"], ["to"], axis=0), node("ConstantOfShape", ["to"], ["big"]),
            node("MatMul", ["big", "w"], ["y"]),
        ],
        [x], [y], [weight, held("zero", [0], "int64"), held("three", [3], "int64")],
    )  # fmt: skip
    product = [node("MatMul", ["a", "b"], ["c"])]
    function = helper.make_function("mine", "f", ["a", "b"], ["c"], product, [helper.make_opsetid("", 17)])
    called = model(
        [node("f", ["x", "w"], ["y"], domain="mine"), node("Pow", ["y", "e"], ["z"])], [x], [tensor("z", 2, 3)],
        [weight, held("e", 2.0)], functions=[function],
    )  # fmt: skip
    gru = model(
        [node("GRU", ["i", "gw", "gr"], ["y"], hidden_size=2, name="/gru/GRU")],
        [tensor("i", 4, 1, 3)], [tensor("y", None, None, None, None)],
        [held("gw", numpy.ones((1, 6, 3))), held("gr", numpy.ones((1, 6, 2)))],
    )  # fmt: skip
    turns = [node("Add", ["n", "one"], ["m"]), node("Less", ["m", "five"], ["co"]), node("Relu", ["v"], ["vo"])]
    ending = helper.make_graph(turns, "turns", inputs, [tensor("co", kind=TensorProto.BOOL), tensor("vo", 2, 3)])
    runtime = model(
        [
            node("FusedMatMul", ["x", "w"], ["a"], domain="com.microsoft", transB=1, alpha=2.0),
            node("MatMulNBits", ["a", "bits"], ["b"], domain="com.microsoft", K=3, N=3),
            node("DynamicQuantizeLinear", ["b"], ["q", "s", "z"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("Loop", ["", "", "d"], ["y"], body=ending),
        ],
        [x], [tensor("y", 2, 3)],
        [weight, held("bits", numpy.zeros((3, 1, 2)), "uint8"), held("one", 1, "int64"), held("five", 5, "int64")],
    )  # fmt: skip
    made = [network, loop, sizes, called, gru, runtime]
    for each in made:
        onnx.checker.check_model(each)
    return made


def _models() -> st.SearchStrategy[bytes]:
    _work(bases()[0].SerializeToString(), Path("m.onnx"), ())
    return drawn(models)


def models(rng: Random) -> bytes:
    """One of them with fields changed at any depth."""
    made = mutate.message(rng, rng.choice(bases()), WORDS).SerializeToString()
    return mutate.blob(rng, made) if rng.random() < 0.1 else made


def check(data: bytes, folder: Path) -> None:
    """Raises Wrong for work that is no whole number from 0 up, and whatever is no sentence."""
    from reconcile.core.errors import UsageError
    from reconcile.launch import user_models
    from reconcile.products.files import kinds
    from reconcile.products.files.model_file import FileError

    path = folder / "net.onnx"
    path.write_bytes(data)
    try:
        kinds.read_model_file("onnx", str(path))
        _work(data, path, ())
        _work(data, path, user_models.read_inputs(["2,3"]))
    except (UsageError, FileError) as error:
        if "\n" in str(error):
            raise Wrong("its sentence has several lines") from error


def _work(data: bytes, path: Path, inputs: Any) -> None:
    import onnx

    from reconcile.adapters.onnx import load as load_onnx
    from reconcile.adapters.onnx import trace as trace_onnx
    from reconcile.core.protocol import ModelFile

    path.write_bytes(data)
    file = ModelFile(str(path), "onnx", len(data))
    try:
        model, _ = load_onnx.load(file, inputs or None)
    except (onnx.checker.ValidationError, RuntimeError):  # ONNX' own words, of which model_file.py makes a sentence
        return
    check_trace(trace_onnx.trace(model))


def check_trace(taken: Any) -> None:
    """Raises Wrong for a trace, as home reads it back, with sizes, calls or work that are no whole numbers from 0 up."""
    from reconcile.core.conventions import BUILT_IN
    from reconcile.core.records import from_json, to_json
    from reconcile.work import UnknownWork, work_of

    for op in from_json(to_json(taken)).ops:
        if type(op.calls) is not int or op.calls < 0:
            raise Wrong("an op is called less than never")
        for tensor in (*op.inputs, *op.outputs):
            if any(size is not None and (type(size) is not int or size < 0) for size in tensor.shape or ()):
                raise Wrong("a size is below zero")
        try:
            work = work_of(op)
        except UnknownWork:
            continue
        if any(type(count) is not int or count < 0 for count in work):
            raise Wrong(f"the work of {op.op} is {work}")
        if any(convention.flops(work) < 0 for convention in BUILT_IN.values()):
            raise Wrong(f"the FLOPs of {op.op} are below zero")


TARGETS = (Target("onnx", _models, check, ready, needs="onnx"),)
