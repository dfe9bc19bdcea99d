"""Contexts within and behind each other, and contexts that are entered or left as no ``with`` block does."""

from __future__ import annotations

import threading

import pytest

import reconcile
from reconcile.core.errors import NotInResult, UsageError
from reconcile.core.records import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from reconcile.products.steps.count import STEP_ON_ANOTHER_THREAD

torch = pytest.importorskip("torch")
from tests.products.steps import nets  # noqa: E402
from tests.products.steps.nets import FIRST, SECOND, counted, phases, rows  # noqa: E402

pytestmark = pytest.mark.frameworks

CALL = FIRST + SECOND
STEP = {FORWARD: CALL, INPUT_GRADIENT: SECOND, WEIGHT_GRADIENT: CALL}


def test_the_outer_context_counts_the_inner_one_as_well() -> None:
    net = nets.mlp()
    with reconcile.count(net) as outer:
        net(rows())
        with reconcile.count(net) as inner:
            net(rows()).sum().backward()
        net(rows())
    assert phases(inner) == STEP
    assert phases(outer) == {**STEP, FORWARD: 3 * CALL}


def test_of_two_in_turn_each_has_its_own_part() -> None:
    """What a gradient of an older graph is for cannot be told; what ran can."""
    net = nets.mlp()
    with reconcile.count(net) as first:
        loss = net(rows()).sum()
    with reconcile.count(net) as second:
        loss.backward()
    assert phases(first) == {FORWARD: CALL}
    assert phases(second) == {BACKWARD: CALL + SECOND}


def test_a_context_is_entered_once() -> None:
    net = nets.mlp()
    with reconcile.count(net) as step:
        with pytest.raises(UsageError, match="a step is counted once"), step:
            net(rows())
        net(rows())
    assert phases(step) == {FORWARD: CALL}


def test_contexts_left_out_of_order_have_no_number() -> None:
    """Each misses what ran while the other was taken for it."""
    net = nets.mlp()
    one, other = reconcile.count(net), reconcile.count(net)
    one.enter()
    other.enter()
    net(rows())
    one.leave()
    net(rows())
    other.leave()
    for step in (one, other):
        with pytest.raises(NotInResult, match="contexts were left in another order than they were entered"):
            step.cite()
    assert phases(counted(lambda: net(rows()), net)) == {FORWARD: CALL}


def test_a_context_on_a_thread_counts_that_thread() -> None:
    net, steps = nets.mlp(), []
    thread = threading.Thread(target=lambda: steps.append(counted(lambda: net(rows()).sum().backward(), net)))
    thread.start()
    thread.join()
    assert phases(steps[0]) == STEP


def test_of_several_threads_at_once_one_counts() -> None:
    """Hooks of PyTorch and its profiler are those of the process: each would take in what the others run."""
    at_once, entered, said = threading.Barrier(6), threading.Event(), []

    def count() -> None:
        net = nets.mlp()
        at_once.wait()
        try:
            with reconcile.count(net) as step:
                entered.wait(20)
                net(rows()).sum().backward()
            said.append(phases(step))
        except UsageError as error:
            said.append(str(error))
            if len(said) == 5:
                entered.set()

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [STEP_ON_ANOTHER_THREAD] * 5 + [STEP]
    assert phases(counted(lambda: nets.mlp()(rows()))) == {FORWARD: CALL}


def test_nothing_stays_behind() -> None:
    """Functions that a context watches are PyTorch's and Python's own again, also after an exception."""
    from torch._dynamo import eval_frame
    from torch._higher_order_ops import utils
    from torch.nn.attention import flex_attention
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.utils import checkpoint

    def watched() -> list[object]:
        return [
            torch.autograd._engine_run_backward, torch.Tensor.numpy, torch.Tensor.tolist, threading.Thread.start,
            utils._hop_compile_and_call, flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG,
            eval_frame._stance, checkpoint._CheckpointFrame,
            dict(module._global_forward_hooks), dict(module._global_forward_pre_hooks),
            dict(module._global_forward_hooks_always_called), dict(optimizer._global_optimizer_pre_hooks),
            torch.utils._python_dispatch._get_current_dispatch_mode(),
        ]  # fmt: skip

    before = watched()
    with reconcile.count():
        within = watched()
    assert [i for i, (a, b) in enumerate(zip(before, within, strict=True)) if a == b] == []
    assert watched() == before
    with pytest.raises(ValueError, match="mine"), reconcile.count():
        raise ValueError("mine")
    assert watched() == before
    one, other = reconcile.count(), reconcile.count()
    for call in (one.enter, other.enter, one.leave, other.leave):
        call()
    assert watched() == before


def test_weights_of_a_lazy_module_are_weights_once_they_have_values() -> None:
    net = torch.nn.Sequential(torch.nn.LazyLinear(nets.WIDE), torch.nn.ReLU(), torch.nn.LazyLinear(nets.OUT))
    assert phases(counted(lambda: net(rows()).sum().backward(), net)) == STEP
