"""What it costs to look for values that were computed outside of PyTorch's operators: a run with that, beside one without."""

from __future__ import annotations

import tempfile

from measure import RECONCILE, Section, median, medians, table

LIMITS = {"bert_base": 1.25, "resnet50": 1.25, "swin_t": 1.25, "gru_demo": 1.5}
RUNS = 5


def second_call() -> Section:
    """The whole run of a pair against the same with ``--quick``."""
    section = Section("`reconcile run`, beside `reconcile run --quick`")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, limit in LIMITS.items():
            command = [RECONCILE, "run", "--model", name, "--out", folder]
            seconds = medians({"run": command, "quick": [*command, "--quick"]}, RUNS)
            whole, quick = median(seconds["run"]), median(seconds["quick"])
            bound = section.bound(f"{name} with the second call", whole / quick, limit)
            rows.append((name, f"{whole:.2f}", f"{quick:.2f}", bound))
    section.lines = [
        "The trace of the PyTorch side digests what each operator leaves, and calls the model a second time. Wall-clock seconds "
        f"of whole processes, medians of {RUNS} warm, interleaved runs.",
        "",
        *table(("pair", "run", "`--quick`", "ratio"), rows),
    ]
    return section
