"""Inputs of the commands: baselines, conventions, mappings, formulas, figures, and what --input and --set take."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from . import commands, mutate
from .commands import BASELINE, SMALL, command
from .harness import Target, Wrong, drawn

BASELINES = str(SMALL.parents[1])
ODD = ("é", "\0", "\x1b]0;t\x07", "\u202e", "\ud800", "\n", "[" * 600, "9" * 5000, "=cmd", "../../escaped", "/", "\\")
NUMBERS = ("0", "-1", "2.5", "1e3", "nan", "inf", "true", '"2"', "9" * 5000, "1" + "0" * 400, "0x10", "[1]", "{a=1}", "1979-05-27")


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


def _ledger() -> Any:
    return _baseline(BASELINE)["ledgers"][0]


def baselines(rng: Random) -> bytes:
    """``diff`` of a committed baseline or ledger, mutated, and one that is as it was; or ``decode`` out of it."""
    base = rng.choice((_baseline(BASELINE), _baseline(SMALL), _ledger()))
    text = mutate.tree(rng, base, ("matmul_init", "gru_demo", "trace", "ledger", "failed", "MAC", "\x1b[31m"))
    if rng.random() < 0.1:
        return command(["diff", "{a.json}", str(BASELINE)], {"a.json": mutate.blob(rng, text.encode("utf-8", "replace"))})
    if rng.random() < 0.25 and base is _baseline(SMALL):
        made = command(["decode", "1234", "--model", "matmul_init", "--no-run", "--baselines", "{}"], {"b.json": text})
        return made
    other = json.dumps(base)
    files = {"a.json": text, "b.json": other}
    order = ["{a.json}", "{b.json}"] if rng.random() < 0.5 else ["{b.json}", "{a.json}"]
    return command(["diff", *order, *rng.choice(([], ["--convention", "all"], ["-v"]))], files)


CONVENTION = "[mine]\nmac = 2\nadd = 1\nmeaning = 'words'\n\n[other]\nmul = 1\n"


def conventions() -> st.SearchStrategy[bytes]:
    """Convention files: tables of weights, good and bad, given to three commands."""
    key = st.sampled_from(("mac", "accumulators", "add", "mul", "div", "cmp", "special", "meaning", "ad", '"\\u0000"', "a.b", "name"))
    value = st.one_of(st.integers(-3, 3).map(str), st.sampled_from((*NUMBERS, "'x'", '"\\u001b[1m"', "[" * 5000 + "]" * 5000)))
    line = st.tuples(key, value).map(" = ".join)
    head = st.sampled_from(("[mine]", "[matmul]", "[[mine]]", "[mine.x]", "['']", '["\\u001b[2J"]', "[" + "a." * 5000 + "a]", "mine = 1", ""))
    table = st.tuples(head, st.lists(line, max_size=4)).map(lambda t: "\n".join([t[0], *t[1]]))
    made = st.lists(table, min_size=1, max_size=3).map("\n".join)
    spoilt = st.integers(0, 2**32).map(lambda n: mutate.text(Random(n), CONVENTION, (*NUMBERS, "[", "]", "=", '"""', "é")))
    how = st.sampled_from((
        ["diff", str(BASELINE), str(BASELINE)],
        ["decode", "7", "--model", "matmul_init", "--no-run", "--baselines", BASELINES],
        ["run", "--model", "gru_demo", "--format", "csv", "--out", "{out}"],
    ))  # fmt: skip
    name = st.sampled_from(("mine", "mine", "other", "matmul"))

    def packed(text: str, args: list[str], chosen: str) -> bytes:
        also = [] if args[0] == "decode" else ["--convention", chosen]
        return command([*args, "--convention-file", "{c.toml}", *also], {"c.toml": text})

    return st.builds(packed, st.one_of(made, spoilt), how, name)


CELLS = ("", "conv", "gru", "dense", "(model)", "softmax", "layer", "tf", "torch", "by", "comment", "#", '"', "a,b", "=1+1", "\0", "é", "x" * 200000)


