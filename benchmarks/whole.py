"""`reconcile run` of a small pair beside each counter alone; `--help`; a second `reconcile matrix`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from measure import BARE, MEMORY_STEP, PYTHON, RECONCILE, Section, measured, median, medians, mib, run, table

COUNTERS = {
    "tf.profiler@function": "tf_function.py",
    "tf.profiler@frozen": "tf_frozen.py",
    "tf.profiler@runmeta": "tf_runmeta.py",
    "thop": "torch_thop.py",
    "fvcore": "torch_fvcore.py",
    "flop_counter": "torch_flop_counter.py",
}
HELP_RUNS, HELP_LIMIT = 15, 3.0
WHOLE_RUNS, WHOLE_LIMIT = 7, 1.5
MEMORY_RUNS = 3
MATRIX_RUNS, MATRIX_LIMIT = 3, 1.5


def whole() -> Section:
    """The whole run of gru_demo against the slowest counter alone, and its peak memory."""
    section = Section("`reconcile run --model gru_demo` beside each counter alone")
    with tempfile.TemporaryDirectory() as folder:
        command = [RECONCILE, "run", "--model", "gru_demo", "--out", folder]
        run(command)
        _same_work(Path(folder) / "gru_demo.json")
        commands = {"whole run": command}
        commands |= {counter: [PYTHON, str(BARE / script)] for counter, script in COUNTERS.items()}
        seconds = medians(commands, WHOLE_RUNS)
        memory = {name: median(measured(c)[1] for _ in range(MEMORY_RUNS)) for name, c in commands.items()}
    slowest = max(COUNTERS, key=lambda counter: median(seconds[counter]))
    ratio = median(seconds["whole run"]) / median(seconds[slowest])
    largest = max(COUNTERS, key=lambda counter: memory[counter])
    section.lines = [
        f"Wall-clock seconds of whole processes, imports included: median, fastest and slowest of {WHOLE_RUNS} warm, "
        "interleaved runs. The whole run is both frameworks, all six counters, both traces, every statement and the "
        "reports. Memory is the largest sum of resident memory over the process tree, sampled every "
        f"{MEMORY_STEP * 1000:.0f} ms: median of {MEMORY_RUNS} runs of their own. The scripts are in `bare/`; each "
        "reports the total that the whole run reports for its counter.",
        "",
        *table(
            ("process", "median s", "fastest", "slowest", "peak MiB"),
            (
                (name, f"{median(s):.2f}", f"{s[0]:.2f}", f"{s[-1]:.2f}", mib(memory[name]))
                for name, s in seconds.items()
            ),
        ),
        "",
        f"Whole run against the slowest counter alone ({slowest}): "
        f"{section.bound('the whole run against the slowest counter alone', ratio, WHOLE_LIMIT)}.",
        f"Its peak memory against the largest ({largest}): {memory['whole run'] / memory[largest]:.2f} times; both "
        "frameworks are in memory at once.",
    ]
    return section


def _same_work(report: Path) -> None:
    """Each counter alone reports the total that the whole run reports for it: they measure the same model."""
    ledgers = {ledger["counter"]: ledger["total"] for ledger in json.loads(report.read_text())["ledgers"]}
    for counter, script in COUNTERS.items():
        alone = int(run([PYTHON, str(BARE / script)]).split()[-1])
        if alone != ledgers[counter]:
            sys.exit(f"{counter} reports {alone:,} alone and {ledgers[counter]:,} in the whole run: not the same model")


def start() -> Section:
    """`reconcile --help` against that of an empty click command."""
    section = Section("`reconcile --help`")
    commands = {"ours": [RECONCILE, "--help"], "click": [PYTHON, str(BARE / "click_help.py"), "--help"]}
    seconds = {name: median(values) for name, values in medians(commands, HELP_RUNS).items()}
    section.lines = [
        f"Median of {HELP_RUNS} warm, interleaved runs: {seconds['ours'] * 1000:.0f} ms, an empty click command's "
        f"{seconds['click'] * 1000:.0f} ms: "
        f"{section.bound('reconcile --help against an empty one', seconds['ours'] / seconds['click'], HELP_LIMIT)}."
    ]
    return section


def matrix() -> Section:
    """A second `reconcile matrix` from warm caches against the slowest of its cells alone."""
    from reconcile.launch.environments.definitions import load

    section = Section("`reconcile matrix --model gru_demo`")
    with tempfile.TemporaryDirectory() as folder:
        command = [RECONCILE, "matrix", "--model", "gru_demo", "--out", folder]
        run(command)
        # An old torch has no trace of its own: its cell does not stand alone.
        stands = [name for name, env in load().items() if "tf" in env.frameworks]
        cells = {name: [*command, "--environment", name] for name in stands}
        os.environ["RECONCILE_FRESH"] = "1"  # a cell alone is a real run
        alone = {name: median(values) for name, values in medians(cells, MATRIX_RUNS).items()}
        del os.environ["RECONCILE_FRESH"]
        again = median(medians({"matrix": command}, MATRIX_RUNS)["matrix"])
    slowest = max(alone, key=lambda name: alone[name])
    section.lines = [
        f"All environments a second time, from warm caches: {again:.2f} s; the slowest of them alone ({slowest}), run for "
        f"real: {alone[slowest]:.2f} s: "
        f"{section.bound('a second matrix against its slowest cell', again / alone[slowest], MATRIX_LIMIT)} (medians of "
        f"{MATRIX_RUNS})."
    ]
    return section
