"""`reconcile run` of a pair in TensorFlow, PyTorch and JAX: its three workers side by side, and each of them alone."""

from __future__ import annotations

import tempfile

from measure import RECONCILE, Section, median, medians, run, table

RUNS, LIMIT = 5, 1.3
COUNTERS = {"TensorFlow": "tf.profiler@frozen", "PyTorch": "flop_counter", "JAX": "xla@lowered"}


def three() -> Section:
    """The run of all three against the slowest framework's run, in the environment of XLA's counters."""
    section = Section("Three frameworks side by side")
    with tempfile.TemporaryDirectory() as folder:
        start = [RECONCILE, "run", "--model", "gru_demo", "--environment", "xla", "--out", folder]
        alone = {name: [*start, "--counter", counter] for name, counter in COUNTERS.items()}
        together = [*start, *(word for counter in COUNTERS.values() for word in ("--counter", counter))]
        run(together)  # makes the environment
        seconds = medians({"all three": together, **alone}, RUNS)
    slowest = max(COUNTERS, key=lambda name: median(seconds[name]))
    ratio = median(seconds["all three"]) / median(seconds[slowest])
    rows = ((name, f"{median(s):.2f}", f"{s[0]:.2f}", f"{s[-1]:.2f}") for name, s in seconds.items())
    section.lines = [
        f"`reconcile run --model gru_demo` with one counter of each framework, and with one alone: median, fastest and slowest "
        f"of {RUNS} warm, interleaved runs, reports included.",
        "",
        *table(("run", "median s", "fastest", "slowest"), rows),
        "",
        f"All three against the slowest alone ({slowest}): "
        f"{section.bound('three frameworks against the slowest alone', ratio, LIMIT)}.",
    ]
    return section
