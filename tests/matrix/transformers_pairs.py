"""Sweep the classes that transformers 4.57 has in both frameworks: `make pairs`, or name some of them.

A pair is in order if both traces are complete, every statement is closed with residual 0, and both frameworks do the same
work or differ by named causes. The environment is `tests/matrix/huggingface.toml`, which uv makes once. A sweep of all pairs
writes `reports/pairs.md`; some pairs alone are only printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reconcile.core.atomic import write_file
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.errors import UsageError
from reconcile.engine.settle import Collected, settle
from reconcile.launch import user_models
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments import runs
from reconcile.launch.request import RunRequest
from tests.matrix.pairs_page import Row, finding, page, row_of, summary
from tests.matrix.transformers_models import TWINS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "reports/pairs.md"
MODULE = "tests.matrix.transformers_models"
JOBS = 2
"""Pairs that run at the same time."""
COUNTERS = ("tf.profiler@frozen", "flop_counter")


def environment() -> environments.Environment:
    """The environment that has transformers."""
    return environments.load(ROOT / "tests/matrix/huggingface.toml")["huggingface"]


def collected(name: str) -> Collected | UsageError:
    """Both twins, traced and counted in that environment; an error is returned, so that the other pairs go on."""
    request = RunRequest(
        "",
        {},
        factories={"tf": f"{MODULE}:tf_twin", "torch": f"{MODULE}:torch_twin"},
        arguments={"name": name},
        inputs=user_models.read_inputs(TWINS[name].inputs),
        counters=COUNTERS,
    )
    try:
        return runs.collect_in(environment())(request, lambda _event: None)
    except UsageError as error:
        return error


def main(names: Sequence[str]) -> int:
    """A line per pair, and the page of all of them; 1 if any is not in order."""
    rows, versions = [], dict[str, str]()
    chosen = names or list(TWINS)
    with ThreadPoolExecutor(JOBS) as pool:
        for name, outcome in zip(chosen, pool.map(collected, chosen), strict=True):
            if isinstance(outcome, UsageError):
                row = Row(name, reasons=(f"refused: {outcome}",))
            else:
                result = settle(outcome, Conventions(MATMUL))
                row = row_of(name, result)
                versions.update(result.environment)
            rows.append(row)
            print(f"{'ok  ' if row.in_order else 'OPEN'} {name}: {finding(row)}", flush=True)
    print(summary(rows))
    if not names:
        write_file(PAGE, page(rows, COUNTERS, environment().title, versions))
    return 0 if not [row for row in rows if not row.in_order] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
