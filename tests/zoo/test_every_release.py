"""The committed page of releases is made of its rows, and of many releases some are looked at, the newest among them."""

from __future__ import annotations

import pytest

from tests.zoo import every_release as made
from tests.zoo.csv_rows import read
from tests.zoo.every_release import Moved, Release
from tests.zoo.release_takes import age, chosen
from tests.zoo.releases_page import page

RELEASES: list[Release] = read(made.RELEASES, Release)
CHANGES: list[Moved] = read(made.CHANGES, Moved)


def test_the_page_is_made_of_the_rows() -> None:
    assert made.PAGE.read_text() == page(RELEASES, CHANGES), "stale: run `make releases` and commit what changed"


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
