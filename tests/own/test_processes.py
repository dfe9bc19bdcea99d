"""Models whose work several processes share: the process at hand multiplies what it multiplies, and what the processes send
each other has no products.

The model takes 5 rows of 8 to 16 and 4 features: 5 * 8 * 16 = 640 and 5 * 16 * 4 = 320 multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import reconcile

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore::FutureWarning:torch.distributed.*"),  # FSDP calls functions of its own past
]

FORWARD = 640 + 320
STEP = 2 * FORWARD + 320  # the gradients of both weights, and that of the second layer's input


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def data_parallel() -> nn.Module:
    model = nn.parallel.DistributedDataParallel(layers())
    model.register_comm_hook(
        None, lambda _, bucket: added(bucket.buffer())
    )  # what it takes by itself waits for the others
    return model


def added(gradients: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
    torch.distributed.all_reduce(gradients)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(gradients)
    return done


def fully_sharded() -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    model = layers()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    return model


def sharded_before() -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(layers(), device_id=torch.device("cpu"))


WAYS: dict[str, Callable[[], nn.Module]] = {
    "DistributedDataParallel": data_parallel,
    "fully_shard": fully_sharded,
    "FullyShardedDataParallel": sharded_before,
}


def run(make: Callable[[], nn.Module], **more: Any) -> Any:
    return reconcile.run(torch=lambda: (make(), (torch.ones(5, 8),)), counters=["flop_counter"], **more)


@pytest.mark.parametrize("way", WAYS)
def test_a_forward_pass_and_a_step_are_counted_as_they_run(world: None, way: str) -> None:
    assert [figure.flops for figure in run(WAYS[way]).verdict.figures] == [2 * FORWARD]
    step = run(WAYS[way], pass_="training")
    assert [figure.flops for figure in step.verdict.figures] == [2 * STEP]
    assert [trace.unknown for trace in step.result.traces] == [()]


WEIGHTS = 8 * 16 + 16 + 16 * 4 + 4
ADDED = WEIGHTS - WEIGHTS // 4  # in a ring of four: all but the part that a process passes on first
MINE = 2 * WEIGHTS // 4 - 2 * WEIGHTS  # the optimizer has a quarter of the weights
REDUCED = {
    "DistributedDataParallel": ADDED,
    "fully_shard": MINE + ADDED + WEIGHTS // 4,  # the average is taken of the part that this process keeps
    "FullyShardedDataParallel": MINE
    + WEIGHTS
    + ADDED
    + WEIGHTS // 4,  # half of it is taken of all before they are added
}
"""What a process does more than one that is alone: additions of gradients, averages, and less of the optimizer."""


@pytest.mark.parametrize("way", WAYS)
def test_what_a_process_adds_is_counted_under_all(world: None, way: str) -> None:
    alone, shared = (run(make, pass_="training", convention="all").verdict.figures for make in (layers, WAYS[way]))
    assert [figure.flops for figure in shared] == [figure.flops + REDUCED[way] for figure in alone]


def test_parts_of_layers_are_multiplied_here_and_added_elsewhere(world: None) -> None:
    """A quarter of the columns of the first layer, and of the rows of the second."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def make() -> nn.Module:
        return parallelize_module(
            layers(), init_device_mesh("cpu", (4,)), {"0": ColwiseParallel(), "2": RowwiseParallel()}
        )

    traces = run(make).result.traces
    assert [trace.totals.get("matmul") for trace in traces] == [2 * FORWARD // 4]
    relu, biases, added = 5 * 4, 5 * 4 + 5 * 4, 5 * 4 - 5 * 4 // 4
    biases += 4  # each process has a quarter of the second one's values, so that their sum is the whole
    assert [trace.totals.get("all") for trace in traces] == [2 * FORWARD // 4 + relu + biases + added]
