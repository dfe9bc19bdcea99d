"""Programs that hide a product from PyTorch's dispatcher, two and more of each kind, and ordinary ones that look like them.

The network has two linear layers and ``compute(layer, x)`` between them, as in test_seal.py, whose ways these are not.
"""

from __future__ import annotations

import ctypes
import io
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch.utils import _python_dispatch
from torch.utils.cpp_extension import include_paths, library_paths

from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import Trace
from reconcile.core.work import UnknownWork
from reconcile.work import work_of
from tests.adapters.pytorch.tracing.test_seal import PASSES, WEIGHT, Middle, net, product
from tests.adapters.pytorch.training_models import Model

MATRIX = torch.from_numpy(WEIGHT.copy())
MATMUL = BUILT_IN["matmul"]


class Drawn(Model):
    """With an input of both signs."""

    def example(self, device):
        return [torch.randn(self.shape, generator=torch.Generator().manual_seed(0)).to(device)]


def trace(compute: Callable[[Any, Any], Any], of: str, make: Callable[..., Any] = net) -> Trace:
    """The trace of the network."""
    return PASSES[of](Drawn(make(compute), 10, 4, device="cpu"))


def is_complete(found: Trace) -> bool:
    """Whether a number of multiply-adds would be published."""
    for op in found.ops:
        try:
            work_of(op)
        except UnknownWork as error:
            if MATMUL.weighs(error.components):
                return False
    return not found.problems


def memory(tensor: torch.Tensor) -> Any:
    """The elements, by their address alone."""
    return np.frombuffer((ctypes.c_float * tensor.numel()).from_address(tensor.data_ptr()), np.float32).reshape(
        tensor.shape
    )


def overwrite(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, with its product in its memory."""
    memory(tensor)[:] = memory(tensor) @ WEIGHT
    return tensor


def last(compute):
    """A network that returns what is computed of its one layer's result."""

    class Net(Middle):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            return compute(self, self.layer(x))

    return Net


def elements(values: Any, make: Callable[[float], Any]) -> torch.Tensor:
    """What ``make`` makes of each number, in its place."""
    return torch.stack([make(float(value)) for value in np.ravel(values)]).reshape(np.shape(values))


def in_mapped_file(_, x):
    with tempfile.TemporaryDirectory() as folder:
        mapped = np.memmap(os.path.join(folder, "values"), np.float32, "w+", shape=(10, 4))
        held = torch.from_numpy(mapped)
        mapped[:] = product(x)
        return held.clone()


def from_all_bytes(_, x):
    """Each whole number up to 255 leaves by item(), and so does none of what is computed of them."""
    for number in range(256):
        torch.tensor(number).item()
    return x + torch.tensor((256 * product(x)).astype(np.int64) % 256)


def from_file(_, x):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "values")
        product(x).tofile(path)
        return torch.from_file(path, size=40, dtype=torch.float32).reshape(10, 4).clone()


def moved(tensor, x, move):
    """Memory that is somewhere else, or of another size, when it is written."""
    move(tensor)
    memory(tensor)[:] = memory(x.detach()) @ WEIGHT
    return tensor


def fused(_, x):
    x = x[None].detach()
    return overwrite(torch.nn.functional.scaled_dot_product_attention(x, x, x))[0]


def each_true(_, x):
    out, found = torch.zeros(10, 4), product(x) > 0
    for at in np.ndindex(10, 4):
        out[at] = bool(found[at])
    return out


def in_fixed_point(_, x):
    rows, columns = [[int(v * 1e6) for v in row] for row in x.tolist()], (WEIGHT.T * 1e3).astype(int).tolist()
    return torch.tensor([[sum(a * b for a, b in zip(row, c, strict=True)) for c in columns] for row in rows]) / 1e9


def of_text(_, x):
    numbers = [[float(f"{value:.9e}") for value in row] for row in x.detach()]
    return torch.tensor(
        [[sum(a * b for a, b in zip(row, c, strict=True)) for c in WEIGHT.T.tolist()] for row in numbers]
    )


