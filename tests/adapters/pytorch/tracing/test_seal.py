"""Values that no recorded operator computed make a trace incomplete, whatever way they took; constants and decisions do not."""

from __future__ import annotations

import _thread
import array
import copy
import ctypes
import io
import random
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
import torch

import reconcile
from reconcile.adapters.pytorch import trace as inference
from reconcile.adapters.pytorch import training
from reconcile.adapters.pytorch.tracing import seal
from reconcile.adapters.pytorch.tracing.seal import COMPUTED, FEW, Seal
from reconcile.adapters.pytorch.tracing.tensor_memory import LARGE
from reconcile.core.records import CALLED_ONCE, NOT_CALLED_AGAIN, POINTWISE
from tests.adapters.pytorch.training_models import Model

WEIGHT = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


class Rows(Model):
    """Of which no two input rows are equal, and whose first is not the least."""

    def example(self, device):
        rows = torch.arange(float(torch.Size(self.shape).numel())).reshape(self.shape).roll(1, 0)
        return [rows.to(device) / rows.numel()]


class Middle(torch.nn.Module):
    """With memory of its own, which is there before the call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("held", torch.zeros(10, 4))
        self.kept = torch.zeros(10, 4)


def net(compute):
    """Two linear layers, with ``compute(layer, x)`` in a layer ``middle`` between them."""
    middle = type("Computing", (Middle,), {"forward": compute})

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.middle, self.last = torch.nn.Linear(4, 4), middle(), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.last(self.middle(self.first(x)))

    return Net


PASSES = {"call": inference.trace, "step": training.trace}


def problems(compute, of="call", make=net):
    return [(p.op, p.layer) for p in PASSES[of](Rows(make(compute), 10, 4, device="cpu")).problems]


def product(x):
    """The product that no operator computes."""
    return x.detach().numpy() @ WEIGHT


def kernel(values, target):
    """What an extension does: it writes at an address, and PyTorch sees nothing of it."""
    values = np.ascontiguousarray(values, np.float32)
    ctypes.memmove(target.data_ptr(), values.ctypes.data, values.nbytes)
    return target


def each_set(x):
    out = torch.empty(10, 4)
    for at, value in np.ndenumerate(product(x)):
        out[at] = float(value)
    return out


def of_numbers(x):
    rows, columns = range(len(x)), WEIGHT.T.tolist()
    return torch.tensor([[sum(x[r, i].item() * c[i] for i in range(4)) for c in columns] for r in rows])


def of_lists(x):
    return torch.tensor([[sum(map(float.__mul__, row, column)) for column in WEIGHT.T.tolist()] for row in x.tolist()])


def on_thread(x):
    """Which threading did not start."""
    done, found = _thread.allocate_lock(), []
    done.acquire()

    def run():
        found.append(x.detach() @ torch.from_numpy(WEIGHT))
        done.release()

    _thread.start_new_thread(run, ())
    done.acquire()
    return found[0]


def without_functions(x):
    with torch._C.DisableTorchFunction():
        return torch.from_numpy(product(x))


def as_storage(layer, x):
    layer.held.untyped_storage().copy_(torch.frombuffer(bytearray(product(x)), dtype=torch.float32).untyped_storage())
    return layer.held


def saved(x):
    file = io.BytesIO()
    torch.save(torch.from_numpy(product(x)), file)
    file.seek(0)
    return torch.load(file)


WAYS = {
    "an array": lambda _, x: torch.from_numpy(product(x)),
    "a copy of it": lambda _, x: torch.tensor(product(x)),
    "asarray": lambda _, x: torch.asarray(product(x)),
    "complex": lambda _, x: torch.from_numpy(np.abs(torch.complex(x, x).detach().numpy())),
    "dlpack": lambda _, x: torch.from_dlpack(np.from_dlpack(x.detach()) @ WEIGHT),
    "a buffer": lambda _, x: torch.frombuffer(bytearray(product(x)), dtype=torch.float32).reshape(10, 4),
    "a list": lambda _, x: torch.tensor(product(x).tolist()),
    "an array of Python's": lambda _, x: torch.tensor(array.array("f", product(x).ravel())).reshape(10, 4),
    "whole numbers": lambda _, x: torch.tensor((product(x) * 1000).astype(int).tolist()) / 1000,
    "elements": lambda _, x: each_set(x),
    "one number": lambda _, x: x + float(product(x).sum()),
    "one number that fills": lambda _, x: x + torch.zeros(1).fill_(float(product(x).sum())),
    "Python's own arithmetic": lambda _, x: of_lists(x),
    "arithmetic on items": lambda _, x: of_numbers(x),
    "memory of a buffer": lambda layer, x: (np.matmul(x.detach().numpy(), WEIGHT, out=layer.held.numpy()), layer.held)[
        1
    ],
    "memory of an attribute": lambda layer, x: kernel(product(x), layer.kept),
    "memory that is empty": lambda _, x: kernel(product(x), torch.empty(10, 4)),
    "memory of zeros": lambda _, x: kernel(product(x), torch.zeros_like(x)),
    "a view": lambda _, x: kernel(product(x), torch.empty(2, 10, 4)[1]),
    "an activation": lambda _, x: (kernel(product(x), x), x)[1],
    "added to": lambda _, x: kernel(product(x), torch.empty_like(x)).add_(1),
    "a thread": lambda _, x: on_thread(x),
    "no functions": lambda _, x: without_functions(x),
    "bytes of a storage": as_storage,
    "a file": lambda _, x: saved(x),
    "an order": lambda _, x: x[torch.from_numpy(np.argsort(product(x)[:, 0]))],
}
"""How the product gets back to the network."""


@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_computed_elsewhere_withholds_the_number(way, of):
    found = problems(WAYS[way], of)
    assert found
    assert {op for op, _ in found} == {COMPUTED}


@pytest.mark.parametrize("way", ["an array", "elements", "one number", "memory that is empty", "a list"])
def test_the_layer_is_that_where_the_value_came_in(way):
    assert (COMPUTED, "middle") in problems(WAYS[way])


class DoublesGradient(torch.autograd.Function):
    """Whose backward is a kernel alone."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return kernel(2 * gradient.contiguous().numpy(), torch.empty_like(gradient))


