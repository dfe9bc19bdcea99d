"""``reconcile watch``: scripts that know nothing of it run as they are, and the step that they take is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.errors import UsageError
from reconcile.launch.request import run_request
from reconcile.products.steps.watch import Script
from reconcile.products.steps.watch import watch as watching
from tests.products.steps.conftest import Watch

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

BATCH, WIDE, MIDDLE, NARROW, MICRO = 8, 64, 32, 10, 2
FORWARD = 2 * BATCH * (WIDE * MIDDLE + MIDDLE * NARROW)
STEP = MICRO * (2 * FORWARD + 2 * BATCH * MIDDLE * NARROW)
"""Forward, the gradients of both weights, and that of the second layer's input: the first input needs none."""

TRAIN = f"""
import sys
import torch
from torch.nn import functional

batch = int(sys.argv[sys.argv.index("--batch") + 1]) if "--batch" in sys.argv else {BATCH}
layers = torch.nn.Linear({WIDE}, {MIDDLE}), torch.nn.ReLU(), torch.nn.Linear({MIDDLE}, {NARROW})
net = torch.nn.Sequential(*layers)
optimizer = torch.optim.AdamW(net.parameters())
with torch.no_grad():
    net(torch.zeros(100, {WIDE}))


def main():
    for number in range(3):
        for _ in range({MICRO} + (number == 1)):
            labels = torch.zeros(batch, dtype=torch.int64)
            (functional.cross_entropy(net(torch.ones(batch, {WIDE})), labels) / {MICRO}).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print("took step", number + 1, flush=True)


if __name__ == "__main__":
    main()
    print("the end", flush=True)
"""
EVALUATED = """
import torch
frozen, net = torch.nn.Linear(3, 4).requires_grad_(False), torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
given = frozen(torch.ones(5, 3))
with torch.no_grad():
    net(given)
net(given).sum().backward()
optimizer.step()
"""
INFER = """
import torch
net = torch.nn.Linear(3, 4)
for rows in (1, 2, 5):
    net(torch.ones(rows, 3))
"""
MODE = """
import torch
from torch.utils.flop_counter import FlopCounterMode
net = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with FlopCounterMode(display=False):
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
"""


def total(report: dict[str, Any]) -> int:
    (trace,) = report["traces"]
    return int(trace["totals"]["matmul"])


def test_the_first_step_is_counted_as_it_runs(watch: Watch, capfd: Any) -> None:
    """In a process of its own."""
    result, report = watch(TRAIN, "--batch", str(BATCH), before=("--device", "H100 SXM"))
    assert "MFU: at its peak of 989.4 TFLOP/s in bf16, NVIDIA H100 SXM5 80GB " in " ".join(result.output.split())
    assert (result.exit_code, total(report)) == (0, STEP)
    (ledger,) = report["ledgers"]
    assert (ledger["counter"], ledger["total"], ledger["state"]) == ("flop_counter", STEP, "equal")
    assert [statement["residual"] for statement in report["statements"]] == [0]
    said = " ".join(report["traces"][0]["notes"])
    assert f"{MICRO} calls of a model, {MICRO} backward passes, 1 step of an optimizer" in said
    assert "1 call of a model without gradients before the step" in said
    assert "the end" not in capfd.readouterr().out


