"""Models and lengths that nobody runs here: an encoder of 59 billion parameters, a decoder of 71, and a recurrent layer of
100,000 steps."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from measure import BARE, MODELS, PYTHON, RECONCILE, Section, measured, median, mib, run, table

COUNTERS = ("thop", "fvcore", "flop_counter")
ENCODER_LIMIT, ENCODER_MEMORY = 1.5, 1 << 30
DECODER_RUNS, DECODER_LIMIT = 3, 1.8
SHORT, LONG, STEPS_RUNS, STEPS_LIMIT = 100, 100_000, 3, 1.5
CAPTURE_RUNS, CAPTURE_LIMIT = 3, 2.5


def encoder() -> Section:
    """Trace, three counters and their statements against the three counters alone; nothing allocates the weights."""
    section = Section("An encoder of 59 billion parameters")
    with tempfile.TemporaryDirectory() as folder:
        whole = [RECONCILE, "run", "--torch", "encoder:make", "--out", folder]
        seconds, memory = {}, {}
        seconds["whole run"], memory["whole run"], _ = measured(whole, MODELS)
        ledgers = json.loads((Path(folder) / "encoder.make.json").read_text())["ledgers"]
        totals = {ledger["counter"]: ledger["total"] for ledger in ledgers}
    for counter in COUNTERS:
        seconds[counter], memory[counter], said = measured([PYTHON, str(BARE / "on_meta.py"), "encoder", counter])
        if int(said.split()[-1]) != totals[counter]:
            section.broken.append(f"{counter} alone does not report the {totals[counter]:,} of the whole run")
    ratio = seconds["whole run"] / sum(seconds[counter] for counter in COUNTERS)
    if memory["whole run"] >= ENCODER_MEMORY:
        section.broken.append(f"the whole run of the encoder takes {mib(memory['whole run'])} MiB")
    section.lines = [
        "80 layers, width 8192, feed-forward 28672, 64 heads, 2048 tokens: 236 GB of weights in float32. The tool finds that "
        "they do not fit and counts on meta; the counters alone are given the model on meta. Whole processes, one run of "
        "each.",
        "",
        *table(
            ("process", "s", "peak MiB"),
            ((name, f"{value:.1f}", mib(memory[name])) for name, value in seconds.items()),
        ),
        "",
        "Trace, three counters, statements and reports against the three counters alone, one after the other: "
        f"{section.bound('the encoder against its three counters alone', ratio, ENCODER_LIMIT)}. Peak memory: "
        f"{mib(memory['whole run'])} MiB, less than {mib(ENCODER_MEMORY)}.",
    ]
    return section


def decoder() -> Section:
    """Trace, flop_counter and their statement against flop_counter alone, both on meta."""
    section = Section("A LLaMA-style decoder of 71 billion parameters")
    times: dict[str, list[float]] = {"whole run": [], "flop_counter": []}
    for _ in range(DECODER_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            whole = [RECONCILE, "run", "--torch", "decoder:make", "--counter", "flop_counter", "--out", folder]
            times["whole run"].append(measured(whole, MODELS)[0])
            (ledger,) = json.loads((Path(folder) / "decoder.make.json").read_text())["ledgers"]
        seconds, _, said = measured([PYTHON, str(BARE / "on_meta.py"), "decoder", "flop_counter"])
        times["flop_counter"].append(seconds)
        if int(said.split()[-1]) != ledger["total"]:
            section.broken.append(f"flop_counter alone does not report the {ledger['total']:,} of the whole run")
    medians = {name: median(runs) for name, runs in times.items()}
    ratio = medians["whole run"] / medians["flop_counter"]
    section.lines = [
        "80 layers, width 8192, feed-forward 28672, 64 heads over 8 of keys and values, 2048 tokens, on meta. Whole processes, "
        f"medians of {DECODER_RUNS}.",
        "",
        *table(("process", "s"), ((name, f"{value:.1f}") for name, value in medians.items())),
        "",
        "Trace, flop_counter, statement and reports against flop_counter alone: "
        f"{section.bound('the decoder against flop_counter alone', ratio, DECODER_LIMIT)}.",
    ]
    return section


def recurrent() -> Section:
    """Tracing a GRU of 100 and of 100,000 steps, in both frameworks."""
    section = Section(f"A GRU of {SHORT:,} and of {LONG:,} steps")
    rows, said = [], []
    for framework, name in (("torch", "PyTorch"), ("tf", "TensorFlow")):
        found: dict[int, list[float]] = {SHORT: [], LONG: []}
        for _ in range(STEPS_RUNS):
            for steps in found:
                command = [PYTHON, str(BARE / "trace_recurrent.py"), framework, str(steps)]
                found[steps].append(float(run(command).split()[-1]))
        short, long_ = median(found[SHORT]), median(found[LONG])
        rows.append((name, f"{short * 1000:.0f}", f"{long_ * 1000:.0f}"))
        said.append(f"{name}: {section.bound(f'tracing {LONG:,} steps in {name}', long_ / short, STEPS_LIMIT)}")
    section.lines = [
        "Building the model and tracing it, imports left out: a fused call is one op in PyTorch, on meta, and a loop's bound is "
        f"a constant in TensorFlow. Medians of {STEPS_RUNS} processes.",
        "",
        *table(("framework", f"{SHORT:,} steps, ms", f"{LONG:,} steps, ms"), rows),
        "",
        f"The long one against the short one, {'; '.join(said)}.",
    ]
    return section


def capture() -> Section:
    """ResNet50 in TensorFlow: the trace and three ledgers against building it, its concrete function and one profile."""
    section = Section("ResNet50 in TensorFlow: trace and three variants of tf.profiler")
    runs = [json.loads(run([PYTHON, str(BARE / "tf_capture.py")]).splitlines()[-1]) for _ in range(CAPTURE_RUNS)]
    steps = {name: median(found[name] for found in runs) for name in runs[0]}
    bare = sum(steps[name] for name in ("build", "concrete function", "profile"))
    ours = sum(value for name, value in steps.items()) - bare
    section.lines = [
        "Seconds within one process, imports left out, the bare steps and ours on models of their own: medians of "
        f"{CAPTURE_RUNS}.",
        "",
        *table(("step", "s"), ((name, f"{value:.2f}") for name, value in steps.items())),
        "",
        f"The trace and three ledgers, {ours:.2f} s, against the first three steps, {bare:.2f} s: "
        f"{section.bound('capturing ResNet50', ours / bare, CAPTURE_LIMIT)}.",
    ]
    return section