def test_a_kernel_of_the_backward_pass_is_found():
    assert problems(lambda _, x: DoublesGradient.apply(x), "step") == [(COMPUTED, "middle")]
    assert problems(lambda _, x: DoublesGradient.apply(x), "call") == []


def test_what_is_returned_or_stays_counts_as_what_is_read():
    def outside(compute):
        class Net(Middle):
            forward = compute

        return Net

    assert problems(lambda _, x: product(x), make=outside) == [(COMPUTED, "")]
    assert problems(lambda layer, x: (kernel(product(x), layer.held), x)[1], make=outside) == [(COMPUTED, "")]
    assert problems(lambda layer, x: (float(product(x).sum()), x), make=outside) == [(COMPUTED, "")]
    assert problems(lambda layer, x: (x.sum().item(), x), make=outside) == []
    assert problems(lambda layer, x: (np.array(["a name"]), np.arange(3), x * 2), make=outside) == []


def branch(_, x):
    return x * 2 if x.sum().item() > 0 else x


def cached(layer, x):
    if not hasattr(layer, "table"):
        layer.table = torch.from_numpy(np.ones((1, 4), np.float32))
    return x + layer.table


def filled(_, x):
    out = torch.empty(10, 4)
    for row in range(10):
        out[row] = x[row]
    return out


def taken_again(between):
    """Memory that is given back and taken again has what whoever had it left there, at the same address or at another."""

    def compute(_, x):
        out = torch.empty(3, 4)
        storage, size = out.untyped_storage(), out.nbytes
        storage.resize_(0)
        kept = between()
        storage.resize_(size)
        ctypes.memset(storage.data_ptr(), 7, size)
        return x + out[0] * 0 + kept

    return compute


