"""Files that commands read, a good one of each kind, and the ways in which any of them can be wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from . import commands, mutate
from .audit import ROOT
from .commands import BASELINE, SMALL, command
from .harness import Target, drawn

WRITES = ("--format", "csv", "--out", "{out}")
RANGE = '"1 ""<default domain>:aten::mm, op_id = 1, sizes = [[2, 3], [3, 4]], input_op_ids = [(0,-1)]:none"" "'
NCU = (
    '"ID","thread Domain:Push/Pop_Range:x","Kernel Name","Grid Size","sm__ops_path_tensor_src_fp16.sum",'
    '"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum","smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"\n'
    f'"0",{RANGE},"gemm","(1, 1, 1)","64","0","0"\n'
)
RANK = {
    "convention": "matmul",
    "traces": [{"complete": True, "totals": {"matmul": 5, "all": 6}, "reason": ""}],
    "ledgers": [{"counter": "flop_counter", "total": 5, "state": "equal", "reason": ""}],
    "verdict": {"counters": [{"counter": "flop_counter", "reason": "", "causes": [{"cause": "dead-op", "amount": 3}]}]},
    "exit_code": 0,
    "run": "a run",
}
RATES = (
    "id,model,params,layers,hidden,heads,vocab,seq,tokens_per_second,devices,device,dtype,claimed,claimed_kind,peak_stated,note\n"
    "1,GPT,175B,96,12288,96,51200,2048,138000,1024,A100,bf16,44%,MFU,312,printed 140 TFLOPs\n"
)
SETUP = 'claimed = "43%"\ndevice = "H100 SXM"\ndevices = 8\nstep_seconds = 1\ntokens_per_step = 9\nflops_per_token = "51.48G"\n'
SOURCE = 'def peak(name):\n    if "H100" in name:\n        return 989e12\n    return 1e12\nT = {"h100": 989e12, "a100": 312e12}\n'
FORMULAS = "from reconcile.work import Work, formula\n@formula('mylib.foo', source='x')\ndef foo(op):\n    return Work(mul=3)\n"
ENVIRONMENTS = (
    '[mine]\ntitle = "mine"\npython = "3.8"\nframeworks = ["tf"]\nrequirements = ["six==1"]\ncounters = ["thop"]\n'
)


@dataclass(frozen=True)
class Reader:
    """What reads a file: its name, a good one, and the command, in which ``{name}`` stands for the file."""

    file: str
    good: str
    words: tuple[str, ...]


def _first(name: str) -> str:
    """A file of rows, cut to one."""
    data = json.loads((ROOT / "model_zoo" / f"{name}.json").read_text(encoding="utf-8"))
    return json.dumps({**data, "rows": dict([next(iter(data["rows"].items()))])})


READERS: Mapping[str, Reader] = {
    "ranks folder": Reader("m.rank-0-of-1.json", json.dumps(RANK), ("ranks", "{}")),
    "run --ncu": Reader("k.csv", NCU, ("run", "--model", "gru_demo", "--ncu", "{k.csv}", *WRITES)),
    "run --mapping": Reader(
        "m.csv",
        "layer,tf,torch,by,comment\ngru,gru,gru,you,x\n",
        ("run", "--torch", "net:make", "--tf", "net:make", "--mapping", "{m.csv}", *WRITES),
    ),
    "run --convention-file": Reader(
        "c.toml",
        '[mine]\nmac = 2\nadd = 1\nmeaning = "words"\n',
        ("run", "--model", "gru_demo", "--convention-file", "{c.toml}", "--convention", "mine", *WRITES),
    ),
    "run --environments": Reader(
        "e.toml", ENVIRONMENTS, ("run", "--model", "gru_demo", "--environments", "{e.toml}", *WRITES)
    ),
    "run --formulas": Reader("f.py", FORMULAS, ("run", "--model", "gru_demo", "--formulas", "{f.py}", *WRITES)),
    "check older": Reader("a.json", SMALL.read_text(encoding="utf-8"), ("check", "{a.json}", "{a.json}")),
    "check --against": Reader(
        "against.json",
        BASELINE.read_text(encoding="utf-8"),
        ("check", "--model", "gru_demo", "--against", "{against.json}"),
    ),
    "decode --baselines": Reader(
        "matmul_init/current.json",
        SMALL.read_text(encoding="utf-8"),
        ("decode", "1234", "--model", "matmul_init", "--no-run", "--baselines", "{}"),
    ),
    "mfu --table": Reader("c.csv", RATES, ("mfu", "--table", "{c.csv}", "--out", "{out}")),
    "mfu compare": Reader("a.toml", SETUP, ("mfu", "compare", "{a.toml}", "{a.toml}")),
    "mfu trainers": Reader("t.py", SOURCE, ("mfu", "trainers", "{t.py}")),
    "mfu --config": Reader(
        "config.json",
        '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}',
        ("reconcile.adapters.counters.formulas.configured.config_source:settings_of", "{config.json}"),
    ),
    "audit CLAIMS": Reader(
        "c.csv",
        'model,input,figure,claim,source\ntimm:resnet18,"1,3,224,224",1.82,GMACs,x\n',
        ("reconcile.products.audit.claims:read_claims", "{c.csv}"),
    ),
    "zoo gallery --data": Reader(
        "rows.json", _first("gallery"), ("reconcile.products.gallery.run:read_gallery", "{rows.json}")
    ),
    "zoo scorecard --data": Reader(
        "rows.json", _first("scorecard"), ("reconcile.products.scorecard.cells:read_cards", "{rows.json}")
    ),
}
"""By the command and its parameter; ``module:function`` reads where the command would run a model. An option that several
commands have is read by one function."""

DEEP = 5000


def _put(text: Callable[[str], str | bytes]) -> Callable[[Path, str], None]:
    def write(path: Path, good: str) -> None:
        made = text(good)
        path.write_bytes(made if isinstance(made, bytes) else made.encode("utf-8", "surrogatepass"))

    return write


def _stretch(path: Path, _good: str) -> None:
    with path.open("wb") as file:
        file.truncate(64 << 30)


KINDS: Mapping[str, Callable[[Path, str], object]] = {
    "nothing": lambda path, good: None,
    "a folder": lambda path, good: path.mkdir(),
    "a pipe": lambda path, good: os.mkfifo(path),
    "no end": lambda path, good: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path, good: path.symlink_to(path),
    "64 GiB": _stretch,
    "no UTF-8": _put(lambda good: good.encode() + b"\xff"),
    "UTF-16": _put(lambda good: good.encode("utf-16")),
    "zero bytes": _put(lambda good: good + "\0"),
}
"""Files that no reader can read."""
TEXTS: Mapping[str, Callable[[str], str]] = {
    "empty": lambda good: "",
    "cut off": lambda good: good[: len(good) * 2 // 3],
    "twice": lambda good: good + good,
    "rubbish at its end": lambda good: good + "}]x'",
    "nested": lambda good: "[" * DEEP + "]" * DEEP,
    "one line": lambda good: "," * 1_000_000,
    "a list": lambda good: "[1, 2]",
    "a number": lambda good: "7",
    "null": lambda good: "null",
    "an empty table": lambda good: "{}",
}
WORDS = (
    "9" * DEEP, "1" + "0" * 400, "1e999", "1e99", "1e-99", "NaN", "-Infinity", "-1", "2.5", "0", str(2**63), "true", "null", "",
    '"x"', '"' + "x" * 200_000 + '"', '"\\ud800"', '"\\u001b[2J\\u202e\\n"', '"\x1b[2J\u202e"', "[1]", '{"a": 1}',
    "[" * 200 + "]" * 200,
)  # fmt: skip
"""What stands in place of a value."""
VALUE = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|-?\b\d+(?:\.\d+)?(?:e\d+)?\b|\b(?:true|false|null)\b|(?<=[,\n])[^,"\n\[\]{}=()]+'
)


def spoil(good: str, most: int) -> Iterator[str]:
    """The text with each of the words in place of one value, for so many of its values."""
    values = list(VALUE.finditer(good))
    for word in WORDS:
        for value in values[:: max(1, len(values) // most)]:
            yield good[: value.start()] + word + good[value.end() :]


def inputs(rng: Random) -> bytes:
    """A command on a file that was good."""
    reader = rng.choice([one for one in READERS.values() if ":" not in one.words[0]])
    if reader.file.endswith(".json") and rng.random() < 0.7:
        return command(reader.words, {reader.file: mutate.tree(rng, json.loads(reader.good))})
    return command(reader.words, {reader.file: mutate.text(rng, reader.good, WORDS)})


TARGETS = (Target("readers", lambda: drawn(inputs), commands.check, commands.ready),)
