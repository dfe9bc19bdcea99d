"""What recording a real execution costs: a trace on the CPU beside flop_counter alone, and beside a trace on meta."""

from __future__ import annotations

import json

from measure import BARE, PYTHON, Section, median, run, table

MODELS = {
    "ResNet-50": ("resnet50",),
    "two blocks of GPT-2, 128 tokens": ("gpt2", "depth=2", "steps=128", "vocabulary=5000"),
    "a GRU of 97 steps behind a convolution": ("gru_demo",),
}
RECORD_LIMIT, BOTH_LIMIT = 2.0, 4.0
STEPS = ("call", "flop_counter", "trace on meta", "trace", "ledger")


def execution() -> Section:
    """The trace of a call, and the trace with flop_counter's ledger, against flop_counter alone."""
    section = Section("A real execution on the CPU: the trace and flop_counter's ledger beside flop_counter alone")
    rows, said = [], []
    for title, words in MODELS.items():
        found = json.loads(run([PYTHON, str(BARE / "torch_capture.py"), *words]).splitlines()[-1])
        steps = {name: median(found[name]) for name in STEPS}
        both, before = steps["trace"] + steps["ledger"], steps["trace on meta"] + steps["ledger"]
        record = section.bound(f"the trace of {title}", steps["trace"] / steps["flop_counter"], RECORD_LIMIT)
        whole = section.bound(f"trace and ledger of {title}", both / steps["flop_counter"], BOTH_LIMIT)
        rows.append((title, *(f"{steps[name]:.2f}" for name in STEPS)))
        said.append(
            f"{title}: the trace against flop_counter alone {record}; trace and ledger {whole}; with the trace on meta "
            f"{before / steps['flop_counter']:.2f} times."
        )
    section.lines = [
        "Seconds within one process, imports left out; each makes its model within its time. `call` is the model "
        "alone and `flop_counter` is the counter alone, both as anybody would write them; `trace` and `ledger` are the tool's, "
        "two executions. Medians of three interleaved rounds, after one that is thrown away.",
        "",
        *table(("model", *(f"{name}, s" for name in STEPS)), rows),
        "",
        *said,
        "",
        "The trace of a real execution costs a model and a call of it, which a trace on meta does not: the tool makes two "
        "executions where it made one and a trace on meta.",
    ]
    return section