def by_interface(_, x):
    class Values:
        def __init__(self, tensor):
            self.__array_interface__ = {"shape": (10, 4), "typestr": "<f4", "data": (tensor.data_ptr(), False)}

    out = torch.zeros(10, 4)
    np.matmul(np.asarray(Values(x.detach())), WEIGHT, out=np.asarray(Values(out)))
    return out


def in_memory_file(_, x):
    """Of the process: nothing of the tensor but its address."""
    out, x = torch.zeros(10, 4), x.detach().contiguous()
    with open("/proc/self/mem", "r+b", 0) as file:
        file.seek(x.data_ptr())
        values = np.frombuffer(file.read(x.nbytes), np.float32).reshape(10, 4)
        file.seek(out.data_ptr())
        file.write((values @ WEIGHT).tobytes())
    return out


def by_pthread(_, x):
    out, library = torch.zeros(10, 4), ctypes.CDLL(None)

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def run(_):
        torch.mm(x.detach(), MATRIX, out=out)

    thread = ctypes.c_ulong()
    library.pthread_create(ctypes.byref(thread), None, run, None)
    library.pthread_join(thread, None)
    return out


def without(context, compute):
    def within(_, x):
        with context():
            return compute(x.detach())

    return within


def storage_of_bytes(values: Any) -> torch.UntypedStorage:
    return torch.UntypedStorage.from_buffer(values.tobytes(), byte_order="native", dtype=torch.uint8)


def byte_by_byte(_, x):
    out = torch.zeros(10, 4)
    storage = out.untyped_storage()
    for at, byte in enumerate(product(x).tobytes()):
        storage[at] = byte
    return out


def edited_file(_, x):
    """What torch.save wrote, with other bytes in the tensor's place."""
    file = io.BytesIO()
    torch.save(x.detach().clone(), file, _use_new_zipfile_serialization=False)
    return torch.load(io.BytesIO(file.getvalue().replace(memory(x.detach()).tobytes(), product(x).tobytes())))


def kept(layer, x):
    if not hasattr(layer, "product"):
        layer.product = torch.from_numpy(product(x))
    return layer.product


def normalised(_, x):
    values = x.detach().numpy().astype(float)
    return torch.from_numpy(np.round((values - values.mean()) / values.std() @ WEIGHT, 4).astype(np.float32))


def kept_numbers(layer, x):
    if not hasattr(layer, "factors"):
        layer.factors = product(x).sum(0).tolist()
    return x * layer.factors[0] + layer.factors[1]


def kept_array(layer, x):
    if not hasattr(layer, "array"):
        layer.array = product(x)
    return torch.from_numpy(layer.array.copy())


def from_code_book(_, x):
    """Each number of which has left by item(), once."""
    for number in range(-8, 8):
        torch.tensor(number / 4).item()
    return each_of(lambda value: max(-8, min(7, round(value * 4))) / 4, x)


def each_of(code, x):
    out = torch.zeros(10, 4)
    for at, value in np.ndenumerate(product(x)):
        out[at] = code(float(value))
    return out


def by_several_operators(_, x):
    """Each gets eight truths as numbers."""
    readers = (
        torch.zeros(()).add,
        torch.ones(()).mul,
        torch.zeros(()).sub,
        torch.ones(()).div,
        lambda v: torch.full((), v),
    )
    numbers = 1.0 + (product(x).reshape(5, 8) > 0)
    return torch.stack([read(float(v)) for read, row in zip(readers, numbers, strict=True) for v in row]).reshape(10, 4)


def in_order(values, x):
    return torch.stack([x.select(0, int(row)) for row in np.argsort((values @ WEIGHT)[:, 0])])


