"""Files of text that the commands read: baselines, conventions, mappings, environments and a sweep's list."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from . import commands, mutate
from .audit import ROOT
from .commands import BASELINE, HERE, SMALL, command
from .harness import Target, Wrong, drawn

COMMITTED, BASELINES = (f"{HERE}/{path.relative_to(ROOT)}" for path in (BASELINE, SMALL.parents[1]))
DEEP = 5000
"""Levels beyond every reader's recursion, and digits beyond Python's limit."""
VALUES = ('0 -1 2.5 1e3 nan inf true "2" 0x10 [1] {a=1} 1979-05-27 ' + "9" * DEEP + " 1" + "0" * 400).split()
"""What stands behind an equals sign where a number is wanted."""


@cache
def _baseline(path: Path, layers: int = 6) -> Any:
    """A committed baseline, cut to a few ops and entries so that a mutation meets every kind of field."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for kind, inside in (("traces", "ops"), ("ledgers", "entries")):
        for record in data[kind]:
            record[inside] = record[inside][:layers]
            for name in ("sightings", "untaken"):
                if isinstance(record.get(name), list):
                    record[name] = record[name][:3]
    return data


WORDS = ("matmul_init", "gru_demo", "trace", "ledger", "failed", "MAC", "\x1b[31m")


def baselines(rng: Random) -> bytes:
    """``check`` of a committed baseline or ledger, mutated, and one that is as it was; or ``decode`` out of it."""
    base = rng.choice((_baseline(BASELINE), _baseline(SMALL), _baseline(BASELINE)["ledgers"][0]))
    text = mutate.tree(rng, base, WORDS)
    if rng.random() < 0.1:
        spoilt = mutate.blob(rng, text.encode("utf-8", "replace"))
        return command(["check", "{a.json}", COMMITTED], {"a.json": spoilt})
    if rng.random() < 0.25 and base is _baseline(SMALL):
        look = ["decode", "1234", "--model", "matmul_init", "--no-run", "--baselines", "{}"]
        return command(look, {"matmul_init/current.json": text})
    order = ["{a.json}", "{b.json}"] if rng.random() < 0.5 else ["{b.json}", "{a.json}"]
    more = rng.choice(([], ["--convention", "all"], ["-v"]))
    return command(["check", *order, *more], {"a.json": text, "b.json": json.dumps(base)})


CONVENTION = "[mine]\nmac = 2\nadd = 1\nmeaning = 'words'\n\n[other]\nmul = 1\n"
KEYS = mutate.words('mac accumulators add mul div cmp special meaning ad "\\u0000" a.b name')
TABLES = ("[mine] [matmul] [[mine]] [mine.x] [''] [\"\\u001b[2J\"] mine=1 [" + "a." * DEEP + "a]").split()


def conventions() -> st.SearchStrategy[bytes]:
    """Convention files: tables of weights, good and bad, given to three commands."""
    odd = (*VALUES, "'x'", '"\\u001b[1m"', "[" * DEEP + "]" * DEEP)
    value = st.one_of(st.integers(-3, 3).map(str), st.sampled_from(odd))
    line = st.tuples(st.sampled_from(KEYS), value).map(" = ".join)
    table = st.tuples(st.sampled_from(TABLES), st.lists(line, max_size=4)).map(lambda t: "\n".join([t[0], *t[1]]))
    made = st.lists(table, min_size=1, max_size=3).map("\n".join)
    words = (*VALUES, "[", "]", "=", '"""', "é")
    spoilt = st.integers(0, 2**32).map(lambda seed: mutate.text(Random(seed), CONVENTION, words))
    how = st.sampled_from((
        ["check", COMMITTED, COMMITTED],
        ["decode", "7", "--model", "matmul_init", "--no-run", "--baselines", BASELINES],
        ["run", "--model", "gru_demo", "--format", "csv,json", "--out", "{out}"],
    ))  # fmt: skip

    def packed(text: str, args: list[str], chosen: str) -> bytes:
        also = [] if args[0] == "decode" else ["--convention", chosen]
        return command([*args, "--convention-file", "{c.toml}", *also], {"c.toml": text})

    return st.builds(packed, st.one_of(made, spoilt), how, st.sampled_from(("mine", "mine", "other", "matmul")))


CELLS = (
    "",
    "a,b",
    "\0",
    "x" * 200_000,
    *mutate.words('conv gru dense (model) softmax layer tf torch by comment # " =1+1 é'),
)
SPOILT = (b"\xff", b"\0", b'"', b",", b"\r", b"\xef\xbb\xbf")


def mappings(rng: Random) -> bytes:
    """Mapping files of two models: rows of the layers that there are, and of others."""
    rows = ["layer,tf,torch,by,comment"] if rng.random() < 0.8 else []
    for _ in range(rng.randrange(6)):
        rows.append(",".join(rng.choice(CELLS) for _ in range(rng.choice((1, 2, 3, 5, 5, 6)))))
    text = "\n".join(rows).encode()
    if rng.random() < 0.4:
        text = mutate.blob(rng, text, SPOILT)
    two = ["run", "--torch", "net:make", "--tf", "net:make", "--mapping", "{m.csv}"]
    return command([*two, "--format", "csv", "--out", "{out}"], {"m.csv": text})


ENVIRONMENTS = """[mine]
title = "mine"
python = "3.8"
frameworks = ["tf"]
requirements = ["tensorflow==2.3.1", "numpy<1.19"]
counters = ["tf.profiler@frozen"]

[[model]]
zoo = "gru_demo"
set = { units = 64 }

[[model]]
torch = "net:make"
inputs = ["1,3,32,32"]
arguments = { size = 3 }
"""
LISTS = (
    *VALUES,
    *mutate.words('[ ] = "tf" "torch" "current" "3.99" "3.6" "a@file:///x" "../../escaped" "[/" over zoo factory set'),
)


def environments(rng: Random) -> bytes:
    """Tables of environments, and a sweep's list."""
    first, _, second = ENVIRONMENTS.partition("[[model]]")
    chosen = rng.choice((first, "[[model]]" + second, ENVIRONMENTS))
    return mutate.text(rng, chosen, LISTS).encode("utf-8", "surrogateescape")


def read_environments(data: bytes, folder: Path) -> None:
    """Read them both ways; raises whatever is no UsageError."""
    from reconcile.core.errors import UsageError
    from reconcile.launch.environments import definitions as places
    from reconcile.products.sweep import listfile

    path = folder / "e.toml"
    path.write_bytes(data)
    known = places.load(None)
    for read in (places.load, lambda file: listfile.read_list(file, known, [known["current"]])):
        try:
            read(path)
        except UsageError as error:
            if "\n" in str(error):
                raise Wrong("its sentence has several lines") from error


TARGETS = (
    Target("baselines", lambda: drawn(baselines), commands.check, commands.ready),
    Target("conventions", conventions, commands.check, commands.ready, smaller=True),
    Target("mappings", lambda: drawn(mappings), commands.check, commands.ready),
    Target("environments", lambda: drawn(environments), read_environments, commands.ready),
)
