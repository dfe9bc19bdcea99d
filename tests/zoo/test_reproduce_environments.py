"""The programs of `reconcile reproduce` for counters that need an environment of their own: each runs there and shows a bug."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconcile.launch.environments import load
from reconcile.launch.in_environment import collect_in
from reconcile.launch.provision import ensure
from reconcile.zoo import reproduce

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

BUGS = {
    # (counter, case): (reported, ran, the sentence or the line of source that the program names)
    ("mmengine", "family_convolution:conv2d_same"): (0, 2 * 4 * 9 * 8 * 4 * 9, "aten._convolution_mode"),
    ("ultralytics-thop", "family_recurrent:lstm"): (
        2 * 5 * (4 * 3 * (4 + 3) + 8 * 3 + 8 * 3), 2 * 5 * 4 * 3 * (4 + 3), "thop/rnn_hooks.py:154",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("counter", "case"), BUGS)
def test_a_program_shows_a_bug_in_the_counters_environment(counter: str, case: str, tmp_path: Path) -> None:
    reported, ran, names = BUGS[counter, case]
    environment = load()[counter]
    there = collect_in(environment, lambda _text: None)
    code = reproduce.program(counter, case, lambda request: there(request, lambda _event: None))
    assert "reconcile" not in code
    assert names in " ".join(code.replace("\n#", "").split())
    file = tmp_path / "program.py"
    file.write_text(code)
    done = subprocess.run([ensure(environment), str(file)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.splitlines()[-2:] == [f"reported {reported}", f"expected {ran}"], done.stderr[-2000:]