class Exporting:
    """A tensor that gives its memory away by what no method of it calls."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **_):
        export = getattr(torch._C, "_to_dlpack_versioned", torch._C._to_dlpack)
        return export(self.tensor)

    def __dlpack_device__(self):
        return 1, 0


def few_written(_, x):
    few = torch.zeros(4)
    np.copyto(few.numpy(), product(x).sum(0))
    return x + few


NO_MODES = _python_dispatch._disable_current_modes
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "1 einsum into an attribute": lambda m, x: (
        np.einsum("ij,jk->ik", x.detach().numpy(), WEIGHT, out=m.kept.numpy()),
        m.kept,
    )[1],
    "1 an input's own memory": lambda _, x: overwrite(x.detach()),
    "1 a few numbers": few_written,
    "1 a mapped file": in_mapped_file,
    "1 a file as a tensor": from_file,
    "1 another size": lambda _, x: moved(torch.zeros(10, 4), x, lambda out: out.untyped_storage().resize_(200)),
    "1 moved to shared memory": lambda _, x: moved(torch.zeros(10, 4), x, torch.Tensor.share_memory_),
    "1 after a fused call": fused,
    "2 a tensor's constructor": lambda _, x: torch.FloatTensor(product(x).tolist()),
    "2 arange": lambda _, x: elements(product(x), lambda v: torch.arange(v, v + 0.5)[0]),
    "2 bounds": lambda _, x: elements(product(x), lambda v: torch.zeros(()).clamp(v, v)),
    "2 a draw without a width": lambda _, x: elements(product(x), lambda v: torch.empty(()).uniform_(v, v)),
    "2 whole numbers": lambda _, x: elements(product(x) * 1e6, lambda v: torch.full((), int(v)) / 1e6),
    "2 bytes": lambda _, x: torch.from_numpy(np.clip(product(x) * 20 + 128, 0, 255).astype(np.uint8)) / 20,
    "2 signs": lambda _, x: torch.from_numpy(np.sign(product(x))),
    "2 a mask": lambda _, x: x * torch.from_numpy(product(x) > 0),
    "2 truth by truth": each_true,
    "2 normalised": normalised,
    "2 all bytes left before": from_all_bytes,
    "2 a number beside one that left": lambda _, x: x * float(product(x).sum()) + 0 * x.sum().item(),
    "2 rows in an order": lambda _, x: torch.stack([x[int(row)] for row in np.argsort(product(x)[:, 0])]),
    "2 numbers of a code book": from_code_book,
    "2 an order of an array that no method gave": lambda _, x: in_order(torch._C.TensorBase.numpy(x.detach()), x),
    "2 an order of a capsule": lambda _, x: in_order(np.from_dlpack(Exporting(x.detach())), x),
    "2 eight numbers of each operator": by_several_operators,
    "3 fixed point": in_fixed_point,
    "3 text": of_text,
    "4 an array's interface": by_interface,
    "4 the process's memory": in_memory_file,
    "5 a thread of the system": by_pthread,
    "6 no functions of classes": without(
        torch._C.DisableTorchFunctionSubclass, lambda x: torch.tensor((np.asarray(x.tolist()) @ WEIGHT).tolist())
    ),
    "6 no dispatch": without(torch._C._DisableTorchDispatch, lambda x: x @ MATRIX),
    "6 no modes": without(NO_MODES, lambda x: x @ MATRIX),
    "7 a storage that is taken": lambda _, x: torch.empty(0).set_(storage_of_bytes(product(x)), 0, (10, 4), (4, 1)),
    "7 a storage that is copied": lambda m, x: (m.held.untyped_storage().copy_(storage_of_bytes(product(x))), m.held)[
        1
    ],
    "7 byte by byte": byte_by_byte,
    "7 a file that is edited": edited_file,
    "9 kept from the first call": kept,
    "9 an array kept from the first call": kept_array,
    "9 numbers kept from the first call": kept_numbers,
}  # fmt: skip
"""By the issue's kind and the way back."""


@pytest.mark.filterwarnings("ignore:.*(TypedStorage|torch.storage)")
@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("way", WAYS)
def test_a_hidden_product_withholds_the_number(way, of):
    if way == "4 the process's memory" and not os.path.exists("/proc/self/mem"):
        pytest.skip("this system has no file of a process's memory")
    assert not is_complete(trace(WAYS[way], of))


class Reads(torch.nn.Module):
    """Lets each number of its input leave."""

    def forward(self, x):
        return [[number.item() for number in row] for row in x]


def five_read(compute):
    """The network, whose middle layer has five that may let eight numbers leave each."""

    class Net(net(compute)):
        def __init__(self):
            super().__init__()
            self.middle.parts = torch.nn.ModuleList(Reads() for _ in range(5))

    return Net


