"""Sweep the classes that transformers 4.57 has in both frameworks: `make pairs`, or name some of them.

A pair is in order if both traces are complete, every statement is closed with residual 0, and both frameworks do the same
work or differ by named causes. The environment is `tests/matrix/huggingface.toml`, which uv makes once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from reconcile.core.conventions import BUILT_IN, MATMUL
from reconcile.core.errors import UsageError
from reconcile.core.results import RunResult
from reconcile.core.text import number, signed
from reconcile.engine.settle import settle
from reconcile.launch import environments, in_environment, user_models
from reconcile.launch.request import RunRequest
from tests.matrix.transformers_models import TWINS

ROOT = Path(__file__).resolve().parents[2]
MODULE = "tests.matrix.transformers_models"
COUNTERS = ("tf.profiler@frozen", "flop_counter")


def run(name: str) -> RunResult:
    """Both twins, traced and counted in the environment that has transformers."""
    env = environments.load(ROOT / "tests/matrix/huggingface.toml")["huggingface"]
    request = RunRequest(
        "",
        {},
        factories={"tf": f"{MODULE}:tf_twin", "torch": f"{MODULE}:torch_twin"},
        arguments={"name": name},
        inputs=user_models.read_inputs(TWINS[name].inputs),
        counters=COUNTERS,
    )
    return settle(in_environment.collect_in(env)(request, lambda _event: None), MATMUL, BUILT_IN)


def faults(result: RunResult) -> Iterator[str]:
    """Why a pair is not in order, a sentence each."""
    for trace in result.traces:
        if not trace.complete:
            yield f"{trace.name}: {trace.reason}"
    for statement in result.statements:
        if statement.residual != 0:
            yield f"{statement.from_} to {statement.to}: {statement.reason}"


def outcome(name: str) -> tuple[bool, str]:
    """Whether a pair is in order, and its line."""
    try:
        result = run(name)
    except UsageError as error:
        return False, f"refused: {error}"
    reasons = list(dict.fromkeys(faults(result)))
    totals = [trace.totals.get("matmul") for trace in result.traces]
    works = " and ".join("unknown" if total is None else number(total) for total in totals)
    rows = [row.work for row in result.layers if any(row.work.values())]
    alike = sum(work.get("tf") == work.get("torch") for work in rows)
    layers = f"{alike} of {len(rows)} layers alike"
    if reasons:
        return False, f"{works}; {layers}; " + "; ".join(reasons[:3])
    between = result.statement("trace@tf", "trace@torch")
    causes = ", ".join(f"{cause.value} {signed(amount)}" for cause, amount in between.by_cause().items())
    return True, f"{works}; {layers}; {causes or 'the same work'}"


def main(names: Sequence[str]) -> int:
    """A line per pair; 1 if any is not in order."""
    good = []
    for name in names:
        start = time.monotonic()
        is_good, line = outcome(name)
        good.append(is_good)
        print(f"{'ok  ' if is_good else 'OPEN'} {name}: {line} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{sum(good)} of {len(good)} pairs are in order.")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(TWINS)))