HARMLESS = {
    "a number": lambda _, x: x * x.sum().item(),
    "arithmetic on one": lambda _, x: x * (2 * x.sum().item() + 1),
    "a branch": branch,
    "a number of numpy's": lambda _, x: x / float(x.detach().abs().max().numpy()),
    "numbers of a list": lambda _, x: sum(x * share for share in x.detach()[0].softmax(0).tolist()),
    "a number that is used often": lambda _, x: x + sum(x * share for share in [x.detach()[0, 0].item()] * 12),
    "a list that comes back": lambda _, x: x + torch.tensor(x.mean(0).tolist()),
    "a shape": lambda _, x: x.reshape(tuple(np.array(x.shape))) / float(np.prod(x.shape)),
    "constants": lambda _, x: x * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.as_tensor(0.5) + 1e-5,
    "a table": lambda _, x: x + torch.from_numpy(np.ones((1, 4), np.float32)),
    "a table in a buffer": lambda _, x: x + torch.frombuffer(bytearray(16), dtype=torch.float32),
    "a table that is kept": cached,
    "a table of indices": lambda _, x: x[:, torch.from_numpy(np.arange(4)[::-1].copy())],
    "noise": lambda _, x: x + torch.randn(4) + torch.from_numpy(np.random.rand(4).astype("f4")) + random.random(),
    "dropout": lambda _, x: torch.nn.functional.dropout(x, 0.5, training=True),
    "a copy": lambda _, x: copy.deepcopy(x.detach()) + torch.from_numpy(x.detach().numpy().copy()),
    "a capsule": lambda _, x: torch.from_dlpack(torch.utils.dlpack.to_dlpack(x.detach())),
    "written in parts": filled,
    "written as out": lambda _, x: torch.mul(x.detach(), 2, out=torch.empty(10, 4)),
    "never written": lambda _, x: x + torch.empty(10, 4) + torch.empty(10, 4, dtype=torch.bfloat16),
    "a distribution": lambda _, x: x + torch.empty(10, 4).normal_(),
    "no number": lambda _, x: x.nan_to_num() + torch.full((4,), float("nan")).nan_to_num(),
    "nested": lambda _, x: torch.nested.nested_tensor([[1.0], [2.0, 3.0]]).to_padded_tensor(0.0).sum() + x,
    "nothing": lambda _, x: torch.cat([x, torch.empty(0, 4)]),
    "given back": taken_again(lambda: torch.ones(4)),
    "given back at once": taken_again(lambda: 0),
}


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype")
@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("way", HARMLESS)
def test_constants_decisions_and_copies_are_no_work(way, of):
    assert problems(HARMLESS[way], of) == []


def test_quick_calls_once_and_says_so():
    model = Rows(net(WAYS["one number"]), 10, 4, device="cpu")
    model.quick = True
    trace = inference.trace(model)
    assert (trace.problems, CALLED_ONCE in trace.notes) == ((), True)
    for quick in (True, False):
        run = reconcile.run(
            torch=torch.nn.Linear(4, 4), inputs=torch.ones(2, 4), counters=["flop_counter"], quick=quick
        )
        assert ("--quick" in run.cite()) == quick


def test_few_numbers_may_come_back_changed():
    """And not one more."""

    def changed(numbers):
        return lambda _, x: sum(x * (x[0, 0] + k).item() ** 2 for k in range(numbers))

    assert problems(changed(FEW)) == []
    assert problems(changed(FEW + 1)) != []