def read_by_five(layer, x):
    return [row for part, rows in zip(layer.parts, x.detach().split(2), strict=True) for row in part(rows)]


def by_items_of_five(layer, x):
    rows, columns = read_by_five(layer, x), WEIGHT.T.tolist()
    return torch.tensor([[sum(a * b for a, b in zip(row, c, strict=True)) for c in columns] for row in rows])


def scaled_by_items_of_five(layer, x):
    """A number of each layer scales, and a table of numpy's is added."""
    for rows in read_by_five(layer, x)[::2]:
        x = x * (1 + max(rows) / 127)
    return x + torch.from_numpy(WEIGHT.repeat(3, axis=0)[:10].copy())


@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize(("way", "is_ordinary"), [(by_items_of_five, False), (scaled_by_items_of_five, True)])
def test_numbers_that_leave_several_layers_make_no_array(of, way, is_ordinary):
    assert is_complete(trace(way, of, make=five_read)) == is_ordinary


@pytest.mark.parametrize("of", PASSES)
def test_a_product_on_a_thread_that_was_there_withholds_the_number(of):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert not is_complete(trace(lambda _, x: pool.submit(torch.mm, x.detach(), MATRIX).result(), of))


RETURNED: dict[str, Callable[[Any, Any], Any]] = {
    "bytes": lambda _, x: (x, product(x).tobytes()),
    "a mask": lambda _, x: (x, product(x) > 0),
    "fields": lambda _, x: (x, np.array([tuple(row) for row in product(x)], "f4,f4,f4,f4")),
    "decimals": lambda _, x: (x, [Decimal(float(value)) for value in product(x).ravel()]),
    "a set": lambda _, x: (x, set(product(x).ravel().tolist())),
    "labels": lambda _, x: (x, product(x).argmax(1).tolist()),
    "a table": lambda _, x: (x, pandas.DataFrame(product(x))),
    "an object": lambda _, x: (x, SimpleNamespace(kept={"deep": [SimpleNamespace(product=product(x))]})),
    "a weight": lambda m, x: (overwrite(m.layer.weight.detach()), x)[1],
    "a buffer of another size": lambda m, x: (moved(m.held, x, lambda held: held.untyped_storage().resize_(800)), x)[1],
}  # fmt: skip


@pytest.mark.parametrize("what", RETURNED)
def test_a_result_that_was_computed_outside_withholds_the_number(what):
    assert not is_complete(trace(RETURNED[what], "call", make=last))


def in_backward(change):
    """The identity, whose gradient ``change`` makes another one."""

    class Changing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return change(gradient.contiguous().clone())

    return lambda _, x: Changing.apply(x)


def after_gradient(change):
    """A layer whose weight's gradient is changed once it is there."""

    def compute(layer, x):
        if not hasattr(layer, "inner"):
            layer.inner = torch.nn.Linear(4, 4)
            layer.inner.weight.register_post_accumulate_grad_hook(change)
        return layer.inner(x)

    return compute


def precondition(weight):
    memory(weight.data)[:] -= 0.01 * (memory(weight.grad) @ WEIGHT)


def scale(weight):
    overwrite(weight.grad)


def exchange(weight):
    weight.data = torch.from_numpy(weight.detach().numpy() - 0.01 * (weight.grad.numpy() @ WEIGHT))


def attended(_, x):
    query = x[None]
    query.register_hook(overwrite)
    return torch.nn.functional.scaled_dot_product_attention(query, query.detach(), query.detach())[0]


BACKWARD = {
    "an array": in_backward(lambda gradient: torch.from_numpy(gradient.numpy() @ WEIGHT)),
    "in place": in_backward(overwrite),
    "signs": in_backward(lambda gradient: torch.from_numpy(np.sign(gradient.numpy() @ WEIGHT))),
    "a hook of attention": attended,
    "a weight's gradient": after_gradient(scale),
    "an optimizer in place": after_gradient(precondition),
    "an optimizer that exchanges": after_gradient(exchange),
}


