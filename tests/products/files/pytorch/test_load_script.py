"""TorchScript's code and pickles, read before PyTorch reads them: what reaches out of the program is refused."""

from __future__ import annotations

import pickle

import pytest

from reconcile.products.files.model_file import FileError
from reconcile.products.files.pytorch.load_script import check_code, check_pickle

WAY_OUT = "; --trust-file lets it."
FORWARD = (
    "class M(Module):\n  training : bool\n  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    return {}\n"
)
SAID = {
    "torch.from_file(x, True, 9)": "calls the operator aten::from_file, ",
    "torch.save(x, 'a')": "calls the operator aten::save, ",
    "torch . save(x, 'a')": "calls the operator aten::save, ",
    "torch": "calls the operator aten, ",
    "getattr(torch, 'save')(x, 'a')": "calls the operator aten, ",
    "ops.aten.save(x, 'a')": "calls the operator aten::save, ",
    "ops.aten": "calls the operator aten, ",
    "ops.image.read_file('a')": "calls the operator image::read_file, ",
    "ops.prim.fork(x)": "calls the operator prim::fork, ",
    "ops.prim.Print(x)": "calls the operator prim::Print, ",
    "fork(self, x)": "calls fork, ",
    "print(x)": "calls print, ",
    "rpc_async('a', x)": "calls rpc_async, ",
    "x\n  def __setstate__(self, a: int) -> None:\n    pass": "holds a __setstate__, ",
    "__torch__.torch.classes.profiling.SourceRef()": "uses the class __torch__.torch.classes.profiling.SourceRef, ",
    "(__torch__.torch.classes).profiling.SourceRef()": "uses the class __torch__.torch.classes, ",
    "(__torch__.torch).classes.profiling.SourceRef()": "uses the class __torch__.torch, ",
    "(__torch__).torch.classes.profiling.SourceRef()": "uses the class __torch__, ",
}
NO_SCRIPT = (
    "x # torch.save(x)", "x \\\n", "r'\\'", "b'a'", "'''a'''", '"""a"""', "x;", "`x`",
    "x\r", "x\f", "'a\n'", "1.torch", "0or", "größe", "$x", "x\0",
)  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_code_that_reaches_out(text: str) -> None:
    with pytest.raises(FileError) as caught:
        check_code("m.pt", "code/__torch__.py", FORWARD.format(text).encode())
    assert str(caught.value).startswith(f"m.pt {SAID[text]}")
    assert str(caught.value).endswith(WAY_OUT)


@pytest.mark.parametrize("text", NO_SCRIPT)
def test_code_that_is_no_torchscript(text: str) -> None:
    """Where Python's words and TorchScript's could differ."""
    with pytest.raises(FileError, match=r"^m\.pt cannot be loaded: its code/__torch__\.py is no TorchScript\.$"):
        check_code("m.pt", "code/__torch__.py", FORWARD.format(text).encode())


def test_code_that_computes() -> None:
    for text in (
        "torch.add(x, x)", "ops.prim.NumToTensor(1)", "(self.a).forward(x, )", 'getattr(self.a, "0")',
        "annotate(List[int], [])",
        "_0(x, )", "1.5e-05", "-1j", "torch.mul(x, CONSTANTS.c0)", "torch.format('torch.save(\\'{}\\') # {}', x, 1)",
        "1 if True else 2",
        "unchecked_cast(Tensor, x)", "__torch__.torch.nn.functional.gelu(x, )", "ops.quantized.linear_dynamic(x, self.p)",
    ):  # fmt: skip
        check_code("m.pt", "code/__torch__.py", FORWARD.format(text).encode())
    quantized = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
    check_code("m.pt", "code/__torch__.py", f"class M(Module):\n  p : {quantized}\n".encode())


def test_pickles_of_torchscript() -> None:
    storage = b"ctorch\nFloatStorage\n"
    for text in (
        b"c__torch__.a.b\nM\n)\x81.",
        b"ctorch._utils\n_rebuild_tensor_v2\n" + storage + b".",
        b"ccollections\nOrderedDict\n)R.",
    ):
        check_pickle("m.pt", "data.pkl", b"\x80\x02" + text)
    check_pickle("m.pt", "data.pkl", b"\x80\x02c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n.")
    for text in (
        b"cos\nsystem\n.", b"c__builtin__\neval\n.", b"ctorch\nload\n.", b"ctorch._utils\n_import_dotted_name\n.",
        b"c__torch__.torch.classes.profiling\nSourceRef\n.", b"c__torch__.torch.classes\n_NnapiCompilation\n.",
        b"(ios\nsystem\n.",
        b"\x82\x01.", b"X\x02\0\0\0osX\x06\0\0\0system\x93.",
    ):  # fmt: skip
        with pytest.raises(FileError, match="holds something pickled"):
            check_pickle("m.pt", "data.pkl", b"\x80\x02" + text)
    for data in (b"", b"\x80\x02", b"\xff", b"X\xff\xff\xff\xff", pickle.dumps(1)[:-1]):
        with pytest.raises(FileError, match=r"its data\.pkl is damaged"):
            check_pickle("m.pt", "data.pkl", data)
