"""Damaged baselines: whatever stands in the file is read, compared or refused in a sentence, and is never a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconcile.align.mapping import check as check_mapping
from reconcile.core.conventions import BUILT_IN
from reconcile.core.errors import ReconcileError, UsageError, short
from reconcile.core.user_files import MAX_DEPTH, Unsound, parse_json
from reconcile.drift import baselines
from reconcile.drift.check import between, check
from reconcile.drift.report import details, verdict
from reconcile.launch.request import RunRequest
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.search import search
from reconcile.products.decode.sources import gather
from tests.drift import takes
from tests.drift.takes import put, take

SEEDS = 300
GOOD = json.loads(baselines.dumps(take()))
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 7, 2**63, 10**99, 10**101, 1.5, float("nan"), float("inf"), "", "tf", "torch", "999.0", "\ud800", "a\nb",
    [], {}, [None], {"a": 1}, [1, 2, 3], ["x"], [10**50] * 90, "aten.addmm", "forward", "dead",
)  # fmt: skip


def places(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in the data that stands in something else."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*before, key)
        yield from places(value, (*before, key))


PLACES = list(places(GOOD))


def at(data: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        data = data[key]
    return data


def mutated(seed: int) -> str:
    """The good baseline with one to three things taken away, replaced, moved or doubled; some cut off or misspelled."""
    dice = random.Random(seed)
    data = copy.deepcopy(GOOD)
    for place in dice.sample(PLACES, dice.choice((1, 1, 1, 2, 3))):
        try:
            holder, key = at(data, place[:-1]), place[-1]
            how = dice.choice(("drop", "odd", "odd", "odd", "other", "twice"))
            if how == "drop":
                del holder[key]
            elif how == "odd":
                holder[key] = dice.choice(ODD)
            elif how == "other":
                holder[key] = copy.deepcopy(at(GOOD, dice.choice(PLACES)))
            elif isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            else:
                holder[f"{key} too"] = holder[key]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    text = json.dumps(data)
    if dice.random() < 0.1:
        text = text[: dice.randrange(len(text))]
    if dice.random() < 0.1:
        where = dice.randrange(len(text))
        text = text[:where] + dice.choice('{}[]",:0-9e.') + text[where + 1 :]
    return text


def uses(path: Path, good: Path) -> dict[str, Callable[[], object]]:
    """What is done with a baseline that lies at ``path``."""

    def compared(older: Path, newer: Path) -> None:
        drift = between(older, newer, RunRequest(convention="textbook"))
        "\n".join([verdict(drift, "x"), *details(drift, verbose=True)]).encode()

    request = RunRequest("toy", {})
    return {
        "diff, as the newer": lambda: compared(good, path),
        "diff, as the older": lambda: compared(path, good),
        "check": lambda: check(request, path, remedy="x", take=lambda *_: take()),
        "update": lambda: check(request, path, remedy="x", update=True, take=lambda *_: take()),
    }


def outcome(use: Callable[[], object]) -> str:
    """'' where it could be used, else the sentence; a traceback for anything else."""
    try:
        use()
    except ReconcileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seeds", [range(50), pytest.param(range(50, SEEDS), marks=pytest.mark.slow)], ids=str)
def test_no_mutated_baseline_is_a_traceback(tmp_path: Path, seeds: range) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(GOOD))
    read = 0
    for seed in seeds:
        text = mutated(seed)
        for name, use in uses(bad, good).items():
            bad.write_text(text)
            try:
                said = outcome(use)
            except Exception as error:
                raise AssertionError(f"{name}, seed {seed}") from error
            assert "\n" not in said, (seed, name)
            assert len(said) < 1000, (seed, name)
            read += not said
    assert read > len(seeds) / 4  # and many of them are baselines still


CONV = ("ledgers", 0, "sightings", 0, "op", "attrs")
READ = {
    "no version": (put("ledgers", 0, "versions", "thop", value="odd"), "depend on the version of thop, and 'odd' is not"),
    "an attribute that is gone": (put(*CONV, value={}), "does not fit torch.nn.modules.conv.Conv2d 'conv#0' as it is recorded"),
    "an attribute of another kind": (put(*CONV, "groups", value=0), "as it is recorded: ZeroDivisionError"),
    "an attribute beyond print": (put(*CONV, "weight", value=[1] + [10**50] * 90), "must be at least 0 and have at most 1,000"),
}  # fmt: skip
"""What is of the right form, and what a rule of a counter cannot read."""


@pytest.mark.parametrize("name", READ)
def test_what_a_rule_cannot_read_is_a_sentence(tmp_path: Path, name: str) -> None:
    text, words = READ[name]
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(json.dumps(GOOD))
    with pytest.raises(UsageError) as error:
        between(tmp_path / "a.json", tmp_path / "b.json", RunRequest())
    assert words in str(error.value)


@pytest.mark.parametrize("read", [baselines.load, baselines.load_any])
def test_a_file_that_is_no_text(tmp_path: Path, read: Callable[[Path], object]) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe{\0}\0")
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        read(tmp_path / "a.json")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.json", tmp_path / "marked.json"
    plain.write_text(json.dumps(GOOD))
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert baselines.load(marked) == baselines.load(plain)


def test_endless_files_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="cannot read the file /dev/zero: it is neither a file nor a folder"):
        baselines.load(Path("/dev/zero"))
    monkeypatch.setattr("reconcile.core.user_files.MAX_FILE_BYTES", 2 << 20)
    (tmp_path / "long").write_bytes(bytes(3 << 20))
    with pytest.raises(UsageError, match=r"the file .*long: it is larger than 2 MiB"):
        baselines.load(tmp_path / "long")
    with pytest.raises(UsageError, match=r"the mapping file .*long: it is larger than 2 MiB"):
        check_mapping(tmp_path / "long", None, ("tf", "torch"))


def test_decode_reads_a_damaged_one_or_refuses_it(tmp_path: Path) -> None:
    """gru_demo's committed one, each part of its first ledger gone odd."""
    (tmp_path / "gru_demo").mkdir()
    path = tmp_path / "gru_demo" / "current.json"

    def decoded() -> None:
        sources, notes = gather(RunRequest("gru_demo", {}), (tmp_path,), fresh=False)
        search("gru_demo", figure("3.2G"), sources, BUILT_IN, notes)

    good = json.loads(takes.COMMITTED.read_text())
    good["ledgers"], good["traces"] = good["ledgers"][-1:], good["traces"][-1:]
    for inside in places(good["ledgers"][0]["sightings"][0]):
        place = ("ledgers", 0, "sightings", 0, *inside)
        data = copy.deepcopy(good)
        at(data, place[:-1])[place[-1]] = {"odd": None}
        path.write_text(json.dumps(data))
        said = outcome(decoded)
        assert not said or str(path) in said or "as it is recorded" in said


@pytest.mark.parametrize(
    "text", ['{"a": 1e400}', '{"a": -Infinity}', "[NaN]", '"\\ud83d\\ude00"', "[" * MAX_DEPTH + "]" * MAX_DEPTH]
)
def test_what_json_of_ours_may_hold(text: str) -> None:
    parse_json(text)


@pytest.mark.parametrize(
    "text", ["", "{", "nul", "'a'", "[1,]", '{"a" 1}', "\0", "1" * 101, "-" + "1" * 101, '["\\udc00"]']
)
def test_what_is_no_json_of_ours(text: str) -> None:
    with pytest.raises(Unsound):
        parse_json(text)


def test_values_in_a_sentence() -> None:
    assert short("x") == "'x'"
    assert short("x" * 99) == f"'{'x' * 58}…"
    assert short(10**5000) == "a value of type int"