@pytest.mark.parametrize("way", BACKWARD)
def test_a_product_of_the_backward_pass_or_the_optimizer_withholds_the_number(way):
    assert not is_complete(trace(BACKWARD[way], "step"))


def multiply_some(x):
    """Rows of which two follow one that stays, in numpy: nothing of it is dispatched."""
    out, some = x.numpy().copy(), np.arange(len(x)) % 3 > 0
    out[some] = out[some] @ WEIGHT
    return torch.from_numpy(out)


TAGGED = {
    "a bias": ("(Tensor b, Tensor x, Tensor w) -> Tensor", lambda b, x, w: b + x @ w, lambda call, x: call(x, x, MATRIX)),
    "a scale": ("(Tensor s, Tensor x, Tensor w) -> Tensor", lambda s, x, w: s * (x @ w), lambda call, x: call(x[0], x, MATRIX)),
    "a list": ("(Tensor[] given) -> Tensor", lambda given: given[0] @ given[1], lambda call, x: call([x, MATRIX])),
    "names": ("(*, Tensor x, Tensor w) -> Tensor", lambda x, w: x @ w, lambda call, x: call(x=x, w=MATRIX)),
    "a triangle": ("(Tensor x) -> Tensor", lambda x: x @ torch.tril(MATRIX + 2), lambda call, x: call(x)),
    "later rows": ("(Tensor x) -> Tensor", lambda x: torch.cat([x[:1], x[1:] @ MATRIX]), lambda call, x: call(x)),
    "two rows of three": ("(Tensor x) -> Tensor", lambda x: multiply_some(x), lambda call, x: call(x)),
}  # fmt: skip
"""Operators of a library that calls them pointwise, of which one element of the first tensor moves no other one."""


@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("way", TAGGED)
def test_a_tag_is_true_of_every_tensor_and_element(way, of):
    schema, run, call = TAGGED[way]
    with torch.library._scoped_library("reconcile_attack", "DEF") as library:
        library.define("hides" + schema, tags=(torch.Tag.pointwise,))
        library.impl("hides", run, "CompositeExplicitAutograd")
        found = trace(lambda _, x: call(torch.ops.reconcile_attack.hides, x.detach()), of)
    (hiding,) = [op for op in found.ops if op.op == "reconcile_attack.hides"]
    rows = 10 - (way == "later rows")
    assert not is_complete(found) or work_of(hiding).mac == rows * 4 * 4  # what its kernel dispatched


def attack_by_overloads():
    """Overloads of PyTorch's operators that multiply; afterwards TorchScript finds no ``mul`` any more in this process."""
    with torch.library._scoped_library("aten", "FRAGMENT") as library:
        for name in ("relu", "mul"):
            library.define(f"{name}.reconcile_attack(Tensor self, Tensor other) -> Tensor")
            library.impl(f"{name}.reconcile_attack", lambda x, w: x @ w, "CPU")
            call = getattr(torch.ops.aten, name).reconcile_attack
            assert not is_complete(trace(lambda _, x, call=call: call(x.detach(), MATRIX), "call"))


def test_an_overload_that_is_added_to_pytorchs_operators_is_not_pytorchs():
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import attack_by_overloads; attack_by_overloads()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("name", "call"), [("celu", torch.nn.functional.celu), ("rot90", lambda x: x.rot90(2))])
def test_a_kernel_where_pytorch_has_none_withholds_the_number(name, call):
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(name, lambda x, *_: x @ MATRIX, "CPU")
        assert not is_complete(trace(lambda _, x: call(x.detach()), "call"))
    assert is_complete(trace(lambda _, x: call(x.detach()), "call"))


class Array(torch.Tensor):
    """A tensor of a class of its own, which computes in numpy."""

    @staticmethod
    def __new__(cls, values):
        tensor = torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32)
        tensor.values = values
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert func._schema.name == "aten::mm"
        return cls(args[0].values @ args[1].detach().numpy())


def test_a_tensor_that_computes_in_numpy_withholds_the_number():
    def multiply(_, x):
        return x, Array(x.detach().numpy()) @ MATRIX

    assert not is_complete(trace(multiply, "call", make=last))


