"""The committed page of releases is made of its rows, and the rows hold together; changes that the packages' sources confirm."""

from __future__ import annotations

import pytest

from tests.zoo import every_release as made
from tests.zoo.csv_rows import read
from tests.zoo.every_release import Moved, Release
from tests.zoo.release_takes import age, chosen
from tests.zoo.releases_page import page

RELEASES: list[Release] = read(made.RELEASES, Release)
CHANGES: list[Moved] = read(made.CHANGES, Moved)
GRU = 3 * 96 * (32 * 127 + 96 + 2)


def test_the_page_is_made_of_the_rows() -> None:
    assert made.PAGE.read_text() == page(RELEASES, CHANGES), "stale: run `make releases` and commit what changed"


def test_every_release_ran_or_has_its_reason() -> None:
    assert not [row for row in RELEASES if bool(row.families) == bool(row.reason)]
    assert not [row for row in RELEASES if row.explained > row.families]


def test_what_moved_lies_between_two_releases_that_ran() -> None:
    ran = {(row.counter, row.release) for row in RELEASES if row.families}
    assert not [row for row in CHANGES if not {(row.counter, row.before), (row.counter, row.release)} <= ran]
    assert not [row for row in CHANGES if row.was == row.now]


def test_releases_are_in_the_order_of_their_days() -> None:
    """thop's version numbers went back to 0.0.4 after 0.0.31."""
    names = ["0.0.4.post2006032126", "0.0.22", "0.0.31.post2001170342", "0.1.1.post2209072238", "0.0.30.post190806"]
    assert sorted(names, key=age) == [names[1], names[4], names[2], names[0], names[3]]


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ([f"1.{n}" for n in range(50)], 50),
        ([f"0.{n}.{k}" for n in range(12) for k in range(9)], 12),  # the last of each minor release
        ([f"0.1.{n}" for n in range(75)], 25),  # each third, back from the newest
    ],
)
def test_of_many_releases_some_are_looked_at_and_the_newest_is(found: list[str], kept: int) -> None:
    looked_at = chosen(found)
    assert (len(looked_at), looked_at[-1]) == (kept, found[-1])
    assert looked_at == [text for text in found if text in looked_at]


@pytest.mark.parametrize(
    ("counter", "release", "family", "layer", "before", "after"),
    [
        # two products of (2, 5, 8) by (2, 8, 5) and back, 2 FLOPs each multiply-add; the rest is as before
        ("calflops", "0.2.9", "family_attention", "multi_head_weights", 2 * 2 * (2 * 5 * 5 * 8), 0),
        # a Linear of 5 by 5 with its bias, once per sample, in each of two calls; before, three times that
        ("torchinfo", "1.6.2", "family_control", "two_parents", 3 * 2 * 2 * (5 * 5 + 5), 2 * 2 * (5 * 5 + 5)),
        # three gates of 96 units from 32 x 127 inputs, with two biases each; at 97 steps, and 110 instructions for each state
        ("onnx_tool", "0.9.0", "gru_demo", "gru", GRU, 97 * (GRU + 96 * (3 + 2 * 32 + (32 + 2 + 4) + 5))),
        # 2 samples of 5 positions and 4 channels become 7 of 6, with biases, by 3 taps: at 7 positions, or at 5
        (
            "ptflops@pytorch",
            "0.7.5",
            "family_transposed",
            "transposed1d",
            *(2 * (p * 3 * 4 * 6 + 7 * 6) for p in (7, 5)),
        ),
    ],
)
def test_changes_that_the_sources_confirm(
    counter: str, release: str, family: str, layer: str, before: int, after: int
) -> None:
    """At the lines that the page names."""
    of = (counter, release, family, layer)
    (row,) = [r for r in CHANGES if (r.counter, r.release, r.family, r.layer) == of]
    assert int(row.was) - int(row.now) == before - after
    if after:
        assert (int(row.was), int(row.now)) == (before, after)
