"""The log of a program's own step: ``reconcile.count(..., witness=True)``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import nn

import reconcile
from reconcile.adapters.counters.cpu_libraries.nested import ANOTHER_CONTEXT_LISTENS
from reconcile.core.causes import State

from .test_log_recorders import STEPS, attends
from .witnessed import need_log

MINE = "cpu_libraries"


def ledger(step):
    (found,) = [each for each in step.result.ledgers if each.counter == MINE]
    return found


@pytest.mark.parametrize("name", ["mlp", "conv-channels-last", "transposed", "lstm", "gru"])
def test_the_log_has_the_products_of_a_step_as_it_runs(name):
    make, wanted = STEPS[name]
    net, given = make()
    need_log(given)
    with reconcile.count(net, witness=True) as step:
        out = net(given)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()
    assert ledger(step).normalised_total == 2 * sum(wanted.values())
    assert (step.result.exit_code, ledger(step).state) == (0, State.EQUAL)


def test_the_witness_counts_beside_other_counters():
    """Micro-batches are calls of one layer, and each has its lines; a fifth product of attention is a cause."""
    net = attends()
    optimizer = torch.optim.SGD(net.parameters())
    with reconcile.count(net, counters=["flop_counter", "torch.profiler"], witness=True) as step:
        for rows in (1, 2, 2):
            net(torch.randn(rows, 10, 16)).square().mean().backward()
        optimizer.step()
    product, made = 2 * 10 * 10 * 8, 10 * 16 * 48
    assert step.result.exit_code == 0
    assert ledger(step).normalised_total == 2 * 5 * (2 * made + (2 + 5) * product)
    assert step.causes.loc["scores-again", MINE] == -2 * 5 * product


def test_what_is_left_out_of_the_step_is_no_line_of_it():
    net = nn.Linear(64, 128)
    with reconcile.count(net, witness=True) as step:
        recorder = step.context.recorder
        net(torch.randn(8, 64))
        recorder.paused = True
        net(torch.randn(9, 64))
        recorder.paused = False
        net(torch.randn(10, 64))
    assert ledger(step).normalised_total == 2 * (8 + 10) * 64 * 128


def test_one_context_listens_at_a_time():
    net = nn.Linear(64, 128)
    with reconcile.count(net, witness=True) as outer, reconcile.count(net, witness=True) as inner:
        net(torch.randn(8, 64))
    assert ledger(outer).normalised_total == 2 * 8 * 64 * 128
    assert (ledger(inner).state, ledger(inner).reason) == (State.NOT_COMPARABLE, ANOTHER_CONTEXT_LISTENS)
    with reconcile.count(net, witness=True) as later:
        net(torch.randn(8, 64))
    assert ledger(later).normalised_total == 2 * 8 * 64 * 128


PROGRAM = """
import os, sys
import torch, reconcile
net = torch.nn.Linear(64, 128)
print("before")
with reconcile.count(net, witness=True) as step:
    print("in the step")
    net(torch.ones(8, 64))
    sys.stdout.flush()
    child = os.fork()
    if not child:
        net(torch.ones(8, 64))
        print("of a child", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    net(torch.ones(8, 64))
    print("no line's end", end="")
    if ENDS:
        sys.exit()
print()
print([each.normalised_total for each in step.result.ledgers][1])
"""


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.slow
def test_what_a_program_and_its_children_write_is_theirs(ends):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM.replace("ENDS", str(ends))]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # a child cannot wait for threads that its parent has
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    whole = "before\nin the step\nof a child\nno line's end"
    assert done.stdout == (whole if ends else f"{whole}\n{2 * 2 * 8 * 64 * 128}\n")