def on_input(compute):
    """A linear layer of what ``compute(layer, x)`` makes of the input, which ``Rows`` gives: the first row is 36 to 39 fortieths,
    and when it is called again, 35 to 38 of them, or up to 2**-10 less."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.one = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.ones(()))

        def forward(self, x):
            return self.last(compute(self, x))

    return Net


@pytest.mark.parametrize("of", PASSES)
def test_few_sizes_that_values_decide_are_no_work(of):
    """Four elements of the first row are more than 35.5 fortieths, and then three. Sizes of constants tell nothing."""

    def lengths(numbers):
        def compute(_, x):
            for k in range(numbers):
                found = torch.cat([x[0], torch.ones(100 * k)]) > 35.5 / 40
                x = x + torch.arange(found.nonzero().shape[0])[0]
            return x

        return compute

    def computed(_, x):
        for size in range(40):
            torch.ones(size).nonzero()
        return x + torch.arange(round(float(x.detach().numpy()[0, 0] * 40)))[0]

    assert problems(lengths(FEW), of, on_input) == []
    assert problems(lengths(FEW + 1), of, on_input) != []
    assert problems(computed, of, on_input) != []


@pytest.mark.parametrize("of", PASSES)
def test_a_constant_that_a_weight_equals_in_the_first_call_alone_is_no_work(of):
    def compute(layer, x):
        return x * layer.one + x.new_tensor(1.0) + torch.tensor([1.0, 2.0, 3.0, 4.0])

    assert problems(compute, of, on_input) == []


class Words(Model):
    """Whose input is whole numbers, or truths."""

    words = torch.arange(5)

    def example(self, device):
        return [self.words.clone().to(device)]


def of_words(compute):
    """A look-up to which ``compute(words)`` is added, with a linear layer."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.last = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 4)

        def forward(self, words):
            return self.last(self.table(words) + compute(words))

    return Net


def test_what_is_computed_from_whole_inputs_alone_is_found_if_it_is_floating():
    """Positions, a mask, a scale by a length and a branch are what programs make of ids."""
    with_words = {
        "product": lambda words: torch.from_numpy(np.eye(5, 4, dtype=np.float32)[words.numpy()] @ WEIGHT),
        "numbers": lambda words: torch.tensor([[n * 0.1 + k for k in range(4)] for n in words.tolist()]),
    }
    harmless = {
        "positions": lambda words: torch.tensor([[n % 3] for n in words.tolist()]),
        "mask": lambda words: (words != 0).float()[:, None],
        "scale": lambda words: 1 / (1.5 + words.tolist()[-1]),
        "branch": lambda words: 0.5 if words[0] > 2 else 0.25,
    }
    for of in PASSES:
        models = {name: Words(of_words(compute), device="cpu") for name, compute in (with_words | harmless).items()}
        assert {name for name, model in models.items() if PASSES[of](model).problems} == set(with_words)


@pytest.mark.parametrize(
    "words", [torch.zeros(5, dtype=torch.int64), torch.full((5,), 3), torch.arange(5) > 1, torch.ones(5) > 0]
)
def test_whole_inputs_that_are_equal_and_truths_are_changed(words):
    """Ones that are all one number have no other order."""

    def chosen(words):
        return torch.from_numpy(np.where(words.numpy() > 0, 0, -1e9).astype(np.float32))[:, None]

    def multiplied(words):
        return torch.from_numpy(np.eye(5, 4, dtype=np.float32)[words.numpy().astype(int)] @ WEIGHT)

    def net_of(compute):
        return lambda: of_words(compute)() if words.dtype is not torch.bool else OfTruths(compute)

    def branched(words):
        return torch.tensor([1.0, 2.0, 3.0, 4.0] if len(set(words.tolist())) == 1 else [0.25, 0.5, 0.75, 1.0])

    for compute, expected in ((chosen, []), (branched, []), (multiplied, [COMPUTED])):
        model = Words(net_of(compute), device="cpu")
        model.words = words
        assert [problem.op for problem in inference.trace(model).problems] == expected


class OfTruths(torch.nn.Module):
    """A linear layer of what is computed of truths."""

    def __init__(self, compute):
        super().__init__()
        self.compute, self.last = compute, torch.nn.Linear(4, 4)

    def forward(self, truths):
        return self.last(torch.ones(5, 4) + self.compute(truths))


@dataclass
class Pair:
    first: str
    second: np.ndarray


class Beside(torch.nn.Module):
    """Returns something beside its tensor."""

    def __init__(self, compute):
        super().__init__()
        self.layer, self.compute = torch.nn.Linear(4, 4), compute

    def forward(self, x):
        x = self.layer(x)
        return {"result": x, "beside": self.compute(x)}


