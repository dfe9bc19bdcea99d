"""action.yml as a runner runs it: its steps in bash, in a repository of its own, with the wheel alone and ``gh`` written down."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcile.launch.environments.interpreters import clean_environ
from tests.programs import ROOT, build_wheel, install

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

SIDE, CHANNELS, FEATURES = 16, 3, 8
NET = f'''
"""A convolution in PyTorch."""
from reconcile.model_zoo.pair import Input, Layer, Pair

class Net(Pair):
    name = "net"
    layers = (Layer("conv", torch="conv"),)

    def inputs(self, p):
        return [Input("x", (1, {CHANNELS}, {SIDE}, {SIDE}))]

    def build_torch(self, p):
        import torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d({CHANNELS}, {FEATURES}, KERNEL)

            def forward(self, x):
                return self.conv(x)

        return Model()

KERNEL = 3
PAIR = Net()
'''
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$GH_LOG"
case "$*" in
  *--paginate*) cat "$GH_LOG.comments" 2>/dev/null || true ;;
  *) for word in "$@"; do case "$word" in body=@*) cp "${word#body=@}" "$GH_LOG.body" ;; esac; done ;;
esac
"""


def macs(kernel: int) -> int:
    """Multiply-adds of the convolution, without padding."""
    return int((SIDE - kernel + 1) ** 2 * kernel**2 * CHANNELS * FEATURES)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what it needs; PyTorch and the counters are those that run this."""
    folder = tmp_path_factory.mktemp("fresh") / "env"
    found = install(str(build_wheel(tmp_path_factory)), folder)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "torch.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return found


class Runner:
    """A repository, and a runner that has checked it out."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder, self.python = folder, python
        self.log = folder / "gh.log"
        self.summary = folder / "summary.md"
        self.repository = folder / "repository"
        self.repository.mkdir()
        (folder / "bin").mkdir()
        (folder / "bin" / "gh").write_text(GH)
        (folder / "bin" / "gh").chmod(0o755)
        self.net(3)

    def net(self, kernel: int) -> None:
        (self.repository / "net.py").write_text(NET.replace("KERNEL = 3", f"KERNEL = {kernel}"))

    def step(self, name: str, token: str = "", **inputs: str) -> subprocess.CompletedProcess[str]:
        action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
        given = {key: value.get("default", "") for key, value in action["inputs"].items()}
        given |= {"python": str(self.python), "arguments": "--model net.py", "token": token, **inputs}
        (step,) = [step for step in action["runs"]["steps"] if step["name"] == name]
        known = {f"inputs.{key}": value for key, value in given.items()}
        known |= {"github.repository": "me/net", "github.event.pull_request.number": "7" if token else ""}

        def value(text: str) -> str:
            return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)

        environ = {
            **clean_environ(), **{key: value(text) for key, text in step["env"].items()},
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "GH_LOG": str(self.log),
            "RUNNER_TEMP": str(self.folder), "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_ACTION_PATH": str(ROOT),
        }  # fmt: skip
        assert step["shell"] == "bash"
        assert ("PYTHON" in step["env"]) + ("GH_TOKEN" in step["env"]) < 2  # the model's code, or the token
        # as a runner calls it (docs.github.com, workflow syntax, jobs.<job_id>.steps[*].shell)
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.repository, env=environ, capture_output=True, text=True, check=False)

    def check(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Both steps with a token, as in a pull request: the second one runs however the first one ends."""
        done = self.step("Check", **inputs)
        commented = self.step("Comment", token="secret", **inputs)
        assert commented.returncode == 0, commented.stderr
        return done

    def accept(self) -> None:
        command = [str(self.python), "-m", "reconcile", "check", "--model", "net.py", "--update"]
        subprocess.run(command, cwd=self.repository, env=clean_environ(), check=True, capture_output=True)


@pytest.fixture
def runner(tmp_path: Path, python: Path) -> Runner:
    made = Runner(tmp_path, python)
    made.accept()
    return made


def test_the_action_installs_the_checkout_that_it_stands_in(runner: Runner) -> None:
    stub = runner.folder / "bin" / "python"
    stub.write_text("#!/bin/sh\necho $*\n")
    stub.chmod(0o755)
    done = runner.step("Install", python=str(stub))
    assert done.stdout.split() == ["-m", "pip", "install", "--quiet", str(ROOT), "flop-reconcile[torch]"]


def test_a_changed_kernel_fails_and_the_comment_says_why(runner: Runner) -> None:
    done = runner.step("Check")
    assert done.returncode == 0, done.stderr
    assert runner.summary.read_text().startswith("✅ **net: unchanged: 3 counters and 1 trace")
    assert not runner.log.exists()
    runner.net(5)
    done = runner.check()
    assert done.returncode == 1
    marker, _, comment = (runner.folder / "gh.log.body").read_text().partition("\n")
    assert marker.startswith("<!-- reconcile ")
    assert comment.startswith("❌ **net: not as in reports/baselines/net/current.json")
    (row,) = [line for line in comment.splitlines() if line.startswith("| conv |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:3] == [f"{2 * macs(3):,}", f"{2 * macs(5):,}"]
    assert cells[4] == "kernel 3x3 to 5x5"
    assert "thop, fvcore, flop\\_counter: the same change, and no other." in comment.replace("p_c", "p\\_c")
    assert "reconcile check --model net.py --update" in comment
    assert runner.summary.read_text().endswith(comment)
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
    assert "file=reports/baselines/net/current.json,title=net%3A conv moved::" in error
    runner.accept()
    assert runner.step("Check").returncode == 0


def test_a_folder_of_the_checkout_is_not_the_command(runner: Runner) -> None:
    (runner.repository / "reconcile").mkdir()
    (runner.repository / "reconcile" / "__main__.py").write_text("raise SystemExit(9)")
    assert runner.step("Check").returncode == 0


def test_the_next_check_replaces_the_comment(runner: Runner) -> None:
    runner.net(5)
    runner.check()
    listed, posted = runner.log.read_text().splitlines()
    assert "repos/me/net/issues/7/comments" in listed
    assert posted.startswith("api --silent repos/me/net/issues/7/comments")
    (runner.folder / "gh.log.comments").write_text("41\n42\n")
    runner.check()
    assert (
        runner.log.read_text()
        .splitlines()[-1]
        .startswith("api --silent --method PATCH repos/me/net/issues/comments/41 ")
    )
    assert "secret" not in runner.log.read_text() + runner.summary.read_text()


def test_arguments_that_are_wrong_fail_without_a_comment(runner: Runner) -> None:
    done = runner.check(arguments="--model gone.py; touch here")
    assert done.returncode == 2
    assert not (runner.repository / "here").exists()
    assert not runner.log.exists()