PLAIN_SOURCE = """
#include <thread>
extern "C" void by_loops(const float* x, const float* w, float* out) {
  for (int i = 0; i < 10; i++)
    for (int j = 0; j < 4; j++) {
      float sum = 0;
      for (int k = 0; k < 4; k++) sum += x[4 * i + k] * w[4 * k + j];
      out[4 * i + j] = sum;
    }
}
extern "C" void on_a_thread(const float* x, const float* w, float* out) {
  std::thread(by_loops, x, w, out).join();
}
"""
ATEN_SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm_cpu_dispatch.h>
extern "C" void by_aten(float* x, float* w, float* out) {
  auto result = at::from_blob(out, {10, 4}, at::kFloat);
  at::cpu::mm_out(result, at::from_blob(x, {10, 4}, at::kFloat), at::from_blob(w, {4, 4}, at::kFloat));
}
"""


def compile_library(source, folder, *options):
    """What a C++ compiler makes of the source, loaded."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ on this machine to compile an extension with")
    (folder / "product.cpp").write_text(source)
    command = [compiler, "-std=c++20", "-shared", "-fPIC", "product.cpp", "-o", "product.so", "-pthread", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "product.so"))


def check_extension(library, name):
    """Into memory of an operator's, and into an attribute's."""

    def run(layer, x, out):
        x = x.detach().contiguous()
        getattr(library, name)(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, MATRIX, out)))
        assert torch.allclose(out, torch.from_numpy(product(x)), atol=1e-6)
        return out

    for of in PASSES:
        assert not is_complete(trace(lambda layer, x: run(layer, x, torch.empty(10, 4)), of))
        assert not is_complete(trace(lambda layer, x: run(layer, x, layer.held), of))


@pytest.mark.parametrize("name", ["by_loops", "on_a_thread"])
def test_a_product_of_an_extension_withholds_the_number(name, tmp_path):
    check_extension(compile_library(PLAIN_SOURCE, tmp_path), name)


