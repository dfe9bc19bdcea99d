"""The same network at another size, with another setting, or fused: which are tried, what ran in them, and what that says."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from reconcile.core.records import FLOP, MAC
from reconcile.engine.settle import Collected
from reconcile.launch.request import Point, run_request
from reconcile.launch.user_models import read_inputs
from reconcile.launch.workers.supervisor import Event
from reconcile.products.decode import variants
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.readings import PART, WORK, Candidate
from reconcile.products.decode.variants import LENGTHS, SIDES, Ran, Variant
from tests.products.decode import data

MOBILENET = 300_774_272
"""The multiply-adds of MobileNetV2 at 224; every layer but the last has as many as its output has places."""


def of(what: str, *readings: Candidate, fused: bool = False) -> Ran:
    return Ran(Variant(what, (), Point({}, (), fused)), readings)


def macs(value: int) -> Candidate:
    return Candidate(value, WORK, MAC, "macs")


def texts(found: list[Variant]) -> list[str]:
    return [one.what for one in found]


def test_a_pictures_side_gets_every_other_side() -> None:
    found = texts(variants.of_pair("mobilenet_v2", {}))
    sides = [f"with size={side}" for side in SIDES if side != 224]
    assert [name for name in sides if name not in found] == []
    assert "with size=224" not in found
    assert [name for name in found if "batch" in name] == []
    assert {"with classes=500", "with classes=2000"} <= set(found)


def test_a_length_gets_lengths_and_a_width_is_halved_and_doubled() -> None:
    found = texts(variants.of_pair("bert_base", {"steps": "512"}))
    assert [name for name in found if name.startswith("with steps=")] == [
        f"with steps={length}" for length in LENGTHS if length != 512
    ]
    assert {"with depth=6", "with depth=24", "with width=384"} <= set(found)
    (twice,) = (one for one in variants.of_pair("bert_base", {"steps": "512"}) if one.what == "with depth=24")
    assert (twice.words, dict(twice.point.overrides)) == (("--set", "depth=24"), {"steps": "512", "depth": "24"})


def test_a_switch_is_turned() -> None:
    assert "with batch_first=false" in texts(variants.of_pair("gru_demo", {}))


@pytest.mark.parametrize(
    ("inputs", "other", "count"),
    [
        (("1,3,224,224",), ("1,3,192,192",), len(SIDES) - 1),
        (("ids=1,128:int64", "mask=1,128:int64"), ("ids=1,512:int64", "mask=1,512:int64"), len(LENGTHS) - 1),
        (("2,3,8,8",), (), 0),  # an axis of 8 is no side
        (("1,3,200,300",), (), 0),
    ],
)
def test_inputs_of_ones_own(inputs: tuple[str, ...], other: tuple[str, ...], count: int) -> None:
    fused, *found = variants.of_inputs(read_inputs(inputs))
    assert (fused.what, fused.point.fused, fused.point.inputs) == (variants.FUSED, True, read_inputs(inputs))
    assert len(found) == count
    assert not other or other in [one.words[1::2] for one in found]
    assert [one for one in found if one.point.fused] == []


def test_a_model_without_inputs_is_only_fused() -> None:
    assert texts(variants.list_variants(run_request(torch="net:make"))) == [variants.FUSED]


def test_the_fused_form_comes_first_then_the_unit() -> None:
    flops = Candidate(4_010_000_000, WORK, FLOP, "flops")
    far, near, fused = macs(4_049_000_000), macs(4_020_000_000), macs(4_030_000_000)
    ran = [of("far", far), of("in flops", flops), of("near", near), of("fused", fused, fused=True)]
    found = variants.hits(ran, figure("4.0 GMACs"))
    assert [hit.variant.what for hit in found] == ["fused", "near", "far", "in flops"]
    assert variants.hits(ran, figure("5.0 GMACs")) == []


def test_a_figure_of_few_digits_meets_no_part() -> None:
    part = Candidate(4_049_000_000, PART, MAC, "with norms")
    assert variants.hits([of("fused", part, fused=True)], figure("4.05G")) != []
    assert variants.hits([of("fused", part, fused=True)], figure("4.0G")) == []


def test_the_chance_grows_with_the_variants() -> None:
    """A reading takes the numbers that are printed as it is, and those below where it would be cut off: of 2.21, from 2.205."""
    one, two = of("a", macs(221_000_000)), of("b", macs(413_000_000))
    first, second = math.log10(2.215 / 2.205) / 2, math.log10(4.135 / 4.125) / 2
    wanted = figure("300M")
    assert variants.chance([one], wanted, MOBILENET) == pytest.approx(first)
    assert variants.chance([one, two], wanted, MOBILENET) == pytest.approx(first + second)
    assert variants.chance([one], figure("221000000"), MOBILENET) is None
    assert variants.chance([], wanted, MOBILENET) == 0


def test_a_number_that_the_network_itself_has_is_no_variants() -> None:
    """Twice the heads of half the width multiply as much: 5 × 8 × 4 in products over 8, and in twice as many over 4."""
    as_it_is, heads = data.trace(data.product("a", 5, 8, 4)), data.trace(data.product("a", 5, 4, 4, calls=2))
    wider = data.trace(data.product("a", 5, 8, 12))
    traces = [as_it_is, heads, wider]
    several = [Variant(what, (), Point({}, ())) for what in ("with heads=24", "with width=12")]
    there = lambda *_: [data.source(trace, batch=1).collected for trace in traces]  # noqa: E731
    _, ran = variants.run_variants(run_request(torch="net:make"), several, there, lambda _event: None)
    assert [one.variant.what for one in ran] == ["with width=12"]
    assert [hit.variant.what for hit in variants.hits(ran, figure(str(5 * 8 * 4)))] == []
    assert [hit.variant.what for hit in variants.hits(ran, figure(str(5 * 8 * 12)))] == ["with width=12"]


def test_a_form_that_the_network_does_not_have_is_no_failure() -> None:
    said: list[Event] = []

    def there(_request: object, _points: object, progress: Callable[[Event], None], _live: bool) -> list[Collected]:
        progress(Event("torch", "trace~1", "failed"))
        return [data.source(data.trace(data.product("a", 5, 8, 4)), batch=1).collected]

    variants.run_variants(run_request(torch="net:make"), [], there, said.append)
    assert [event.phase for event in said] == ["done"]