@pytest.mark.parametrize(
    ("compute", "exit_code"),
    [
        (product, 1),
        (lambda x: product(x).tolist(), 1),
        (lambda x: Pair("a", product(x)), 1),
        (lambda x: MappingProxyType({"a": product(x)}), 1),
        (lambda x: Pair("a", x.detach().numpy()), 0),
        (lambda x: [complex(value) for value in product(x).ravel()], 1),
        (lambda x: (list(x.shape), "text", x.detach().numpy(), 8000.0, x.max().item()), 0),
        (lambda x: x.detach().tolist(), 0),
    ],
)
def test_what_a_program_returns_beside_tensors_is_looked_at(compute, exit_code):
    run = reconcile.run(torch=Beside(compute), inputs=torch.rand(10, 4), counters=["flop_counter"])
    assert run.exit_code == exit_code
    (trace,) = run.result.traces
    assert trace.totals == ({} if exit_code else {**trace.totals, "matmul": 2 * 10 * 4 * 4})
    assert {item.op for item in trace.unknown} == ({COMPUTED} if exit_code else set())


def test_a_class_that_multiplies_after_its_forward_is_looked_at():
    class Calls(torch.nn.Linear):
        def __call__(self, x):
            return product(super().__call__(x))

    run = reconcile.run(torch=Calls(4, 4), inputs=torch.rand(10, 4), counters=["flop_counter"])
    assert {item.op for item in run.result.traces[0].unknown} == {COMPUTED}


def test_a_model_that_holds_itself_is_followed():
    def compute(layer, x):
        return x

    def held():
        model = net(compute)()
        model.middle.all = [model.middle.kept]
        model.middle.all.append(model.middle.all)
        return model

    assert inference.trace(Rows(held, 10, 4, device="cpu")).problems == ()


