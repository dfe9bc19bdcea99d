"""A training step in Python, in the pytest plugin, and compared with baselines: never with a call's."""

from __future__ import annotations

import functools
from fractions import Fraction

import pytest

pytest.importorskip("torch")

import torch
import torch.utils.checkpoint

import reconcile
from reconcile.core.errors import NotInResult, UsageError
from reconcile.drift import baselines
from reconcile.drift import check as checking
from reconcile.engine import settle
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import RunRequest
from reconcile.pytest_plugin import Flops, _key
from reconcile.report.json import to_dict
from reconcile.report.markdown import to_markdown

BATCH, SIDE = 3, 3 * 3
CONV, LINEAR = 2 * BATCH * 4 * SIDE * 9, 2 * BATCH * 4 * SIDE * 5


def net():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * SIDE, 5))


@pytest.fixture(scope="module")
def found():
    model = net()
    run = reconcile.run(torch=model, inputs=torch.ones(BATCH, 1, 5, 5), pass_="training", optimizer="adam")
    assert [name for name, weight in model.named_parameters() if weight.grad is not None] == []  # it was not trained
    return run


def test_in_python_with_its_phases(found):
    assert (found.exit_code, found.result.pass_) == (0, "training")
    phases = found.phases.set_index("layer")
    assert list(phases.columns)[-2:] == ["backward", "ratio"]
    # The first layer has no gradient with respect to its input.
    assert phases.loc["0", ["forward", "weight-gradient", "backward", "ratio"]].tolist() == [CONV, CONV, CONV, 1]
    assert phases.loc["0", "input-gradient"] is None
    assert phases.loc["2", ["forward", "input-gradient", "weight-gradient", "ratio"]].tolist() == [LINEAR] * 3 + [2]
    assert phases.loc["", "ratio"] == Fraction(CONV + 2 * LINEAR, CONV + LINEAR)
    assert phases.loc["", "backward"] == CONV + 2 * LINEAR
    assert [n for n in found.result.traces[0].notes if "torch.optim.Adam" in n]
    assert "per training step" in found.cite()


def test_the_numbers_of_a_step_are_those_of_mfu_and_hfu(found):
    """What a checkpoint computes again is of HFU alone: the second layer, up to the last tensor that a gradient needs."""
    assert found.mfu_flops == found.hfu_flops == 2 * CONV + 3 * LINEAR
    (text,) = [line for line in to_markdown(found.result).splitlines() if "for MFU and HFU" in line]
    assert text.endswith(f"for MFU and HFU: {2 * CONV + 3 * LINEAR:,} FLOPs per step; nothing is computed again.")

    class Again(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(3, 4)
            self.rest = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 6))

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.rest, self.first(x), use_reentrant=False)

    run = reconcile.run(torch=Again(), inputs="2,3", pass_="training", counters=["flop_counter"])
    first, second, third = 2 * 2 * 3 * 4, 2 * 2 * 4 * 5, 2 * 2 * 5 * 6
    once, again = 2 * first + 3 * (second + third), second
    assert (run.mfu_flops, run.hfu_flops) == (once, once + again)
    (trace,) = to_dict(run.result)["traces"]
    assert (trace["mfu_flops"], trace["hfu_flops"]) == (once, once + again)
    assert f"for MFU: {once} FLOPs per step, without what is computed again" in to_markdown(run.result)
    assert f"for HFU: {once + again}, of them {again} computed again." in to_markdown(run.result)


@pytest.mark.frameworks
def test_one_step_in_both_frameworks():
    tf = pytest.importorskip("tensorflow")
    dense = tf.keras.Sequential(
        [tf.keras.Input((5,), batch_size=3), tf.keras.layers.Dense(4, name="dense")], name="net"
    )
    module = torch.nn.Sequential()
    module.add_module("dense", torch.nn.Linear(5, 4))
    run = reconcile.run(tf=dense, torch=module, inputs="3,5", pass_="training")
    assert run.exit_code == 0
    work = 2 * (2 * 3 * 5 * 4)  # forward, and the gradient of the weight
    assert run.table.loc["dense", ["work (tf)", "work (torch)"]].tolist() == [work, work]