@pytest.mark.usefixtures("forked")
def test_the_page_names_the_table_that_is_beside_it(watch: Watch) -> None:
    script = INFER.replace("torch.nn.Linear(3, 4)", "torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(11)))")
    watch(script, before=("--calls", "1", "--format", "md"))
    named = re.findall(r"\]\(([^)]*layers\.csv)\)", Path("out/train.md").read_text())
    assert {*named} == {each.name for each in Path("out").glob("*.csv")} == {"train.layers.csv"}


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    "counters",
    [("flop_counter", "torch.profiler"), *(pytest.param(c, marks=pytest.mark.slow) for c in [(), ("torch.profiler",)])],
)
def test_a_call_that_is_left_out_is_counted_nowhere(watch: Watch, counters: tuple[str, ...]) -> None:
    """A frozen model begins the step; the trained one is evaluated before it is trained."""
    result, report = watch(EVALUATED, before=[word for name in counters for word in ("--counter", name)])
    forward, frozen = 2 * 5 * 4 * 2, 2 * 5 * 3 * 4
    assert (result.exit_code, total(report)) == (0, frozen + 2 * forward)
    assert [ledger["counter"] for ledger in report["ledgers"]] == list(counters or ["flop_counter"])
    assert {ledger["total"] for ledger in report["ledgers"]} == {frozen + 2 * forward}
    assert {statement["residual"] for statement in report["statements"]} == {0}
    said = " ".join(report["traces"][0]["notes"])
    assert "2 calls of a model, 1 backward pass, 1 step of an optimizer" in said
    assert "1 call of a model without gradients before the step" in said


@pytest.mark.usefixtures("forked")
def test_another_step_and_the_rest_of_the_script(watch: Watch, capfd: Any) -> None:
    result, report = watch(TRAIN, before=("--steps", "2", "--continue"))
    assert (result.exit_code, total(report)) == (0, STEP // MICRO * (MICRO + 1))
    out = capfd.readouterr().out
    assert out.splitlines()[-2:] == ["took step 3", "the end"]


TWO = """
import torch
net = torch.nn.Linear(64, 32, bias=False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(8, 64)).sum().backward()
    optimizer.step()
"""


@pytest.mark.usefixtures("forked")
def test_the_sum_of_two_steps_is_not_called_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(TWO)
    done = CliRunner().invoke(cli, ["watch", "--steps", "1-2", "--format", "md,json,html,disclosure", "train.py"])
    assert done.exit_code == 0, done.output
    both = f"{2 * 2 * 2 * 8 * 64 * 32:,}"  # forward and the weight's gradient
    report = json.loads(Path("reports/train.json").read_text())
    (trace,), (figure,) = report["traces"], report["verdict"]["figures"]
    assert (trace["steps"], f"{trace['mfu_flops']:,}") == (2, both)
    disclosure = json.loads(Path("reports/train.disclosure.json").read_text())
    texts = [done.output, Path("reports/train.md").read_text(), Path("reports/train.html").read_text()]
    for text in (*texts, json.dumps(report), json.dumps(disclosure)):
        said = " ".join(text.split())
        assert both in said or both.replace(",", "") in said
        assert "per step" not in said
        assert "one training step" not in said
    assert f"for MFU and HFU: {both} FLOPs of 2 steps together" in " ".join(done.output.split())
    assert "per 2 steps of train.py together" in figure["sentence"]


BY_HAND = """
import torch
net = torch.nn.Linear(64, 32, bias=False)
weights = list(net.parameters())
for number in range(3):
    for _ in range(MICRO):
        loss = net(torch.ones(8 + number, 64)).sum()
        GRADIENTS
    UPDATE
"""
UPDATES = {
    "data.add_": "for p in weights: p.data.add_(p.grad, alpha=-0.1)",
    "without gradients": "with torch.no_grad(): weights[0] -= 0.1 * weights[0].grad",
    "foreach": "with torch.no_grad(): torch._foreach_sub_(weights, [p.grad for p in weights])",
    "out": "torch.sub(weights[0].data, weights[0].grad, out=weights[0].data)",
    "replaced": "for p in weights: p.data = p.data - 0.1 * p.grad",
}
TIMED = {  # options, the number of the step from 0
    (): [0],
    ("--steps", "2"): [1],
    ("--steps", "3"): [2],  # the program ends after it
    ("--steps", "2-3"): [1, 2],
}


def by_hand(update: str, micro: int = 1, gradients: str = "loss.backward()") -> str:
    return BY_HAND.replace("UPDATE", update).replace("MICRO", str(micro)).replace("GRADIENTS", gradients)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("before", TIMED)
def test_a_step_ends_where_the_program_has_changed_the_weights(watch: Watch, before: tuple[str, ...]) -> None:
    result, report = watch(by_hand(UPDATES["data.add_"], micro=2), before=before)
    calls = 2 * len(TIMED[before])
    assert (result.exit_code, total(report)) == (0, sum(2 * 2 * 2 * (8 + n) * 64 * 32 for n in TIMED[before]))
    (trace,) = report["traces"]
    assert trace.get("steps", 1) == len(TIMED[before])
    assert f"{calls} calls of a model, {calls} backward passes" in " ".join(trace["notes"])


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", [*UPDATES][:1] + [pytest.param(n, marks=pytest.mark.slow) for n in [*UPDATES][1:]])
def test_whatever_changes_the_weights(watch: Watch, name: str) -> None:
    result, report = watch(by_hand(UPDATES[name]), before=("--steps", "2"))
    assert (result.exit_code, total(report), report["traces"][0].get("steps", 1)) == (0, 2 * 2 * 9 * 64 * 32, 1)


@pytest.mark.usefixtures("forked")
def test_gradients_that_no_parameter_keeps(watch: Watch) -> None:
    update = "with torch.no_grad(): weights[0].sub_(gradient)"
    result, report = watch(by_hand(update, gradients="gradient, = torch.autograd.grad(loss, weights)"))
    assert (result.exit_code, total(report)) == (0, 2 * 2 * 8 * 64 * 32)


GAN = """
import torch
maker, judge = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)
first, second = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (judge, maker))
unused = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
judge(maker(torch.ones(8, 4)).detach()).mean().backward()
judge.weight.data.clamp_(-1, 1)
first.step()
judge(maker(torch.ones(8, 4))).mean().backward()
second.step()
"""


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("steps", "wanted", "stepped"), [("1", 1, "SGD of Linear"), ("1-2", 2, "SGD of Linear and SGD of (model)")]
)
def test_the_step_of_one_of_several_optimizers_says_which(watch: Watch, steps: str, wanted: int, stepped: str) -> None:
    """The maker is the model, as it is called first, and the judge is Linear. The first ends with the judge's: forward, and the
    gradient of the judge's weight. The other has two more gradients: of the judge's input and of the maker's weight."""
    result, report = watch(GAN, before=("--steps", steps))
    make, judge = 2 * 8 * 4 * 16, 2 * 8 * 16
    counted = [make + 2 * judge, make + 2 * judge + judge + make][:wanted]
    assert (result.exit_code, total(report), report["traces"][0].get("steps", 1)) == (0, sum(counted), wanted)
    assert f"optimizer, {stepped}, of 2 that the program has)" in report["verdict"]["figures"][0]["sentence"]


