"""A figure of few digits: which readings it is compared with, and in which order."""

from __future__ import annotations

import pytest

from reconcile.core.records import FLOP, MAC
from reconcile.launch.environments.definitions import load
from reconcile.products.decode import search as searching
from reconcile.products.decode.hints import find_origin, find_reading, list_unread_environments
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.readings import DERIVED, LAYER, PART, REPORTED, WORK, Candidate
from reconcile.products.decode.search import Decoded, search
from tests.products.decode import data


def among(monkeypatch: pytest.MonkeyPatch, text: str, *table: Candidate) -> Decoded:
    ranked = tuple(sorted(table, key=lambda c: (c.rank, c.value)))
    monkeypatch.setattr(searching, "candidates", lambda *_: (ranked, ()))
    return search("net", figure(text), [])


def test_parameters_doubled_are_no_reading_of_three_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = Candidate(2 * 86_567_656, DERIVED, "", "parameters, doubled")
    assert not among(monkeypatch, "173M", doubled).matches
    assert among(monkeypatch, "173.1M", doubled).doubtful
    assert not among(monkeypatch, "173,232,616", doubled).matches  # that is torchinfo's count


@pytest.mark.parametrize(
    ("times", "said"), [(2, "100 %"), (9, "800 %"), (10, "a factor of 10"), (546, "a factor of 546")]
)
def test_from_ten_times_on_a_distance_is_a_factor(times: int, said: str) -> None:
    assert f" by {said}: " in searching.describe_distance(times * 1000, Candidate(1000, WORK, MAC, "macs"))


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


@pytest.mark.parametrize(("text", "macs"), [("3.8e9", 3_857_973_248), ("300M", 300_774_272)])
def test_papers_cut_the_multiply_adds_off(monkeypatch: pytest.MonkeyPatch, text: str, macs: int) -> None:
    """Those of ResNet-50 (He et al. 2015) and MobileNetV2 (Sandler et al. 2018)."""
    decoded = among(monkeypatch, text, Candidate(macs, WORK, MAC, "the work, in MACs"))
    assert (decoded.values, decoded.cut) == ((macs,), True)
    assert decoded.near == ()
    assert among(monkeypatch, text + " FLOPs", Candidate(macs, WORK, MAC, "the work, in MACs")).other_unit


def test_nothing_is_cut_off_to_one_digit_or_where_one_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    macs = Candidate(3_857_973_248, WORK, MAC, "the work, in MACs")
    assert not among(monkeypatch, "3G", macs).matches
    rounding = Candidate(3_810_000_000, REPORTED, MAC, "thop, as reported")
    decoded = among(monkeypatch, "3.8G", macs, rounding)
    assert (decoded.matches, decoded.cut) == ((rounding,), False)


def test_a_total_that_a_counter_printed_comes_before_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = Candidate(2_050, REPORTED, FLOP, "z, as reported", printed=True)
    others = [Candidate(2_050, rank, FLOP, f"a{rank}") for rank in (REPORTED, PART, DERIVED)]
    assert among(monkeypatch, "2050", *others, printed).matches == (printed, *others)


def test_a_long_number_is_no_coincidence(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, doubtful in (("20,500", False), ("2050", True), ("2.050M", True), ("2.0501M", False), ("2.05M", False)):
        wanted = figure(text)
        decoded = among(monkeypatch, text, Candidate(wanted.digits * wanted.unit, PART, FLOP, "x"))
        assert (text, len(decoded.matches), decoded.doubtful) == (text, 1, doubtful)


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


def test_where_else_the_figure_is() -> None:
    kept = data.saved("gru_demo")
    here = [source for source in kept if source.name == "current"]
    there = find_reading("gru_demo", figure("25150826"), kept, here)
    assert there is not None
    assert (there[0], there[1].counter) == ("tf-1.12", "tf.profiler@session")
    assert find_reading("gru_demo", figure("25150826"), kept, kept) is None
    assert find_reading("gru_demo", figure("12345678"), kept, here) is None
    known = load()
    assert find_origin(there[1], known) == "tf-1.12"
    assert find_origin(search("gru_demo", figure("250052032"), here).matches[0], known) == ""
    assert list_unread_environments(known, [], here, {}) == tuple(
        name for name in known if name != "current" and known[name].unasked
    )
    assert "tf-1.12" not in list_unread_environments(known, kept, here, {})
    # a recipe of TensorFlow builds pairs alone, and a library's model is not in an older environment
    assert list_unread_environments(known, [], here, {"tf": "net:make"}) == ()
    older = list_unread_environments(known, [], here, {"torch": "net:make"})
    assert older == tuple(name for name in known if known[name].unasked and name.startswith("torch-"))
    assert list_unread_environments(known, [], here, {"torch": "timm.models:resnet34"}) == ()
    assert list_unread_environments(known, [], here, {"torch": "transformers:BertConfig"}) == ()