def mappings(rng: Random) -> bytes:
    """Mapping files of two models: rows of the layers that there are, and of others."""
    rows = ["layer,tf,torch,by,comment"] if rng.random() < 0.8 else []
    for _ in range(rng.randrange(6)):
        rows.append(",".join(rng.choice(CELLS) for _ in range(rng.choice((1, 2, 3, 5, 5, 6)))))
    text = "\n".join(rows)
    if rng.random() < 0.4:
        text = mutate.blob(rng, text.encode(), (b"\xff", b"\0", b'"', b",", b"\r", b"\xef\xbb\xbf")).decode("utf-8", "surrogateescape")
    args = ["run", "--torch", "net:make", "--tf", "net:make", "--mapping", "{m.csv}", "--format", "csv", "--out", "{out}"]
    return command(args, {"m.csv": text})


RETURNS = (
    "Work(mul=2.5)", "Work(mul=-5)", "Work(mul=True)", "Work(mul='2')", "Work(mul=None)", "Work(mul=10**4000)", "Work(mac=float('nan'))",
    "Work(mul=3)", "7", "None", "'x'", "Work", "op", "(1, 2)", "Work(1,2,3,4,5,6,7)", "foo(op)", "sys.exit(0)", "sys.exit('no')",
    "1 / 0", "op.inputs[99]", "op.nothing", "exec('raise BaseException')", "Work(mul=op.inputs[0].shape[0])", "[].pop()",
)  # fmt: skip
LINES = (
    "import sys", "import reconcile.work as w", "sys.exit(0)", "raise SystemExit(0)", "raise KeyboardInterrupt", "raise GeneratorExit",
    "raise BaseException('no')", "raise RecursionError", "raise MemoryError", "1 / 0", "x = (", "\0", "def f(): return f()\nf()",
    "print('\\x1b[2J')", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "raise UnknownWork('no')",
    "@formula('onnx.Conv', source='x')\ndef again(op): return Work()", "@formula(7, source='x')\ndef seven(op): return Work()",
    "formula('mylib.bar', source='x')(None)",
    "raise type('Long', (Exception,), {})('x\\ny' * 9000)", "del Work", "import no_such_module", "x = '\\ud800'; raise ValueError(x)",
)  # fmt: skip
FORMULA = "from reconcile.work import UnknownWork, Work, formula\nimport sys\n"


def formulas() -> st.SearchStrategy[bytes]:
    """Formula files that raise, leave, recurse or return what is no work, for an op that only they know."""
    returns = st.sampled_from(RETURNS)
    one = returns.map(lambda value: f"@formula('mylib.foo', source='x')\ndef foo(op):\n    return {value}\n")
    raising = st.sampled_from(LINES).map(
        lambda line: "@formula('mylib.foo', source='x')\ndef foo(op):\n" + "\n".join("    " + part for part in line.split("\n"))
    )
    body = st.tuples(st.lists(st.sampled_from(LINES), max_size=2), st.one_of(one, raising)).map(lambda t: "\n".join([*t[0], t[1]]))
    convention = st.sampled_from(("matmul", "all"))
    args = ["run", "--model", "gru_demo", "--format", "csv,json", "--out", "{out}", "--formulas", "{f.py}"]
    return st.builds(lambda text, name: command([*args, "--convention", name], {"f.py": FORMULA + text}), body, convention)


FIGURES = st.one_of(
    st.from_regex(r"[0-9]{1,30}([,_' ][0-9]{3}){0,3}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?[kKmMgGbBtTpPx]?(flops|MACs)?", fullmatch=True),
    st.text(max_size=20),
    st.sampled_from(("9" * 5000, "1" * 400 + "." + "0" * 5000, "0", "0.0", "0e0", "1e99", "-1", "²", "٣", "1.0e-0", "", "0" * 9000)),
)  # fmt: skip


