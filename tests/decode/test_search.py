"""A figure of few digits: which readings it is compared with, and in which order."""

from __future__ import annotations

import pytest

from reconcile.core.records import FLOP, MAC
from reconcile.decode import search as searching
from reconcile.decode.elsewhere import origin, reading, unseen
from reconcile.decode.figure import figure
from reconcile.decode.grammar import Candidate
from reconcile.decode.search import Decoded, search
from reconcile.decode.trace_readings import DERIVED, LAYER, PART, REPORTED, WORK
from reconcile.launch.environments import load
from tests.decode import data

VIT_B16_PARAMETERS = (
    3 * 16 * 16 * 768 + 768  # patches
    + 768 + 197 * 768  # class token, positions
    + 12 * (4 * 768 * 768 + 4 * 768 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)  # attention, MLP, two norms
    + 2 * 768 + 768 * 1000 + 1000
)  # fmt: skip


def among(monkeypatch: pytest.MonkeyPatch, text: str, *table: Candidate) -> Decoded:
    ranked = tuple(sorted(table, key=lambda c: (c.rank, c.value)))
    monkeypatch.setattr(searching, "candidates", lambda *_: (ranked, ()))
    return search("net", figure(text), [])


def test_parameters_doubled_are_no_reading_of_three_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert VIT_B16_PARAMETERS == 86_567_656  # torchvision's own number
    doubled = Candidate(2 * VIT_B16_PARAMETERS, DERIVED, "", "parameters, doubled")
    assert not among(monkeypatch, "173M", doubled).matches
    assert among(monkeypatch, "173.1M", doubled).matches


@pytest.mark.parametrize(
    ("text", "rank", "agrees"),
    [
        ("12M", REPORTED, True),
        ("12M", WORK, True),
        ("12M", PART, False),
        ("120", PART, True),
        ("120", DERIVED, False),
        ("12.0M", PART, True),
        ("12.0M", DERIVED, False),
        ("12.0M", LAYER, False),
        ("12.00M", LAYER, True),
    ],
)
def test_ranks_by_digits(monkeypatch: pytest.MonkeyPatch, text: str, rank: int, agrees: bool) -> None:
    wanted = figure(text)
    found = among(monkeypatch, text, Candidate(wanted.digits * wanted.unit, rank, FLOP, "x"))
    assert bool(found.matches) == agrees


def test_nothing_is_cut_off_to_three_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    halved = Candidate(146_800_000, PART, MAC, "textbook, halved")
    assert not among(monkeypatch, "146M", halved).matches
    assert among(monkeypatch, "146.7M", Candidate(146_780_000, PART, MAC, "x")).cut


def test_the_work_in_macs_comes_before_every_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Candidate(4_130_000_000, REPORTED, MAC, "thop, as reported")
    macs = Candidate(4_090_000_000, WORK, MAC, "the work that ran, in MACs")
    for text in ("4.1G", "4.1 GMACs", "4.1 GFLOPs"):
        found = among(monkeypatch, text, counter, macs)
        assert [c.what for c in found.matches] == [macs.what, counter.what]
        assert found.merged
        assert not found.ambiguous
    found = among(monkeypatch, "4.110G", Candidate(4_110_400_000, REPORTED, MAC, "thop, as reported"),
                  Candidate(4_109_900_000, WORK, MAC, "the work that ran, in MACs"))  # fmt: skip
    assert found.matches[0].rank == REPORTED
    assert found.ambiguous


def test_a_unit_restricts_the_readings_where_any_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    macs, flops = Candidate(8_000, REPORTED, MAC, "macs"), Candidate(8_000, REPORTED, FLOP, "flops")
    for text, whats in (("8000 MACs", ["macs"]), ("8,000 FLOPs", ["flops"]), ("8000", ["macs", "flops"])):
        found = among(monkeypatch, text, macs, flops)
        assert ([c.what for c in found.matches], found.other_unit) == (whats, False)
    found = among(monkeypatch, "8000 FLOPs", macs)
    assert ([c.what for c in found.matches], found.other_unit) == (["macs"], True)


def test_readings_have_the_unit_that_they_are_in() -> None:
    sources = data.saved("gru_demo")
    for wanted, what in (
        ("MACs", "the work that ran, in MACs (half of matmul)"),
        ("FLOPs", "thop × 2 (it counts MACs)"),
    ):
        (value, *_) = (c.value for c in searching.candidates(sources)[0] if c.what == what)
        found = search("gru_demo", figure(f"{value} {wanted}"), sources)
        assert what in {c.what for c in found.matches}
        assert not found.other_unit


def test_where_else_the_figure_is() -> None:
    kept = data.saved("gru_demo")
    here = [source for source in kept if source.name == "current"]
    there = reading("gru_demo", figure("25150826"), kept, here)
    assert there is not None
    assert (there[0], there[1].counter) == ("tf-1.12", "tf.profiler@session")
    assert reading("gru_demo", figure("25150826"), kept, kept) is None
    assert reading("gru_demo", figure("12345678"), kept, here) is None
    known = load()
    assert origin(there[1], known) == "tf-1.12"
    assert origin(search("gru_demo", figure("250052032"), here).matches[0], known) == ""
    assert unseen(known, [], here, ()) == tuple(name for name in known if name != "current")
    assert unseen(known, [], here, ("tf",)) == ("tf-1.12", "tf-2.3.1")
    assert "tf-1.12" not in unseen(known, kept, here, ())
