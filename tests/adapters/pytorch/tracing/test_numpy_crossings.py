"""Whole numbers of a tensor on meta are those that the program made it of; a library's own tags are recorded."""

from __future__ import annotations

from collections import OrderedDict

import torch

from reconcile.adapters.pytorch import trace as inference
from reconcile.adapters.pytorch.tracing.numpy_crossings import keep_numbers
from tests.adapters.counters.small_nets import called
from tests.adapters.pytorch.training_models import Model


def net(compute):
    """Two linear layers, with ``compute`` in a layer ``middle`` between them."""
    linear = torch.nn.Linear
    return lambda: torch.nn.Sequential(OrderedDict(first=linear(6, 4), middle=called(compute), last=linear(4, 2)))


def problems(compute):
    return [(p.op, p.layer, p.reason) for p in inference.trace(Model(net(compute), 3, 6)).problems]


def constants_beside_values_that_only_leave(x):
    assert x.numpy().shape == (3, 4)
    return x * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.as_tensor(0.5)


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


def test_an_op_that_its_library_tags_pointwise_is_recorded_so():
    with torch.library._scoped_library("reconcile_outside", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
        library.define("thrice(Tensor x) -> Tensor")
        for name, factor in (("twice", 2), ("thrice", 3)):
            library.impl(name, lambda x, factor=factor: x * factor, "CompositeExplicitAutograd")
        space = torch.ops.reconcile_outside
        found = inference.trace(Model(net(lambda x: space.thrice(space.twice(x))), 3, 6))
    tagged = {op.op: "tag:pointwise" in op.attrs for op in found.ops if op.op.startswith("reconcile_outside.")}
    assert tagged == {"reconcile_outside.twice": True, "reconcile_outside.thrice": False}