def test_a_call_has_no_phases_and_no_number_for_mfu():
    call = reconcile.run(torch=net(), inputs="1,1,5,5", counters=["flop_counter"])
    with pytest.raises(NotInResult, match="MFU is of a training step"):
        assert call.mfu_flops
    (trace,) = to_dict(call.result)["traces"]
    assert (trace["mfu_flops"], trace["hfu_flops"]) == (None, None)
    assert call.phases.empty
    assert call.result.pass_ == "forward"


def test_files_of_either_pass(found, tmp_path):
    assert {path.name.rpartition("-")[2] for path in found.write(tmp_path)} == {
        "training.md",
        "training.csv",
        "training.json",
    }


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"pass_": "backward"}, "unknown pass 'backward'"),
        ({"pass_": "training", "optimizer": "adamx"}, "unknown optimizer 'adamx'"),
        ({"optimizer": "adam"}, "an optimizer applies only to a training step"),
    ],
)
def test_what_is_no_pass(asked, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        reconcile.run(torch=net(), inputs="1,1,5,5", **asked)
    plugin = Flops(tmp_path / "test_net.py", False, {}, print)
    with pytest.raises(pytest.fail.Exception, match=said):
        plugin.check("gru_demo", **asked)


@functools.cache
def collected(training):
    asked = RunRequest(counters=("flop_counter",), training=training)
    return collect_live({"torch": net()}, torch.ones(BATCH, 1, 5, 5), asked, lambda _: None)


def take(request, _progress):
    """What a run in workers would find, without workers."""
    found = collected(request.training)
    return settle.Collected({**found.meta, "name": "net", "params": {}}, found.traces, found.ledgers)


def check(request, folder, update=False, path=None):
    path = path or baselines.baseline_path(folder, request.model, training=request.training)
    return checking.check(request, path, remedy="reconcile check --update", update=update, take=take)


def test_a_baseline_is_of_one_pass_and_optimizer(tmp_path):
    requests = {name: RunRequest("net", {}, training=name) for name in ("", "sgd", "adam")}
    for request in requests.values():
        assert check(request, tmp_path, update=True).written
    paths = {name: baselines.baseline_path(tmp_path, "net", training=name) for name in requests}
    assert [str(p.relative_to(tmp_path)) for p in paths.values()] == [
        "net/current.json", "net-training-sgd/current.json", "net-training-adam/current.json",
    ]  # fmt: skip
    assert '"training"' not in paths[""].read_text()  # the baselines of calls are what they were
    for name, request in requests.items():
        assert check(request, tmp_path).exit_code == 0
        for other, path in paths.items():
            if other != name:
                with pytest.raises(UsageError, match="Give the baseline of the same pass and optimizer"):
                    check(request, tmp_path, path=path)
                with pytest.raises(UsageError, match="two different amounts of work"):
                    checking.compare_files(paths[name], path, RunRequest())
    assert not checking.compare_files(paths["sgd"], paths["sgd"], RunRequest()).has_moved


def test_the_plugin_keeps_the_passes_apart(tmp_path):
    taken = {}
    plugin = Flops(tmp_path / "test_net.py", False, taken, print)
    assert plugin.baseline("net", pass_="training").name == "net-training-sgd.json"
    assert plugin.baseline("net").name == "net.json"
    for request in (RunRequest("net", {}), RunRequest("net", {}, training="sgd")):
        taken[_key(request)] = [((), take(request, print))]
    call = plugin.budget("net", max_flops=CONV + LINEAR)
    step = plugin.budget("net", max_flops=2 * CONV + 3 * LINEAR, pass_="training")
    assert (call, step) == ({"torch": CONV + LINEAR}, {"torch": 2 * CONV + 3 * LINEAR})