@pytest.mark.slow
def test_a_product_of_pytorchs_kernel_that_an_extension_calls_withholds_the_number(tmp_path):
    compiled = [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    folders = [*(f"-I{path}" for path in include_paths()), *(f"-L{path}" for path in library_paths())]
    library = compile_library(ATEN_SOURCE, tmp_path, *compiled, *folders, "-ltorch_cpu", "-lc10")
    check_extension(library, "by_aten")


TABLE: dict[int, Any] = {}


def table_of(rows):
    """Positions, computed once for the program."""
    if rows not in TABLE:
        angles = np.outer(np.arange(rows), 1 / 10000 ** (np.arange(4) / 4))
        TABLE[rows] = torch.from_numpy(np.sin(angles).astype(np.float32))
    return TABLE[rows]


def rotated(_, x):
    """By complex numbers of numpy's."""
    turns = np.exp(1j * np.outer(np.arange(10), [1.0, 0.1])).astype(np.complex64)
    pairs = torch.view_as_complex(x.reshape(10, 2, 2).contiguous())
    return torch.view_as_real(pairs * torch.from_numpy(turns)).reshape(10, 4)


def in_windows(_, x):
    """A mask as Swin makes it: regions are numbered in a loop."""
    mask, region = torch.zeros(10, 4), 0
    for rows in (slice(0, 5), slice(5, 10)):
        for columns in (slice(0, 2), slice(2, 4)):
            mask[rows, columns] = region
            region += 1
    return x + mask


def with_schedule(_, x):
    """Steps of a diffusion, whose products numpy makes of constants."""
    kept = np.cumprod(1 - np.linspace(1e-4, 2e-2, 20))
    for step in reversed(kept):
        x = x * math.sqrt(step) + torch.randn_like(x) * math.sqrt(1 - step)
    return x


def to_experts(_, x):
    """Rows to whom their largest element sends them."""
    best = x.argmax(-1)
    order, counts = best.argsort(), torch.bincount(best, minlength=4).tolist()
    return torch.cat([part * (expert + 1) for expert, part in enumerate(x[order].split(counts))])


def picked(_, x):
    """One row after the other, as suppression of overlapping boxes picks them."""
    scores, rows = x[:, 0].detach().clone(), []
    for _ in range(5):
        rows.append(int(scores.argmax()))
        scores[rows[-1]] = -math.inf
    return torch.cat([x[rows], x[rows]])


def rounded(_, x):
    """To 8 bits, by a range that the program takes out."""
    least, most = x.min().item(), x.max().item()
    scale = (most - least) / 255
    zero = round(-least / scale)
    return (torch.clamp(torch.round(x / scale) + zero, 0, 255) - zero) * scale


def halved(_, x):
    """Until it is small."""
    while x.detach().norm().item() > 1:
        x = x / 2
    return x


def cropped(_, x):
    starts = (x.detach().abs() * 2).int().clamp(0, 3).tolist()
    return torch.stack(
        [torch.nn.functional.pad(row[start[0] :], (0, start[0])) for row, start in zip(x, starts, strict=True)]
    )


def with_ids(_, x):
    """Drawn by the values, and handled as a list."""
    ids = x.detach().softmax(1).multinomial(1)[:, 0].tolist()
    return x + torch.nn.functional.one_hot(torch.tensor(ids), 4)


def logged(layer, x):
    values = x.detach().numpy()
    layer.log = {"mean": float(values.mean()), "products": (values.T @ values).tolist(), "text": str(x)}
    return x * 1


def resized(_, x):
    held = torch.zeros(10, 4)
    held.untyped_storage().resize_(0)
    held.untyped_storage().resize_(160)
    return held.copy_(x.detach()) + x


ORDINARY: dict[str, Callable[[Any, Any], Any]] = {
    "positions for all calls": lambda _, x: x + table_of(len(x)),
    "slopes": lambda _, x: x * torch.tensor([2 ** (-2 * (head + 1)) for head in range(4)]),
    "windows": in_windows,
    "a schedule": with_schedule,
    "experts": to_experts,
    "rows one by one": picked,
    "8 bits": rounded,
    "a loop": halved,
    "crops": cropped,
    "a log": logged,
    "memory that is given back": resized,
    "shared memory": lambda _, x: torch.zeros(10, 4).share_memory_().copy_(x.detach()) + x,
    "a result that grows": lambda _, x: torch.mul(x.detach(), 2, out=torch.empty(0)),
    "sampled ids": with_ids,
    "a permutation": lambda _, x: x[torch.from_numpy(np.random.permutation(10))],
    "rows at random": lambda _, x: x[random.sample(range(10), 10)],
    "mixed rows": lambda _, x: (share := np.random.beta(1, 1)) * x + (1 - share) * x.flip(0),
    "clipped": lambda _, x: x * min(1.0, 1 / (float(x.detach().norm()) + 1e-6)),
    "a function of PyTorch's": lambda _, x: torch.func.vmap(lambda row: row * 2)(x),
    "sampled": lambda _, x: x + torch.distributions.Normal(x.detach(), 1.0).sample(),
}  # fmt: skip


@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("way", ORDINARY)
def test_an_ordinary_program_is_published(way, of):
    assert is_complete(trace(ORDINARY[way], of))


ORDINARY_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers that left": lambda _, x: (x, {"mean": x.mean().item(), "most": x.max().item()}),
    "names of what is largest": lambda _, x: (x, ["abcd"[at] for at in x.argmax(1).tolist()]),
    "sizes and settings": lambda _, x: (x, x.shape, len(x), {"eps": 1e-5, "name": "a"}),
    "an array": lambda _, x: (x, x.detach().numpy()),
    "a decision": lambda _, x: (x, bool((x > 100).any())),
    "a table of what ran": lambda _, x: (x, pandas.DataFrame(x.detach().numpy(), columns=list("abcd"))),
    "an object that counts time": lambda _, x: SimpleNamespace(result=x, seconds=time.perf_counter(), scale=WEIGHT),
}


@pytest.mark.parametrize("what", ORDINARY_RESULTS)
def test_an_ordinary_result_is_published(what):
    assert is_complete(trace(ORDINARY_RESULTS[what], "call", make=last))


def test_complex_numbers_of_numpys_are_a_table():
    assert is_complete(trace(rotated, "call"))
