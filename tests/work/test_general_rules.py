"""The two rules for ops without a formula: only integers is no floating-point work, pointwise is no multiply-add."""

from __future__ import annotations

import pytest

from reconcile.core.conventions import BUILT_IN, Convention
from reconcile.core.records import POINTWISE, Tensor
from reconcile.core.work import COMPONENTS, PRODUCT_COMPONENTS, is_opaque, is_pointwise, opaque, pointwise
from reconcile.work import ZERO, UnknownWork, Work, find, formula, known_part, load, restore_registry, work_of
from tests.work.records_by_hand import make

load()
X = (2, 3)
INT, BOOL = Tensor(X, "int64"), Tensor(X, "bool")


@pytest.mark.parametrize("name", ["aten.no_such_op", "mine.unique", "NoSuchOp", "onnx.NoSuchOp"])
@pytest.mark.parametrize(("inputs", "outputs"), [([INT], [INT]), ([BOOL], [BOOL, INT]), ([], [INT])])
def test_an_op_on_integers_only_does_no_floating_point_work(name, inputs, outputs):
    assert work_of(make(name, inputs, outputs)) == ZERO


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float8_e4m3fn", "complex64", "half", "quint8", "resource", "variant"]
)
def test_one_tensor_of_another_type_makes_it_unknown(dtype):
    other = Tensor(X, dtype)
    for inputs, outputs in (([INT, other], [INT]), ([INT], [other])):
        with pytest.raises(UnknownWork, match=r"^no work formula for aten\.no_such_op$"):
            work_of(make("aten.no_such_op", inputs, outputs))


def test_an_op_without_tensors_is_unknown():
    with pytest.raises(UnknownWork):
        work_of(make("aten.no_such_op", [], []))


@pytest.mark.parametrize(
    "name", ["higher_order.scan", "PyFunc", "EagerPyFunc", "XlaCallModule", "com.microsoft.BeamSearch"]
)
def test_an_op_that_runs_its_own_code_is_unknown_of_any_types(name):
    assert find(name) is None
    with pytest.raises(UnknownWork):
        work_of(make(name, [INT], [INT]))


def test_tensorflow_ops_of_functions_are_opaque_or_traced():
    pytest.importorskip("tensorflow")
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    listed = op_def_pb2.OpList()
    listed.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    holders = [d.name for d in listed.op if any(a.type in ("func", "list(func)") for a in d.attr)]
    assert len(holders) > 50
    data = (
        "Dataset",
        "FuncAttr",
        "FuncListAttr",
    )  # input pipelines, whose tensors are variants, and examples of attributes
    missed = [n for n in holders if not (find(n) or is_opaque(n) or any(word in n for word in data))]
    assert missed == []


@pytest.mark.parametrize("op", [make("aten.igamma", [X, X], [X]), make("mine.twice", [X], [X], **{POINTWISE: True})])
def test_a_pointwise_op_has_no_products_and_the_rest_is_unknown(op):
    assert find(op.op) is None
    with pytest.raises(UnknownWork, match="pointwise"):
        work_of(op)
    part = known_part(op)
    assert part.work == ZERO
    assert part.unknown == set(COMPONENTS) - set(PRODUCT_COMPONENTS)
    assert {name: c.weighs(part.unknown) for name, c in BUILT_IN.items()} == {
        "matmul": False,
        "all": True,
        "textbook": True,
    }
    assert not Convention("mine", mac=3, accumulators=-1).weighs(part.unknown)
    assert Convention("mine", mac=3, cmp=1).weighs(part.unknown)


def test_a_formula_wins_over_the_rules():
    with restore_registry():
        formula("aten.igamma", source="a test")(lambda op: Work(special=7))
        assert work_of(make("aten.igamma", [X, X], [X])) == Work(special=7)


def test_what_a_user_declares_ends_with_the_run():
    with restore_registry():
        pointwise("mine.pointwise")
        opaque("mine.opaque")
        assert (is_pointwise("mine.pointwise"), is_opaque("mine.opaque")) == (True, True)
    assert (is_pointwise("mine.pointwise"), is_opaque("mine.opaque")) == (False, False)


def test_a_formula_may_know_some_components():
    def compute(_op):
        raise UnknownWork("nobody counted the adds", components=["add"], known=Work(mac=5))

    with restore_registry():
        formula("mine.op", source="a test")(compute)
        part = known_part(make("mine.op", [X], [X]))
    assert part == (Work(mac=5), frozenset(["add"]), "nobody counted the adds")


def test_a_pointwise_op_on_complex_numbers_has_no_multiply_adds():
    """A complex product is four real ones and two adds, none of them of a matrix product."""
    part = known_part(make("aten.polygamma", [Tensor(X, "complex64")], [Tensor(X, "complex64")]))
    assert part.unknown == set(COMPONENTS) - set(PRODUCT_COMPONENTS)


def test_the_list_of_pointwise_ops_is_pytorchs():
    torch = pytest.importorskip("torch")
    from reconcile.adapters.pytorch.tracing.call_records import op_name

    missed = set()
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        packet = getattr(getattr(torch.ops, space), name, None) if space in ("aten", "prims") else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and torch.Tag.pointwise in overload.tags and not is_pointwise(op_name(overload)):
            missed.add(op_name(overload))
    assert sorted(missed) == []
