"""What stands behind an option: figures, shapes, settings, and formula files, which are code with mistakes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hypothesis import strategies as st

from . import commands, mutate
from .audit import ROOT
from .commands import HERE, SMALL, command
from .harness import Target

BASELINES = f"{HERE}/{SMALL.parents[1].relative_to(ROOT)}"
DEEP = 5000
"""Digits beyond Python's limit."""
VALUES = ('0 -1 2.5 1e3 nan inf true "2" 0x10 [1] {a=1} 1979-05-27 ' + "9" * DEEP + " 1" + "0" * 400).split()
"""What stands behind an equals sign where a number is wanted."""
RETURNS = (
    "Work(mul=2.5)", "Work(mul=-5)", "Work(mul=True)", "Work(mul='2')", "Work(mul=None)", "Work(mul=10**4000)", "Work(mul=3)",
    "Work(mac=float('nan'))", "Work(1,2,3,4,5,6,7)", "Work(mul=op.inputs[0].shape[0])", "Work", "op", "7", "None", "'x'",
    "(1, 2)", "foo(op)", "sys.exit(0)", "sys.exit('no')", "1 / 0", "op.inputs[99]", "op.nothing", "[].pop()",
)  # fmt: skip
LINES = (
    "import sys", "import reconcile.work as w", "import no_such_module", "sys.exit(0)", "x = (", "\0", "1 / 0", "del Work",
    "raise SystemExit(0)", "raise GeneratorExit", "raise BaseException('no')", "raise RecursionError",
    "raise MemoryError", "raise UnknownWork('no')", "raise ValueError('\\ud800')", "raise ValueError('\\x1b[2J')",
    "print('\\x1b[2J')", "def f(): return f()\nf()", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "raise type('Long', (Exception,), {})('x\\ny' * 9000)", "formula('mylib.bar', source='x')(None)",
    "@formula('onnx.Conv', source='x')\ndef again(op): return Work()", "@formula(7, source='x')\ndef seven(op): return Work()",
)  # fmt: skip
FORMULA = "from reconcile.work import UnknownWork, Work, formula\nimport sys\n"
HEAD = "@formula('mylib.foo', source='x')\ndef foo(op):\n"


def formulas() -> st.SearchStrategy[bytes]:
    """Formula files that raise, leave, recurse or return what is no work, for an op that only they know."""
    lines = st.sampled_from(LINES)
    returning = st.sampled_from(RETURNS).map(lambda value: f"{HEAD}    return {value}\n")
    raising = lines.map(lambda line: HEAD + "\n".join("    " + part for part in line.split("\n")))
    body = st.tuples(st.lists(lines, max_size=2), returning | raising).map(lambda t: "\n".join([*t[0], t[1]]))
    args = ["run", "--model", "gru_demo", "--format", "csv,json", "--out", "{out}", "--formulas", "{f.py}"]

    def packed(text: str, name: str) -> bytes:
        return command([*args, "--convention", name], {"f.py": FORMULA + text})

    return st.builds(packed, body, st.sampled_from(("matmul", "all")))


NUMBER = (
    r"[0-9]{1,30}([,_' ][0-9]{3}){0,3}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"
    r"[kKmMgGbBtTpPx]?(flops|MACs)?"
)
FIGURES = (
    "9" * DEEP, "1" * 400 + "." + "0" * DEEP, "0", "0.0", "0e0", "1e99", "-1", "²", "٣", "1.0e-0", "", "0" * 9000,
)  # fmt: skip


def figures() -> st.SearchStrategy[bytes]:
    """Published numbers, looked up in the committed baselines."""
    text = st.from_regex(NUMBER, fullmatch=True) | st.text(max_size=20) | st.sampled_from(FIGURES)
    look = ["decode", "--model", "matmul_init", "--no-run", "--baselines", BASELINES, "--"]
    return text.map(lambda number: command([*look, number]))


SHAPE = r"([a-z]{1,3}=)?\(?[0-9]{0,6}(,[0-9]{1,6}){0,4},?\)?(:(float32|int64|bool|float8))?"
SHAPES = (
    "1" * DEEP, "x=" + "1," * 3000 + "1", "٣,٣", "class=1", "x=1=2", "x=", "()", "1,-1", "x=1:float32:int64",
    "\N{FULLWIDTH DIGIT ONE},2",
)  # fmt: skip
ODD = (
    "é", "\0", "\x1b]0;t\x07", "\N{RIGHT-TO-LEFT OVERRIDE}", "\ud800", "\n", "=cmd", "../../escaped", "/", "\\",
    "x" * 5000,
)  # fmt: skip
OPTIONS = mutate.words(
    "--timeout --counter --from --to --convention --format --pass --optimizer --device --model --torch --tf --onnx --signature "
    "--mapping --convention-file --formulas"
)


def options() -> st.SearchStrategy[bytes]:
    """What --input, --set, --timeout, --counter and their neighbours are given."""
    base = ["run", "--format", "csv", "--out", "{out}"]
    shape = st.from_regex(SHAPE, fullmatch=True) | st.text(max_size=20) | st.sampled_from(SHAPES)
    shapes = st.lists(shape, min_size=1, max_size=3)
    inputs = shapes.map(lambda texts: [*base, "--torch", "net:make", *(f"--input={text}" for text in texts)])
    value = st.text(max_size=12) | st.sampled_from((*VALUES, *ODD))
    names = st.sampled_from(("units", "batch", "nothing", "", "é"))
    settings = st.tuples(names, value).map(lambda pair: [*base, "--model", "gru_demo", f"--set={pair[0]}={pair[1]}"])
    option = st.sampled_from(OPTIONS)
    others = st.tuples(option, value).map(lambda pair: [*base, "--model", "gru_demo", "=".join(pair)])
    return (inputs | settings | others).map(command)


def check_options(data: bytes, folder: Path) -> None:
    """Run a command; what --set says is also read as a worker reads it, by the pair it is for."""
    from reconcile.model_zoo import loading, pair

    inside = folder / "set"
    inside.mkdir()
    module = loading.load_pair(loading.pair_path("gru_demo"))
    for arg in commands.unpacked(data, inside):
        if arg.startswith("--set="):
            name, _, text = arg.removeprefix("--set=").partition("=")
            with contextlib.suppress(pair.PairError):
                loading.resolve(module, {name.strip(): text.strip()})
    commands.check(data, folder)


TARGETS = (
    Target("formulas", formulas, commands.check, commands.ready, smaller=True),
    Target("figures", figures, commands.check, commands.ready, smaller=True),
    Target("options", options, check_options, commands.ready, smaller=True),
)
