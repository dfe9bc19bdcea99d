"""The baseline file: the same take is the same file, old versions stay, and what is no baseline is refused in a sentence."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.core.records import Op, to_json
from reconcile.drift import baselines
from reconcile.drift.compare import compare
from reconcile.engine.reconcile import Missing
from tests.drift import takes
from tests.drift.takes import NEW, OLD, edited, put, take

COMMITTED = sorted((Path(__file__).parents[2] / "reports" / "baselines").glob("*/*.json"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toy" / "current.json"


def test_what_is_saved_is_what_was_found(path: Path) -> None:
    assert baselines.save(path, take()) is None
    held = baselines.load(path)
    assert (held.model, held.environment, held.counters) == ("toy", "current", ("thop",))
    assert held.collected.traces == take().traces
    assert held.collected.ledgers == take().ledgers
    assert held.versions == {"thop": NEW, "torch": "2.0.0"}
    assert not compare(held.collected, take()).has_moved


def test_what_could_not_be_read_again_is_not_saved(path: Path) -> None:
    found = take()
    (trace,) = found.traces
    assert not isinstance(trace, Missing)
    halved = trace._replace(ops=(trace.ops[0]._replace(layer="half \ud800"), *trace.ops[1:]))
    with pytest.raises(UsageError):
        baselines.save(path, replace(found, traces=(halved,)))
    assert not path.exists()


def test_the_same_take_is_the_same_file(path: Path) -> None:
    text = baselines.dumps(take())
    baselines.save(path, take())
    assert path.read_text() == text == baselines.dumps(baselines.load(path).collected)
    assert json.loads(text)["versions"] == {"thop": NEW, "torch": "2.0.0"}
    assert max(map(len, text.splitlines())) < 1000  # an op or entry per line: a change is one line of a diff
    assert [p.name for p in path.parent.iterdir()] == ["current.json"]


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_committed_baseline_is_as_it_would_be_written(file: Path) -> None:
    """Where the versions are pinned, ops of one layer share a line, and nothing else does."""
    held = baselines.load(file)
    assert file.read_text() == baselines.dumps(held.collected, held.environment)
    for line in file.read_text().splitlines():
        if line.lstrip().startswith('{"id"'):
            members = json.loads(f"[{line.rstrip(',')}]")
            assert len({member["layer"] for member in members}) == 1
            assert len(members) <= (1 if held.environment == baselines.CURRENT else baselines.SHARED)


def test_the_order_of_attributes_is_nobodys_news() -> None:
    def turned(op: Op) -> Op:
        return op._replace(attrs=dict(reversed(op.attrs.items())))

    (trace,), (ledger,) = take().traces, take().ledgers
    sightings = tuple(s._replace(op=turned(s.op)) for s in ledger.sightings)
    versions = dict(reversed(ledger.versions.items()))
    other = replace(
        take(),
        traces=(trace._replace(ops=tuple(map(turned, trace.ops))),),
        ledgers=(ledger._replace(sightings=sightings, versions=versions),),
    )
    assert list(other.traces[0].ops[0].attrs) != list(trace.ops[0].attrs)
    assert baselines.dumps(other) == baselines.dumps(take())


def test_a_missing_counter_is_held_as_missing_without_its_reason(path: Path) -> None:
    gone = Missing("fvcore", "torch", State.SKIPPED, "no such file: /home/somebody/x.py")
    baselines.save(path, replace(take(), ledgers=(*take().ledgers, gone)))
    assert "somebody" not in path.read_text()
    held = baselines.load(path)
    assert [x.name for x in held.collected.ledgers if isinstance(x, Missing)] == ["fvcore"]
    assert held.counters == ("thop",)


def test_other_versions_are_kept_the_same_ones_replaced(path: Path) -> None:
    baselines.save(path, take(OLD))
    kept = baselines.save(path, take(NEW))
    assert kept == path.with_name(f"current@thop-{OLD}+torch-2.0.0.json")
    assert baselines.load(kept).collected.ledgers == take(OLD).ledgers
    assert baselines.save(path, take(NEW, gru=1)) is None
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([kept.name, "current.json"])


def test_where_a_baseline_lies() -> None:
    folder = Path("b")
    assert baselines.baseline_path(folder, "gru_demo") == folder / "gru_demo" / "current.json"
    assert baselines.baseline_path(folder, "some/pair.py", "tf-1.12") == folder / "pair" / "tf-1.12.json"
    assert baselines.baseline_path(folder, "../x", "../y").parent.parent == folder


REFUSED = {
    "empty": ("", "not valid JSON"),
    "truncated": (baselines.dumps(take())[:-200], "not valid JSON"),
    "a list": ("[]", "not a baseline"),
    "other JSON": ("{}", "not a baseline"),
    "a ledger": (to_json(takes.ledger()), "is a single ledger"),
    "a report": ('{"statements": []}', "is a report"),
    "newer": (put("schema", value=2), "newer reconcile (format 2; this one reads 1). Upgrade reconcile"),
    "newer records": (put("ledgers", 0, "schema", value=99), "newer reconcile (record format 99"),
    "no format": (put("schema", value="1"), "schema is not a whole number"),
    "zero format": (put("schema", value=0), "no such format exists"),
    "field gone": (edited(lambda d: d["ledgers"][0]["entries"][0].pop("value")), "entries[0].value is missing"),
    "field too many": (put("host", value="x"), "a field 'host', which does not belong there"),
    "value as text": (put("ledgers", 0, "entries", 0, "value", value="12"), "value is not a whole number"),
    "value a truth": (put("ledgers", 0, "entries", 0, "value", value=True), "value is not a whole number"),
    "another total": (
        edited(lambda d: d["ledgers"][0].update(total=d["ledgers"][0]["total"] + 1)),
        "ledgers[0].total is 125420225, and its entries add up to 125420224. Restore it",
    ),
    "unit": (put("ledgers", 0, "unit", value="GFLOP"), "neither MAC nor FLOP"),
    "shape": (put("traces", 0, "ops", 0, "inputs", 0, value=[["a"], "float32"]), "is not a whole number"),
    "tensor": (put("traces", 0, "ops", 0, "inputs", 0, value=3), "not a shape with a dtype"),
    "layers": (put("layers", 0, value=["conv"]), "layers[0] is not a name with a path for each framework"),
    "state": (put("missing", value=[{"name": "a", "framework": "tf", "state": "odd"}]), "state is 'odd'"),
    "a trace among ledgers": (edited(lambda d: d.update(ledgers=d["traces"])), "ledgers[0] is not a ledger"),
    "a framework that is none": (put("ledgers", 0, "framework", value="mxnet"), "ledgers[0].framework is 'mxnet', which is not"),
    "a size below 0": (put("traces", 0, "ops", 0, "inputs", 0, 0, 0, value=-1), "is not a whole number of at least 0"),
    "a size beyond all": (put("traces", 0, "ops", 0, "inputs", 0, 0, 0, value=2**63), "is larger than any tensor"),
    "more elements than there are": (put("traces", 0, "ops", 0, "inputs", 0, 0, value=[2**62] * 9), "is larger than any tensor"),
    "a note that is none": (put("traces", 0, "notes", value=[1]), "notes[0] is not text"),
    "a version that is none": (put("versions", "torch", value=2), "versions.torch is not text"),
    "5,000 digits": (put("ledgers", 0, "total", value=7).replace('"total": 7', f'"total": {"7" * 5000}'), "more than 100 digits"),
    "101 digits": (put("ledgers", 0, "total", value=10**100), "a number has more than 100 digits"),
    "deep": ("[" * 100_000 + "]" * 100_000, "lists and tables are nested more than 64 levels deep"),
    "rather deep": ("[" * 70 + "]" * 70, "lists and tables are nested more than 64 levels deep"),
    "half a character": (put("ledgers", 0, "device", value="\ud800"), "half a character"),
    "a key twice": ('{"kind": "reconcile-baseline", "kind": "reconcile-baseline"}', "the key 'kind' appears twice in one table"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_baseline_is_refused_with_what_to_do(path: Path, name: str) -> None:
    text, words = REFUSED[name]
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        baselines.load(path)
    said = str(error.value)
    assert words in said
    assert str(path) in said
    assert re.search("Restore it|Upgrade|Give a file", said)
    assert "\n" not in said


def test_another_models_or_other_parameters_are_refused(path: Path) -> None:
    baselines.save(path, take())
    held = baselines.load(path)
    baselines.check_comparable(held, path, take())
    other = replace(take(), meta={**takes.META, "name": "other"})
    with pytest.raises(UsageError, match="is a baseline of toy, not of other"):
        baselines.check_comparable(held, path, other)
    wider = replace(take(), meta={**takes.META, "params": {"units": 7}})
    with pytest.raises(UsageError, match="was taken with units=96, this run has units=7"):
        baselines.check_comparable(held, path, wider)
    baselines.check_comparable(held, path, wider, params=False)


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write .*Choose another folder"):
        baselines.save(tmp_path / "file" / "x.json", take())


def test_a_baseline_that_cannot_be_written_leaves_the_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baselines.save(path, take(OLD))
    before = path.read_bytes()

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("reconcile.core.atomic.os.fsync", full)
    for newer in (take(OLD, gru=1), take(NEW)):
        with pytest.raises(UsageError, match=r"cannot write .*: No space left on device\. Choose another folder\."):
            baselines.save(path, newer)
    assert [file.name for file in path.parent.iterdir()] == ["current.json"]
    assert path.read_bytes() == before
