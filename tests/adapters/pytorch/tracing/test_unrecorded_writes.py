"""A kernel that the dispatcher does not meet makes a trace incomplete, by the layer that made its memory."""

from __future__ import annotations

import ctypes

import pytest

torch = pytest.importorskip("torch")

from reconcile.adapters.pytorch import trace as inference  # noqa: E402
from reconcile.adapters.pytorch import training  # noqa: E402
from reconcile.adapters.pytorch.tracing.unrecorded_writes import MARK, MEMORY, WRITTEN_BY_NO_OPERATOR, MarkedMemory  # noqa: E402
from tests.adapters.pytorch.tracing.test_numpy_crossings import net  # noqa: E402
from tests.adapters.pytorch.training_models import Model  # noqa: E402


def kernel(source, target, factor=2.0):
    """What an extension does: it takes addresses, and PyTorch sees nothing of it."""
    read, write = ((ctypes.c_float * t.numel()).from_address(t.data_ptr()) for t in (source, target))
    for at, value in enumerate(read):
        write[at] = factor * value


def computed(memory):
    def compute(x):
        out = memory(x)
        kernel(x, out)
        return out

    return compute


class Doubled(torch.autograd.Function):
    """A kernel forward, and another one backward."""

    @staticmethod
    def forward(ctx, x):
        return computed(torch.empty_like)(x)

    @staticmethod
    def backward(ctx, gradient):
        return computed(torch.empty_like)(gradient.contiguous())


KERNELS = {
    "empty": computed(lambda x: torch.empty(3, 4)),
    "empty_like": computed(torch.empty_like),
    "new_empty": computed(lambda x: x.new_empty(3, 4)),
    "empty_strided": computed(lambda x: torch.empty_strided((3, 4), (4, 1))),
    "zeros": computed(lambda x: torch.zeros(3, 4)),
    "zeros_like": computed(torch.zeros_like),
    "new_zeros": computed(lambda x: x.new_zeros(3, 4)),
    "a view of it": computed(lambda x: torch.empty(2, 3, 4)[0]),
    "added to in place": lambda x: computed(torch.empty_like)(x).add_(1),
}


def problems(compute):
    return [(p.op, p.layer, p.reason) for p in inference.trace(Model(net(compute), 3, 6, device="cpu")).problems]


@pytest.mark.parametrize("way", KERNELS)
def test_values_from_no_operator_are_unknown_by_layer(way):
    assert problems(KERNELS[way]) == [(MEMORY, "middle", WRITTEN_BY_NO_OPERATOR)]


def filled(x):
    out = torch.empty(3, 4)
    for row in range(3):
        out[row] = x[row]
    return out


def given_as_out(x):
    return torch.mul(x, 2, out=torch.empty(3, 4))


def freed_and_made_again(x):
    for _ in range(50):
        torch.empty(3, 4)
        x = x * 2
    return x


def taken_again(between):
    """Memory that is given back and taken again has what whoever had it left there, at the same address or at another."""

    def compute(x):
        out = torch.empty(3, 4)
        storage, size = out.untyped_storage(), out.nbytes
        storage.resize_(0)
        kept = between()
        storage.resize_(size)
        ctypes.memset(storage.data_ptr(), 7, size)
        return x + out * 0 + kept

    return compute


def grown(x):
    out = torch.empty(3, 4)
    out.resize_(64, 64)
    ctypes.memset(out.data_ptr(), 7, out.nbytes)
    return x + out[0, 0] * 0


HARMLESS = {
    "written in parts": filled,
    "written as out": given_as_out,
    "made by a distribution": lambda x: x + torch.empty(3, 4).normal_(),
    "never written": lambda x: x + torch.empty(3, 4),
    "zeros": lambda x: x + torch.zeros_like(x),
    "its shape alone": lambda x: x + torch.ones_like(torch.empty(3, 4)),
    "address of freed memory": freed_and_made_again,
    "freed and taken again": taken_again(lambda: torch.ones(3, 4)),
    "freed and taken again at once": taken_again(lambda: 0),
    "made larger": grown,
    "integers": lambda x: x + torch.empty(3, 4, dtype=torch.int64).zero_(),
    "nothing in it": lambda x: torch.cat([x, torch.empty(0, 4)]),
    "half precision": lambda x: x + torch.empty(3, 4, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("way", HARMLESS)
def test_memory_that_operators_write_is_none(way):
    assert problems(HARMLESS[way]) == []


def test_memory_is_followed_until_it_is_given_back():
    """Wherever the allocator takes other."""
    memory, out = MarkedMemory(lambda: ""), torch.empty(3, 4)
    memory.mark(out, MARK)
    before = dict(vars(torch.UntypedStorage))
    with memory.forget_freed():
        assert memory.made
        out.untyped_storage().resize_(0)
        assert not memory.made
    assert dict(vars(torch.UntypedStorage)) == before


def test_a_step_names_the_layer_of_its_kernels():
    step = training.trace(Model(net(Doubled.apply), 3, 6, device="cpu"))
    assert [(p.op, p.layer) for p in step.problems] == [(MEMORY, "middle")]


def test_a_large_cache_is_not_touched_whole():
    large = 1 << 30  # floats: 4 GiB, which no page is allocated for until somebody writes

    def compute(x):
        before = _resident()
        cache = torch.empty(large)
        cache[:12] = x.reshape(-1)
        assert _resident() - before < 1 << 28
        return x

    assert problems(compute) == []


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
