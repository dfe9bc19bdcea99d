"""Layers of Keras beside PyTorch's, in models that no pair declares: one row for each, and every row of every report foots."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.own.conftest import Repository
from tests.report.tables import amount, read

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

BATCH, STEPS, WIDE, HIDDEN, HEADS = 2, 5, 3, 4, 2
BOTH = f"""
    def by_keras():
        import keras
        from keras import layers
        x = i = keras.Input(({STEPS}, {WIDE}), batch_size={BATCH})
        x = layers.Bidirectional(layers.GRU({HIDDEN}, return_sequences=True), name="bigru")(x)
        x = layers.TimeDistributed(layers.Dense(6), name="spread")(x)
        x = layers.LSTM({HIDDEN}, return_sequences=True, name="lstm")(x)
        x = layers.RNN([layers.SimpleRNNCell({HIDDEN}), layers.SimpleRNNCell({HIDDEN})], return_sequences=True, name="rnn")(x)
        x = layers.MultiHeadAttention({HEADS}, {HIDDEN}, name="mha")(x, x)
        return keras.Model(i, layers.Dense(2, name="head")(x))

    def by_torch():
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.bigru = nn.GRU({WIDE}, {HIDDEN}, batch_first=True, bidirectional=True)
                self.spread = nn.Linear({2 * HIDDEN}, 6)
                self.lstm = nn.LSTM(6, {HIDDEN}, batch_first=True)
                self.rnn = nn.RNN({HIDDEN}, {HIDDEN}, 2, batch_first=True)
                self.mha = nn.MultiheadAttention({HIDDEN}, {HEADS}, batch_first=True)
                self.head = nn.Linear({HIDDEN}, 2)

            def forward(self, x):
                x = self.rnn(self.lstm(self.spread(self.bigru(x)[0]))[0])[0]
                return self.head(self.mha(x, x, x, need_weights=False)[0])
        return Net()
"""
TURNS = 2 * BATCH * STEPS
"""Of each multiply-add of one sample and step, in FLOPs."""


def attention(width: int) -> int:
    """Queries, keys, values and the output of heads that are ``width`` wide together, then two products of them."""
    return TURNS * (4 * HIDDEN * width + 2 * STEPS * width)


SAME = {
    "bigru": 2 * TURNS * 3 * HIDDEN * (WIDE + HIDDEN),
    "spread": TURNS * 2 * HIDDEN * 6,
    "lstm": TURNS * 4 * HIDDEN * (6 + HIDDEN),
    "rnn": 2 * TURNS * HIDDEN * (HIDDEN + HIDDEN),
    "head": TURNS * HIDDEN * 2,
}


@pytest.mark.parametrize("pass_", ["forward", "training"])
def test_each_layer_is_one_row_that_foots_in_every_report(repository: Repository, pass_: str) -> None:
    repository.write(own=BOTH)
    words = ("--tf", "own:by_keras", "--torch", "own:by_torch", "--input", f"{BATCH},{STEPS},{WIDE}", "--pass", pass_)
    name = "own.by_keras+own.by_torch" + "-training" * (pass_ == "training")
    result = repository.run(*words)
    assert result.exit_code == 0, result.output
    data = json.loads((repository.folder / "out" / f"{name}.json").read_text())
    assert {s["residual"] for s in data["statements"]} <= {0, None}  # not every counter sees a training step
    rows = {row["layer"]: row for row in data["layers"]}
    ran = {name: row["work_by_framework"] for name, row in rows.items() if any(row["work_by_framework"].values())}
    if (
        pass_ == "forward"
    ):  # an attention layer of Keras has heads of a size of its own: four layers, which PyTorch has not
        wide = {"tf": attention(HEADS * HIDDEN), "torch": attention(HIDDEN)}
        assert ran == {**{name: {"tf": work, "torch": work} for name, work in SAME.items()}, "mha": wide}
    assert set(rows) - {"(model)", "(loss)"} == {*SAME, "mha"}
    assert {row["by"].partition("+")[0] for row in data["alignment"]} == {"name"}
    homes = {ledger["counter"]: ledger["framework"] for ledger in data["ledgers"]}
    for layer, row in rows.items():
        for counter, home in homes.items():
            if counter in row["counters"]:
                causes = sum(row["causes"].get(counter, {}).values()) + row["residuals"].get(counter, 0)
                assert row["counters"][counter] + causes == row["work_by_framework"][home], (layer, counter)
    by_entries = Counter[tuple[str, str]]()
    for ledger in data["ledgers"]:
        for entry in ledger["entries"]:
            by_entries[ledger["counter"], entry["layer"]] += entry["value"] * {"MAC": 2, "FLOP": 1}[ledger["unit"]]
    assert {(c, layer): n for layer, row in rows.items() for c, n in row["counters"].items() if n} == {
        key: n for key, n in by_entries.items() if n
    }
    files_foot(repository.folder / "out" / f"{name}.md", homes, rows)


def files_foot(path: Path, homes: dict[str, str], rows: dict[str, dict[str, object]]) -> None:
    """Markdown, CSV and the page's data have the same rows."""
    (table,) = [t for t in read(path.read_text()).tables if t.heading == "Layers"]
    for row in table.rows[:-1]:
        for at, name in enumerate(table.header):
            for counter in (c for c in homes if c in name.split(", ")):
                work = (
                    table.header.index(f"work ({homes[counter]})") if f"work ({homes[counter]})" in table.header else 1
                )
                value, *causes = row[at].split("\n")
                if value:
                    sums = amount(value) + sum(amount(cause.rpartition(" ")[2]) for cause in causes)
                    assert sums == amount(row[work]), (row[0], name)
    with path.with_suffix(".csv").open() as file:
        assert {line["layer"] for line in csv.DictReader(file)} - {""} <= {*rows}
    found = re.search(
        r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', path.with_suffix(".html").read_text(), re.S
    )
    assert found is not None
    page = json.loads(found[1])
    assert {page["strings"][index] for index in page["layers"]} == {*rows}