def figures() -> st.SearchStrategy[bytes]:
    """Numbers that somebody printed, looked up in the committed baselines."""
    base = ["--model", "matmul_init", "--no-run", "--baselines", BASELINES]
    return FIGURES.map(lambda text: command(["decode", *base, "--", text]))


SHAPES = st.one_of(
    st.from_regex(r"([a-z]{1,3}=)?\(?[0-9]{0,6}(,[0-9]{1,6}){0,4},?\)?(:(float32|int64|bool|float8))?", fullmatch=True),
    st.text(max_size=20),
    st.sampled_from(("1" * 5000, "x=" + "1," * 3000 + "1", "٣,٣", "class=1", "x=1=2", "x=", "()", "1,-1", "x=1:float32:int64", "１,2")),
)  # fmt: skip


def options() -> st.SearchStrategy[bytes]:
    """What --input, --set, --timeout, --counter and their neighbours are given."""
    base = ["run", "--format", "csv", "--out", "{out}"]
    inputs = st.lists(SHAPES, min_size=1, max_size=3).map(lambda texts: [*base, "--torch", "net:make", *(a for t in texts for a in ("--input", t))])
    value = st.one_of(st.text(max_size=12), st.sampled_from((*NUMBERS, *ODD)))
    settings = st.tuples(st.sampled_from(("units", "batch", "nothing", "", "é")), value).map(
        lambda pair: [*base, "--model", "gru_demo", "--set", "=".join(pair)]
    )
    option = st.sampled_from((
        "--timeout", "--counter", "--from", "--to", "--convention", "--format", "--pass", "--optimizer", "--device", "--model", "--torch",
        "--tf", "--onnx", "--signature", "--mapping", "--convention-file", "--formulas",
    ))  # fmt: skip
    others = st.tuples(option, value).map(lambda pair: [*base, "--model", "gru_demo", "=".join(pair)])
    return st.one_of(inputs, settings, others).map(command)


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
LISTS = (*NUMBERS, "[", "]", "=", '"tf"', '"torch"', '"current"', '"3.99"', '"3.6"', '"a @ file:///x"', '"../../escaped"', '"[/"', "over", "zoo", "factory", "set")


def environments(rng: Random) -> bytes:
    """Tables of environments, and a sweep's list."""
    first, _, second = ENVIRONMENTS.partition("[[model]]")
    chosen = rng.choice((first, "[[model]]" + second, ENVIRONMENTS))
    return mutate.text(rng, chosen, LISTS).encode("utf-8", "surrogateescape")


def read_environments(data: bytes, folder: Path) -> None:
    """Read them both ways; raises whatever is no UsageError."""
    from reconcile import environments as places
    from reconcile.errors import UsageError
    from reconcile.sweep import listfile

    path = folder / "e.toml"
    path.write_bytes(data)
    known = places.load(None)
    for read in (places.load, lambda file: listfile.read(file, known, [known["current"]])):
        try:
            read(path)
        except UsageError as error:
            if "\n" in str(error):
                raise Wrong("its sentence has several lines") from error


def settings(data: bytes, folder: Path) -> None:
    """Run a command; what --set says is also read as a worker reads it, by the pair it is for."""
    from reconcile.model_zoo import pair

    args = commands.unpacked(data, folder)
    if "--set" in args:
        name, _, text = args[args.index("--set") + 1].partition("=")
        module = pair.load_pair(pair.pair_path("gru_demo"))
        try:
            pair.resolve(module.PAIR, {name.strip(): text.strip()})
        except pair.PairError:
            pass
    commands.check(data, folder)


TARGETS = (
    Target("baselines", lambda: drawn(baselines), commands.check, commands.ready),
    Target("conventions", conventions, commands.check, commands.ready, smaller=True),
    Target("mappings", lambda: drawn(mappings), commands.check, commands.ready),
    Target("formulas", formulas, commands.check, commands.ready, smaller=True),
    Target("figures", figures, commands.check, commands.ready, smaller=True),
    Target("options", options, settings, commands.ready, smaller=True),
    Target("environments", lambda: drawn(environments), read_environments, commands.ready),
)
