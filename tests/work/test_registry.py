"""What holds for every formula."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from reconcile.core import work
from reconcile.core.records import Op, Tensor
from reconcile.work import UnknownWork, load, registered_formulas, work_of
from tests.work.records_by_hand import make

load()
FORMULAS = registered_formulas()
PROCESSES = ("c10d.", "_c10d_functional.", "_c10d_functional_autograd.", "c10d_functional.", "fsdp.", "_dtensor.")
"""What the operators of torch.distributed are called."""
FLASH = ("flash_attn.", "flashattn.")
"""A package that only loads beside a GPU: its operators' names are those of flash_attn/flash_attn_interface.py."""
ONEDNN = ("mkl.", "mkldnn.")
TORCH = (
    *FLASH, "torch_attn.", "aten.", "bitsandbytes.", "higher_order.", "prim.", "prims.", "quantized.", "torchvision.",
    *ONEDNN, *PROCESSES,
)  # fmt: skip
OTHERS = ("lax.", "onnx.", "tflite.", "com.microsoft.", "hlo.", "tl.")
"""What is looked up in neither: primitives of JAX, operators of ONNX, its runtime and TensorFlow Lite, and XLA's collectives."""
NO_TENSORS = ("_dtensor.mesh_get_process_group",)
"""The operator of torch.distributed that has no tensor, and no formula."""


def test_every_formula_has_a_source_and_an_exact_name():
    assert len(FORMULAS) > 600
    for name, entry in FORMULAS.items():
        assert entry.op == name
        assert len(entry.source) > 10, name
        assert name.startswith(TORCH + OTHERS) or name.isidentifier(), name
        assert not name.startswith("aten.") or not name.endswith("_") or name.endswith("__"), name


def test_torch_and_tensorflow_know_the_names():
    """A formula under a name that no framework has would never be found: names are looked up in both frameworks."""
    torch = pytest.importorskip("torch")
    tensorflow = pytest.importorskip("tensorflow")
    known = {s.name.split("::")[1].rstrip("_") for s in torch._C._jit_get_all_schemas()}
    # what a training step's trace calls the gradients of the calls that it leaves whole (fused_gradients.py)
    whole = ("gru", "lstm", "rnn_tanh", "rnn_relu", "scaled_dot_product_attention")
    known |= {f"{name}_backward" for name in whole if name in known}
    unknown = sorted(n for n in FORMULAS if n.startswith("aten.") and n[5:].rstrip("_") not in known)
    unknown += [n for n in FORMULAS if n.startswith("quantized.") and not hasattr(torch.ops.quantized, n[10:])]
    unknown += [n for n in FORMULAS if n.startswith("prims.") and not hasattr(torch.ops.prims, n[6:])]
    unknown += [n for n in FORMULAS if n.startswith("higher_order.") and not hasattr(torch.ops.higher_order, n[13:])]
    pytest.importorskip("torch.distributed.tensor")
    importlib.import_module("torch.distributed.fsdp")
    if hasattr(torch.nn.attention, "varlen") or importlib.util.find_spec("torch.nn.attention.varlen"):
        importlib.import_module("torch.nn.attention.varlen")
        known_varlen = {s.name.replace("::", ".") for s in torch._C._jit_get_all_schemas()}
        unknown += [n for n in FORMULAS if n.startswith("torch_attn.") and n not in known_varlen]
    names = {s.name.replace("::", ".").rstrip("_") for s in torch._C._jit_get_all_schemas()}
    unknown += [n for n in FORMULAS if n.startswith(PROCESSES + ONEDNN) and n not in names]
    unknown += [n for n in names if n.startswith(PROCESSES) and n not in FORMULAS and n not in NO_TENSORS]
    assert unknown == []
    defs = set(tensorflow.raw_ops.__dict__)
    missing = {n for n in FORMULAS if not n.startswith(TORCH + OTHERS) and n not in defs}
    assert [name for name in sorted(missing) if not _op_def(name)] == []


def _op_def(name):
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(name) is not None


@pytest.mark.parametrize(
    "name", ["aten.no_such_op", "NoSuchOp", "aten.linalg_matrix_exp", "aten.stft", "Mfcc", "CholeskyGrad", "Conv2d"]
)
def test_an_unregistered_op_is_unknown(name):
    with pytest.raises(UnknownWork, match=f"no work formula for {name}"):
        work_of(make(name, [(2, 2)], [(2, 2)]))


def test_unknown_shapes_are_unknown_for_every_formula():
    """None dimensions or a None rank never make a number: every formula that computes raises."""
    attrs = {
        "dim": -1, "normalized_shape": [4], "num_groups": 1, "group": 1, "kernel_size": [2], "ksize": [1, 2, 2, 1],
        "weights_at": 2, "num_layers": 1, "bidirectional": False, "packed": False, "mode": 3, "has_biases": False,
        "weight_stride0": 2, "equation": "ij,jk->ik", "dims_self": [1], "dims_other": [1],
        "train": True, "p": 0.5, "training": False,
        "is_training": False, "use_input_stats": True, "transposed": False, "num_head": 1, "num_heads": 1,
        "embed_dim": 4, "use_gelu": True, "expand1": [1, 3], "expand2": [0], "expand3": [1, 2], "sumdim": [2, 3],
        "is_result": False, "output_mask": [True, True, True], "score_mod": "identity",
    }  # fmt: skip
    attrs_dropout = {"aten.feature_dropout", "aten.alpha_dropout"}
    for shape in (None, (None, None, None)):
        tensor = Tensor(shape, "float32")
        for name, entry in FORMULAS.items():
            if entry.zero_reason:
                continue
            inputs = (tensor,) * (2 if "insum" in name else 3 if "product" in name else 5)
            asked = {**attrs, "needs": [True] * len(inputs), "arrived": [True]}
            with pytest.raises(UnknownWork, match="training|shape" if name in attrs_dropout else "shape"):
                work_of(Op("x", name, "", inputs, (tensor,) * 3, asked))


def test_a_record_without_the_tensors_is_unknown():
    with pytest.raises(UnknownWork, match="no tensor input 1"):
        work_of(make("Conv2D", [(1, 4, 4, 1)], [(1, 4, 4, 1)]))
    with pytest.raises(UnknownWork, match="no output 0"):
        work_of(make("aten.relu", [(4,)], []))
    with pytest.raises(UnknownWork, match="'ksize'"):
        work_of(make("MaxPool", [(1, 4, 4, 1)], [(1, 2, 2, 1)]))


def test_a_second_formula_for_an_op_is_refused():
    with pytest.raises(ValueError, match="already has a work formula"):
        work.formula("aten.mm", source="twice")(lambda op: work.ZERO)
    assert registered_formulas()["aten.mm"] is FORMULAS["aten.mm"]


def test_integers_and_complex_numbers():
    ints = [Tensor((2, 3), "int64"), Tensor((3, 2), "int64")]
    assert work_of(make("aten.mm", ints, [Tensor((2, 2), "int64")])) == work.Work(mac=2 * 3 * 2, accumulators=2 * 2)
    assert work_of(make("aten.cumsum", ints[:1], ints[:1], dim=0)) == work.ZERO
    waves = [Tensor((2, 3), "complex64"), Tensor((3, 2), "complex64")]
    with pytest.raises(UnknownWork, match="complex"):
        work_of(make("aten.linalg_cross", waves, [Tensor((2, 2), "complex64")]))
