"""The form that a model's own code makes of it for inference, run as a point of a model beside the form that it trains in."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.launch.choose import prepare_conventions
from reconcile.launch.request import Point, run_request
from reconcile.products.decode import variants

WIDE, SIDE, PARTS = 8, 32, 3
ONE = PARTS * WIDE * WIDE * SIDE * SIDE
THREE = 9 * ONE
"""The multiply-adds of 1x1 convolutions that keep the side, one in each part, and of the 3x3 beside them."""
NET = f"""
import torch

class Branches(torch.nn.Module):
    '''A 3x3 and a 1x1 that are added, as RepVGG trains them: one 3x3 in inference.'''

    def __init__(self):
        super().__init__()
        self.three = torch.nn.Conv2d({WIDE}, {WIDE}, 3, padding=1)
        self.one = torch.nn.Conv2d({WIDE}, {WIDE}, 1)

    def forward(self, x):
        return self.three(x) if self.one is None else self.three(x) + self.one(x)

    def switch_to_deploy(self):
        weight = self.three.weight + torch.nn.functional.pad(self.one.weight, (1, 1, 1, 1))
        self.three.weight = torch.nn.Parameter(weight)
        self.one = None

class Whole(torch.nn.Module):
    '''A part whose method returns what takes its place.'''

    def __init__(self):
        super().__init__()
        self.branches = Branches()

    def forward(self, x):
        return self.branches(x)

    def fuse(self):
        self.branches.switch_to_deploy()
        return self.branches.three

def make(part=Branches):
    return torch.nn.Sequential(*(part() for _ in range({PARTS})))

def replaced():
    return make(Whole)

def plain():
    return torch.nn.Sequential(torch.nn.Conv2d({WIDE}, {WIDE}, 3, padding=1))
"""
SHAPE = f"1,{WIDE},{SIDE},{SIDE}"

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.usefixtures("warmed")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "branches.py").write_text(NET)
    monkeypatch.chdir(tmp_path)


def fused(name: str) -> list[variants.Ran]:
    request = run_request(torch=f"branches:{name}", inputs=[SHAPE])
    form = variants.Variant(variants.FUSED, (), Point({}, request.inputs, fused=True))
    with prepare_conventions(request):
        return variants.run_variants(request, [form], None, lambda _event: None)[1]


def test_branches_that_are_added_become_one(here: None) -> None:
    for name in ("make", "replaced"):
        (ran,) = fused(name)
        assert next(c.value for c in ran.readings if c.plain) == THREE


def test_a_model_that_fuses_nothing_has_no_such_variant(here: None) -> None:
    assert fused("plain") == []


def test_decode_names_the_fused_form_and_the_other_size(here: None) -> None:
    def decoded(figure: int) -> str:
        words = ["decode", "--torch", "branches:make", "--input", SHAPE, str(figure)]
        done = CliRunner().invoke(cli, words, prog_name="reconcile")
        assert done.exit_code == 1, done.output
        return " ".join(done.output.split())

    assert f"The network in its fused (deploy) form has {THREE:,}: the work that ran, in MACs" in decoded(THREE)
    # a side of 192 is six times 32: 36 times the places
    there = decoded(36 * (THREE + ONE))
    assert f"The network at 192 in place of 32 has {36 * (THREE + ONE):,}: the work that ran, in MACs" in there
    assert f"Look there: reconcile decode --torch branches:make --input 1,{WIDE},192,192 {36 * (THREE + ONE)}" in there
