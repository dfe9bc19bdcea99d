"""A model says the same whatever lies in the files that its tensors point to: nothing opens them, wherever the tensor stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import helper, parser

from reconcile.adapters.onnx.load import read_model, ready
from reconcile.adapters.onnx.trace import trace
from reconcile.products.files.model_file import FileError

ROOT = Path(__file__).parents[3]
SECRET = "secret.bin"


def far(kind: str, size: int, name: str = "far") -> str:
    """A tensor whose data are in the secret file."""
    return f'{kind} {name} = ["location": "{SECRET}", "length": "{size}"]'


def model(nodes: str, held: str = "", function: str = "") -> Any:
    head = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2,6] x) => (float[?,?] y)'
    return parser.parse_model(f"{head} <{held}> {{{nodes}}} {function}")


def function(head: str, nodes: str) -> str:
    return f'<domain: "mine", opset_import: ["": 17]> {head} {{{nodes}}}'


SIZED = "big = ConstantOfShape(far)  y = MatMul(x, big)"
"""The file's values decide the sizes of a product."""
PAIR = far("int64[2]", 16)
HELD = f"far = Constant <value = {PAIR}> ()"
GIVEN = f"far = Constant <value: tensor = @size> ()  {SIZED}"
BRANCH = f"b () => (float[?,?] y) {{{HELD}  {SIZED}}}"
MODELS: dict[str, tuple[str, ...]] = {
    # nodes, initializers, function
    "a constant": (f"{HELD}  {SIZED}",),
    "a sum": (f"{HELD.replace('far = C', 'file = C')}  far = Add(file, one)  {SIZED}", "int64[2] one = {0, 0}"),
    "a fill": (f"far = ConstantOfShape <value = {far('int64[1]', 8)}> (one)  {SIZED}", "int64[1] one = {2}"),
    "an initializer": (SIZED, PAIR),
    "a function": ("y = mine.F(x)", "", function("F (x) => (y)", f"{HELD}  {SIZED}")),
    "a function's attribute": (f"y = mine.F <size = {PAIR}> (x)", "", function("F <size> (x) => (y)", GIVEN)),
    "a default": ("y = mine.F(x)", "", function(f"F <size: tensor = {PAIR}> (x) => (y)", GIVEN)),
    "a branch": (f"y = If <then_branch = {BRANCH}, else_branch = {BRANCH}> (yes)", "bool yes = {1}"),
    "a condition": (
        f"far = Constant <value = {far('bool', 1)}> ()  y = If <then_branch = a () => (float[2,6] y) {{y = Relu(x)}}, "
        "else_branch = b () => (float[2,6] y) {y = Neg(x)}> (far)",
    ),
    "an exponent": (f"far = Constant <value = {far('float', 4)}> ()  y = Pow(x, far)",),
}  # fmt: skip


def without_a_location() -> Any:
    made = model(*MODELS["a constant"])
    del made.graph.node[0].attribute[0].t.external_data[:]
    return made


def sparse(initializer: bool) -> Any:
    tensors = model(SIZED, f"{far('float[2]', 8, 'w' if initializer else 'values')}, {far('int64[2]', 16, 'indices')}")
    held = helper.make_sparse_tensor(*tensors.graph.initializer, [6, 6])
    made = model("y = MatMul(x, w)")
    if initializer:
        made.graph.sparse_initializer.append(held)
    else:
        made.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=held))
    return made


MADE = {name: model(*parts) for name, parts in MODELS.items()}
MADE |= {"no location": without_a_location(), "sparse": sparse(False), "sparse initializer": sparse(True)}


def said(made: Any) -> Any:
    """The model as it is read and its trace, or the sentence that refuses it."""
    ready()
    try:
        read_, _ = read_model(made.SerializeToString(), "m.onnx", None)
        return read_.proto.SerializeToString(deterministic=True), trace(read_)
    except FileError as error:
        return str(error)


@pytest.mark.parametrize("name", MADE)
def test_the_file_changes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    without = said(MADE[name])
    for first, second in ((6, 1), (6, 5)):
        numpy.array([first, second, 3], "int64").tofile(SECRET)
        assert said(MADE[name]) == without
    assert not isinstance(without, str) or (without.startswith("m.onnx ") and "\n" not in without)


def test_a_size_that_is_kept_in_another_file_is_said_to_be() -> None:
    assert said(model("y = Reshape(x, far)", PAIR)) == (
        "m.onnx keeps far in another file, which is not opened, and the value decides a shape: save the model in one file "
        "(onnx.save with save_as_external_data=False)."
    )


def test_weights_elsewhere_keep_their_shape() -> None:
    """The product is counted by the shapes: 2 * 6 * 5 multiply-adds."""
    held = far("float[6,5]", 120)
    for made in (model("y = MatMul(x, far)", held), model(f"far = Constant <value = {held}> ()  y = MatMul(x, far)")):
        read_, _ = read_model(made.SerializeToString(), "m.onnx", None)
        (product,) = (op for op in trace(read_).ops if op.op == "onnx.MatMul")
        assert (product.inputs[1].shape, product.outputs[0].shape) == ((6, 5), (2, 5))


def test_one_place_turns_tensors_into_values() -> None:
    """It is the place that knows which tensors are not in the file."""
    texts = {path.name: path.read_text() for path in (ROOT / "adapters" / "onnx").glob("*.py")}
    assert [name for name, text in texts.items() if "to_array" in text] == ["external_data.py"]
