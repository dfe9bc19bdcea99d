"""A counter that needs variables before its framework is imported runs in a process of its own, which has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.protocol import TRACE
from reconcile.core.registry import known_counters
from reconcile.launch import runner
from reconcile.launch.request import RunRequest
from reconcile.launch.workers.supervisor import Supervisor

REQUEST = RunRequest("gru_demo", {})
OWN = dict(known_counters()["tf_libraries"].variables)
TWINS = RunRequest(factories={"tf": "tests.adapters.counters.tf_libraries.layers:twins"}, counters=("tf_libraries",))


@pytest.mark.parametrize(
    ("trace", "counters", "groups"),
    [
        (True, ["tf.profiler@frozen", "tf_libraries"], [({}, [TRACE, "tf.profiler@frozen"]), (OWN, ["tf_libraries"])]),
        (True, ["tf_libraries"], [({}, [TRACE]), (OWN, ["tf_libraries"])]),
        (False, ["tf_libraries"], [(OWN, ["tf_libraries"])]),
        (True, ["thop"], [({}, [TRACE, "thop"])]),
        (False, [], [({}, [])]),
    ],
)
def test_the_processes_of_a_framework(trace: bool, counters: list[str], groups: Any) -> None:
    assert runner._groups(replace(REQUEST, trace=trace), counters) == groups


def test_a_process_with_variables_of_its_own_is_not_forked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[Supervisor] = []

    def run(self: Supervisor) -> Any:
        made.append(self)
        return {task: runner.Outcome(None, "stopped") for task in self.tasks}

    monkeypatch.setattr(Supervisor, "run", run)
    monkeypatch.setattr(runner, "FORKS", [lambda *_: "nursery"])
    with pytest.raises(UsageError, match="could not be read in any worker"):
        runner.collect(TWINS)
    first, second = sorted(made, key=lambda each: len(each.variables))
    assert (first.tasks, first.variables, first.nursery) == ([TRACE], {}, "nursery")
    assert (second.tasks, second.variables, second.nursery) == (["tf_libraries"], OWN, None)
    assert first.folder != second.folder
