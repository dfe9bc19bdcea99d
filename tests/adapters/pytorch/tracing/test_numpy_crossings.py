"""Values that leave for numpy and come back make a trace incomplete, by layer; numbers, lists and shapes do not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from reconcile.adapters.pytorch import trace as inference  # noqa: E402
from reconcile.adapters.pytorch import training  # noqa: E402
from reconcile.adapters.pytorch.tracing.numpy_crossings import VALUES_LEFT_PYTORCH, keep_numbers  # noqa: E402
from tests.adapters.pytorch.training_models import Model  # noqa: E402


def net(compute):
    """Two linear layers, with ``compute`` in a layer ``middle`` between them."""

    class Middle(torch.nn.Module):
        def forward(self, x):
            return compute(x)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.middle, self.last = torch.nn.Linear(6, 4), Middle(), torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.last(self.middle(self.first(x)))

    return Net


def to_dlpack(x):
    return torch.utils.dlpack.to_dlpack(x)


def from_dlpack(capsule):
    return torch.utils.dlpack.from_dlpack(capsule)


def softmax(values):
    shifted = np.exp(values - values.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def problems(compute):
    return [(p.op, p.layer, p.reason) for p in inference.trace(Model(net(compute), 3, 6)).problems]


WAYS = {
    "from_numpy": lambda x: torch.from_numpy(softmax(x.numpy())),
    "detached": lambda x: torch.tensor(softmax(x.detach().cpu().numpy())),
    "asarray": lambda x: torch.as_tensor(softmax(np.asarray(x))),
    "a function of numpy": lambda x: torch.asarray(np.exp(x)),
    "dlpack": lambda x: torch.Tensor(softmax(np.from_dlpack(x))),
    "dlpack, both ways": lambda x: torch.from_dlpack(softmax(np.from_dlpack(x))),
    "a capsule": lambda x: from_dlpack(to_dlpack(x)),
    "torch.to_dlpack": lambda x: from_dlpack(torch.to_dlpack(x)),
    "a buffer": lambda x: torch.frombuffer(bytearray(softmax(x.numpy())), dtype=torch.float32).reshape(x.shape),
    "an order": lambda x: x[torch.from_numpy(np.argsort(x.numpy()[:, 0]))],
    "complex": lambda x: torch.from_numpy(np.abs(torch.complex(x, x).numpy())),
}


@pytest.mark.filterwarnings("ignore:__array_wrap__")  # numpy's, of PyTorch's own method
@pytest.mark.parametrize("way", WAYS)
def test_what_numpy_computes_of_a_tensor_is_unknown_by_name(way):
    assert problems(WAYS[way]) == [("(numpy)", "middle", VALUES_LEFT_PYTORCH)]


def scaled_by_a_number(x):
    return x * x.sum().item() + float(x.max())


def constants_beside_values_that_only_leave(x):
    assert x.numpy().shape == (3, 4)
    return x * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.as_tensor(0.5)


def table_of_numpy(x):
    return x + torch.from_numpy(np.ones((1, 4), np.float32))


def lengths(x):
    sizes = torch.tensor([3, 1]).numpy()
    return x * torch.from_numpy(sizes.repeat(2)).sum()


HARMLESS = {
    "item": scaled_by_a_number,
    "tolist": lambda x: x * len(x.tolist()),
    "a list that comes back": lambda x: x + torch.tensor(x.mean(0).tolist()),
    "shape": lambda x: x.reshape(tuple(np.array(x.shape))),
    "constants": constants_beside_values_that_only_leave,
    "a table": table_of_numpy,
    "integers": lengths,
    "a table by dlpack": lambda x: x + torch.from_dlpack(np.ones((1, 4), np.float32)),
    "a table in a buffer": lambda x: x + torch.frombuffer(bytearray(16), dtype=torch.float32),
    "one number": lambda x: x * torch.from_numpy(np.asarray(x.sum().numpy()).reshape(1)),
}


@pytest.mark.parametrize("way", HARMLESS)
def test_decisions_and_constants_are_no_work_that_was_missed(way):
    assert problems(HARMLESS[way]) == []


def test_constants_are_known_beside_another_trace_of_the_process():
    """Two traces may end in the order in which they began."""
    before = torch.tensor
    first, second = keep_numbers(), keep_numbers()
    first.__enter__()
    second.__enter__()
    assert problems(constants_beside_values_that_only_leave) == []
    first.__exit__(None, None, None)
    assert problems(constants_beside_values_that_only_leave) == []
    second.__exit__(None, None, None)
    assert torch.tensor is before


def test_a_training_step_says_it_as_well():
    found = training.trace(Model(net(lambda x: x + torch.from_numpy(softmax(x.detach().numpy()))), 3, 6))
    assert [(p.op, p.layer) for p in found.problems] == [("(numpy)", "middle")]


def test_an_op_that_its_library_tags_pointwise_is_recorded_so():
    with torch.library._scoped_library("reconcile_outside", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
        library.define("thrice(Tensor x) -> Tensor")
        for name, factor in (("twice", 2), ("thrice", 3)):
            library.impl(name, lambda x, factor=factor: x * factor, "CompositeExplicitAutograd")
        space = torch.ops.reconcile_outside
        found = inference.trace(Model(net(lambda x: space.thrice(space.twice(x))), 3, 6))
    tagged = {op.op: op.attrs for op in found.ops if op.op.startswith("reconcile_outside.")}
    assert tagged == {"reconcile_outside.twice": {"tag:pointwise": True}, "reconcile_outside.thrice": {}}