class Attention(torch.nn.Module):
    """With queries that numpy changes in place."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x):
        query = self.first(x)[None, None]
        np.multiply(query.detach().numpy(), 3, out=query.detach().numpy())
        return torch.nn.functional.scaled_dot_product_attention(query, query, query)


@pytest.mark.parametrize("of", PASSES)
def test_what_a_fused_call_reads_is_looked_at(of):
    assert problems(None, of, lambda _: Attention) != []


def test_a_second_call_that_fails_withholds_what_came_from_outside():
    def checked(compute, *said):
        calls = []

        def only_once(layer, x):
            calls.append(x)
            if len(calls) > 1:
                raise ValueError(*said)
            return compute(x)

        return only_once

    trace = inference.trace(Rows(net(checked(lambda x: x + 0.5, "once")), 10, 4, device="cpu"))
    assert trace.problems == ()
    assert [note for note in trace.notes if note.startswith(NOT_CALLED_AGAIN) and "ValueError: once" in note] != []
    assert problems(checked(lambda x: x + torch.tensor([1.0]))) == [(COMPUTED, "middle")]


def test_a_number_without_a_second_call_is_cited_with_that():
    calls = []

    class Once(torch.nn.Linear):
        def forward(self, x):
            calls.append(x)
            return super().forward(x) + 1 / (len(calls) == 1)

    for model, said in ((Once(4, 4), True), (torch.nn.Linear(4, 4), False)):
        run = reconcile.run(torch=model, inputs=torch.ones(2, 4), counters=["flop_counter"])
        assert ("second one failed" in run.cite()) == said


def test_a_tag_is_checked():
    """An operator that its library calls pointwise, and that multiplies rows by a matrix."""
    with torch.library._scoped_library("reconcile_tagged", "DEF") as library:
        kernels = {"halves": lambda x: x / 2, "mixes": lambda x: x @ torch.from_numpy(WEIGHT)}
        for name, run in kernels.items():
            library.define(f"{name}(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
            library.impl(name, run, "CompositeExplicitAutograd")
        space = torch.ops.reconcile_tagged
        found = inference.trace(Rows(net(lambda _, x: space.mixes(space.halves(x.t()).t())), 10, 4, device="cpu"))
    marked = {op.op: POINTWISE in op.attrs for op in found.ops if op.op.startswith("reconcile_tagged.")}
    assert marked == {"reconcile_tagged.halves": True, "reconcile_tagged.mixes": False}


@pytest.mark.filterwarnings("ignore:.*overrid")
def test_a_kernel_in_place_of_pytorchs_withholds_the_number():
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("hardswish", lambda x: x @ torch.from_numpy(WEIGHT), "CPU")
        assert problems(lambda _, x: torch.nn.functional.hardswish(x)) == [("aten.hardswish", "middle")]
    assert problems(lambda _, x: torch.nn.functional.hardswish(x)) == []


def test_what_a_call_changes_in_its_model_is_no_constant_of_the_second():
    """An optimizer within the call, whose step number is in its products."""

    def trained(layer, x):
        if not hasattr(layer, "step"):
            weight = torch.nn.Parameter(torch.ones(4))
            layer.step = torch.optim.Adam([weight], foreach=False), weight
        optimizer, weight = layer.step
        weight.grad = torch.ones(4)
        optimizer.step()
        return x * weight.detach()

    assert problems(trained) == []


def test_a_large_cache_is_not_touched_whole():
    large = 1 << 30  # floats: 4 GiB, which no page is allocated for until somebody writes

    def compute(_, x):
        before = _resident()
        cache = torch.empty(large)
        cache[:40] = x.reshape(-1)
        assert _resident() - before < 1 << 28
        return x

    assert problems(compute) == []


def test_of_large_memory_the_end_is_looked_at_too():
    values, seal = torch.zeros(LARGE), Seal()
    seal.hold([values])
    values.numpy()[-LARGE // 2 :] = 1
    seal.check([values], "here")
    assert [entry.reader for entry in seal.entries] == ["here"]


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Zeros(Model):
    """Whose input is made as examples often are."""

    def example(self, device):
        return [torch.zeros(self.shape, device=device)]


@pytest.mark.parametrize("of", PASSES)
def test_inputs_of_zeros_get_other_values_too(of):
    compute = net(lambda _, x: torch.from_numpy(x.detach().numpy() @ WEIGHT + 1))
    without_bias = net(lambda _, x: x)
    assert PASSES[of](Zeros(compute, 10, 4, device="cpu")).problems != ()
    assert PASSES[of](Zeros(without_bias, 10, 4, device="cpu")).problems == ()


def test_what_the_program_keeps_elsewhere_is_a_table_unless_values_had_left():
    def cached(make):
        kept = []
        return lambda _, x: x + kept[0] if kept or kept.append(make(x)) is None else x

    assert problems(cached(lambda x: torch.from_numpy(np.sin(np.arange(4, dtype=np.float32))))) == []
    assert problems(cached(lambda x: torch.from_numpy(product(x)))) != []


def test_an_array_at_the_address_of_a_tensor_is_that_tensor():
    def through_an_alias(_, x):
        y = x.detach() * 2
        torch.from_numpy(y.numpy()).mul_(3)
        return x + y

    assert problems(through_an_alias) == []


def test_a_seal_that_fails_withholds_the_number_and_raises_nothing(monkeypatch):
    def fail(*_):
        raise ValueError("of a dtype of its own")

    monkeypatch.setattr(seal, "digest", fail)
    for of in PASSES:
        (problem,) = PASSES[of](Rows(net(lambda _, x: x), 10, 4, device="cpu")).problems
        assert problem.op == COMPUTED
        assert "of a dtype of its own" in problem.reason


def test_a_part_of_memory_that_is_returned_counts_as_the_whole():
    def returned(change):
        class Net(torch.nn.Module):
            def forward(self, x):
                y = (x * 2).numpy()
                change(y)
                return y[:3]

        return problems(None, make=lambda _: Net)

    assert returned(lambda y: None) == []
    assert returned(lambda y: np.matmul(y, WEIGHT, out=y)) != []