@pytest.mark.usefixtures("forked")
def test_an_optimizer_of_some_weights_is_named_by_these(watch: Watch) -> None:
    groups = "torch.optim.SGD([judge.weight]), torch.optim.Adam([*maker.parameters(), judge.bias])"
    program = GAN.replace("(torch.optim.SGD(net.parameters(), lr=0.1) for net in (judge, maker))", groups)
    _, report = watch(program, before=("--steps", "1-2"))
    stepped = "SGD of Linear.weight and Adam of weight and 2 more weights"
    assert f"optimizer, {stepped}, of 2 that the program has)" in report["verdict"]["figures"][0]["sentence"]


LAZY = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
    def forward(self, x):
        hidden = self.first(x)
        return hidden, (self.second(hidden) for _ in range(3))
list(Net()(torch.ones(5, 3))[1])
"""


@pytest.mark.usefixtures("forked")
def test_a_call_that_returns_a_generator_has_no_number(watch: Watch) -> None:
    """It is taken after the call that was asked for."""
    result, report = watch(LAZY, before=("--calls", "1"))
    assert (result.exit_code, report["verdict"]["figures"], report["traces"][0]["complete"]) == (1, [], False)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_several_steps_as_one_and_a_module(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "loop.py").write_text(TRAIN)
    words = ["watch", "--quiet", "--format", "json", "--out", "out"]
    line = [*words, "--steps", "1-3", "-m", "package.loop", "--batch", "4"]
    result = CliRunner().invoke(cli, line)
    report = json.loads(Path("out/loop.json").read_text())
    assert (result.exit_code, total(report)) == (0, STEP // MICRO * (3 * MICRO + 1) * 4 // BATCH)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_one_call_of_a_script_without_an_optimizer(watch: Watch) -> None:
    result, report = watch(INFER, before=("--calls", "3"))
    assert (result.exit_code, total(report)) == (0, 2 * 5 * 3 * 4)


def test_an_older_python_is_refused_before_it_starts(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('it ran')")
    with pytest.raises(
        UsageError, match=r"^--python is Python 3\.9, and a step is watched in Python 3\.10 or later\.$"
    ):
        watching(Script(str(script), version="3.9"), run_request())


REFUSED = {
    "no framework": ("print(1)", (), "ended without importing PyTorch"),
    "no optimizer": (INFER, (), "no optimizer stepped in train.py, so there is no step to count. It called a model 3 times"),
    "too few steps": (TRAIN, ("--steps", "5"), "train.py took 3 steps, so there is no step 5: give --steps 1 to 3."),
    "too few calls": (INFER, ("--calls", "4"), "called a model 3 times, so there is no call 4 of a model"),
    "fails": ("import torch\nraise ValueError('bad data')", (), "failed before the end of step 1: ValueError: bad data."),
    "dies": ("import torch, os\nos._exit(3)", (), "train.py ended its process before step 1"),
    "exits": ("import torch, sys\nsys.exit(3)", (), "train.py ended with status 3 before the end of step 1."),
    "a formula": (TRAIN, ("--counter", "formula:6n"), "step.against('formula:6n')"),
    "a mode of its own": (MODE, (), "entered a mode of its own around its model"),
    "no step zero": (TRAIN, ("--steps", "0"), "'0' is no step from 1 on"),
    "two wishes": (TRAIN, ("--steps", "1", "--calls", "1"), "--steps and --calls name two things to count"),
    "another framework": (TRAIN, ("--counter", "tf.profiler@function"), "PyTorch, which tf.profiler@function cannot count"),
    "at rest": (TRAIN, ("--counter", "thop"), "`reconcile run --counter thop`"),
    "a module of another environment": ("import torch, no_such_module", (), "give its interpreter with --python"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_script_without_its_step_gets_one_sentence(watch: Watch, name: str) -> None:
    text, before, sentence = REFUSED[name]
    result, report = watch(text, before=before)
    assert (result.exit_code, report) == (2, {})
    assert sentence in result.output
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(("argument", "named"), [("--device=H100", True), ("--depth", False)])
def test_an_option_of_watch_behind_the_script_is_named_where_the_script_fails(
    watch: Watch, argument: str, named: bool
) -> None:
    result, _ = watch(REFUSED["exits"][0], argument)
    assert result.exit_code == 2
    assert ("comes before SCRIPT" in result.output, "--device" in result.output) == (named, named)


def test_a_file_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(cli, ["watch", "--out", "out", "nowhere.py"])
    assert result.exit_code == 2
    assert "nowhere.py is no file" in result.output


def test_a_file_or_a_device_that_is_nearly_one_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    script = CliRunner().invoke(cli, ["watch", "--out", "out", "trian.py"])
    device = CliRunner().invoke(cli, ["watch", "--device", "H100 SMX", "train.py"])
    assert (script.exit_code, device.exit_code) == (2, 2)
    assert ["Did you mean train.py?" in script.output, "Did you mean H100 SXM" in device.output] == [True, True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devise", "H100", "train.py"], "No such option '--devise'"),
        (["--nope=3", "train.py"], "No such option '--nope'"),
        (["--device", "H900", "train.py"], "the device 'H900' is not in the table of peaks"),
        (["--device", "H100 SXM", "--dtype", "x", "train.py"], "has no peak for 'x'"),
    ],
)
def test_an_option_that_is_wrong_is_said_before_the_script_runs(words: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["watch", *words])  # there is no train.py
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
