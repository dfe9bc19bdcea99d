"""What the libraries of the environment ``timm`` list of themselves, each in a process of its own."""

from __future__ import annotations

import csv
import io
from collections import Counter

import pytest

from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from reconcile.products.audit import published_tables
from reconcile.products.sweep import listing

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def python() -> str:
    return str(ensure(load()["timm"]))


def test_every_model_of_torchvision_with_its_inputs(python: str) -> None:
    cells = {dict(cell.factories)["torch"]: cell.inputs for cell in listing.cells_of("torchvision", python=python)}
    assert len(cells) == 121
    shapes = {name: [shape for _, shape, _ in inputs] for name, inputs in cells.items()}
    assert shapes["torchvision.models:resnet50"] == [(1, 3, 224, 224)]
    assert shapes["torchvision.models:inception_v3"] == [(1, 3, 299, 299)]
    assert shapes["torchvision.models:vit_h_14"] == [(1, 3, 224, 224)]
    assert shapes["torchvision.models:video.r3d_18"] == [(1, 3, 16, 112, 112)]
    assert shapes["torchvision.models:segmentation.fcn_resnet50"] == [(1, 3, 520, 520)]
    assert shapes["torchvision.models:detection.fcos_resnet50_fpn"] == [(1, 3, 512, 512)]
    assert shapes["torchvision.models:optical_flow.raft_small"] == [(1, 3, 512, 512)] * 2


def test_every_model_of_timm(python: str) -> None:
    cells = {dict(cell.factories)["torch"]: cell.inputs for cell in listing.cells_of("timm", python=python)}
    assert len(cells) > 1300
    assert cells["timm.models:vit_base_patch16_224"] == (("", (1, 3, 224, 224), ""),)
    assert cells["timm.models:tf_efficientnet_b7"] == (("", (1, 3, 600, 600), ""),)


def test_the_figures_that_torchvision_states() -> None:
    """166, of which 115 are of models that classify pictures."""
    rows = list(csv.DictReader(io.StringIO(published_tables.torchvision(load()))))
    kinds = Counter(row["model"].partition("(")[0].rpartition(".")[0].removeprefix("torchvision:") for row in rows)
    assert kinds == {
        "": 115, "detection": 13, "optical_flow": 8, "quantization": 14, "segmentation": 6, "video": 10,
    }  # fmt: skip
    arguments = {row["model"].partition("(")[2] for row in rows}
    assert arguments == {"", "image_size=384)", "image_size=512)", "image_size=518)", "aux_loss=True)"}
