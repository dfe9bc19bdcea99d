"""The names that rows give their models: one cell for all rows of a model, and a reason if there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconcile.core.atomic import safe
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.interpreters import EnvironmentError_
from reconcile.launch.environments.provision import STAMP, folder_of
from reconcile.products.audit import claim_cells
from reconcile.products.audit.cell import request_cell
from reconcile.products.audit.claim_cells import cells_of
from reconcile.products.audit.claims import Claim

KNOWN = load()
PICTURE = "1,3,224,224"


@pytest.mark.parametrize(
    ("model", "place", "factories"),
    [
        ("timm:vit", "timm", {"torch": "timm.models:vit"}),
        ("torchvision:video.r3d_18", "timm", {"torch": "torchvision.models:video.r3d_18"}),
        ("keras.applications:VGG16", "current", {"tf": "keras.applications:VGG16"}),
        ("transformers:BertConfig(num_hidden_layers=3)", "transformers-5.23", {"torch": "transformers:BertConfig"}),
        ("tf=net:make", "current", {"tf": "net:make"}),
    ],
)
def test_a_factory(model: str, place: str, factories: dict[str, str]) -> None:
    cells, wrong = cells_of([Claim(1, model, PICTURE, "1", environment=place)], KNOWN)
    assert wrong == {}
    assert cells[1].factories == factories
    assert cells[1].inputs == (("", (1, 3, 224, 224), ""),)
    assert cells[1].environment.get("name", "current") == place


def test_a_row_runs_here_if_the_usual_environment_lacks_its_framework() -> None:
    keras = Claim(1, "keras.applications:VGG16", PICTURE, "1")
    cells, wrong = cells_of([keras, Claim(2, "timm:vit", PICTURE, "1")], KNOWN, ("timm",))
    assert (wrong, cells[1].place) == ({}, None)
    assert cells[2].place is not None
    _, wrong = cells_of([replace(keras, environment="timm")], KNOWN, ("timm",))
    assert list(wrong) == [1]


def test_each_row_runs_in_the_first_environment_that_has_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environments list, or, of one over the running interpreter's packages, what is there."""
    monkeypatch.setattr("reconcile.products.audit.claim_cells.is_there", lambda _name, _paths: False)
    models = ("timm:vit", "transformers:BertModel", "torchvision:vgg", "net:make", "keras.applications:VGG16")
    rows = [Claim(number, model, PICTURE, "1") for number, model in enumerate(models)]
    rows.append(Claim(len(models), "net:make", PICTURE, "1", environment="current"))
    for usual in (("timm", "transformers-5.23"), ("transformers-5.23", "timm")):
        cells, wrong = cells_of(rows, KNOWN, usual)
        there = [cells[row].environment.get("name", "current") for row in sorted(cells)]
        assert (wrong, there) == ({}, ["timm", "transformers-5.23", "timm", usual[0], "current", "current"])
    unsure = replace(KNOWN["tf-2.3.1"], name="theirs", frameworks=("torch",))  # what its packages bring is not known
    cells, wrong = cells_of(rows[:2], {**KNOWN, "theirs": unsure}, ("timm", "theirs"))
    assert (wrong, [cells[row].environment["name"] for row in (0, 1)]) == ({}, ["timm", "theirs"])


def test_a_class_of_transformers_is_made_in_full_size_of_its_own_configuration() -> None:
    claim = Claim(1, "transformers:BertModel(num_hidden_layers=3)", PICTURE, "1", environment="transformers-5.23")
    cells, _ = cells_of([claim], KNOWN)
    assert cells[1].factories == {"torch": "transformers:BertModel.config_class"}
    assert cells[1].arguments == {"num_hidden_layers": 3, "architectures": "BertModel"}


def test_only_a_framework_that_takes_a_device_is_given_one() -> None:
    """The placed frameworks are those whose record says so."""
    rows = [Claim(1, "net:make", PICTURE, "1"), Claim(2, "tf=net:make", PICTURE, "1"), Claim(3, "gru_demo", figure="1")]
    cells, _ = cells_of(rows, KNOWN)
    options = [request_cell(cells[row], ())["manner"]["options"] for row in (1, 2, 3)]
    assert options == [{"device": "meta"}, {}, {"device": "meta"}]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("timm:vit(img_size=256)", {"img_size": 256}),
        ("timm:vit ( img_size = 256, name='a(b', on=True, rate=0.5, none=None)", None),
    ],
)
def test_arguments_of_a_factory(text: str, arguments: dict[str, object] | None) -> None:
    cells, wrong = cells_of([Claim(1, text, PICTURE, "1", environment="timm")], KNOWN)
    assert wrong == {}
    several = {"img_size": 256, "name": "a(b", "on": True, "rate": 0.5, "none": None}
    assert cells[1].arguments == (several if arguments is None else arguments)
    assert cells[1].factories == {"torch": "timm.models:vit"}


@pytest.mark.parametrize(
    "text",
    [
        "n:f(",
        "n:f(1)",
        "n:f(a=b)",
        "n:f(a=[1])",
        "n:f(a=1e999)",
        "n:f(a=" + "(" * 900,
        "n:f(a=1);x",
        "n:f(a=\0)",
    ],
)
def test_arguments_that_are_none(text: str) -> None:
    _, wrong = cells_of([Claim(1, text, PICTURE, "1")], KNOWN)
    assert "write arguments as in timm:NAME(img_size=256)" in wrong[1]


def test_a_pair_of_the_zoo() -> None:
    cells, wrong = cells_of([Claim(1, "resnet50", figure="1"), Claim(2, "resnet50", PICTURE, "1")], KNOWN)
    assert cells[1].model == "resnet50"
    assert "defines its own inputs" in wrong[2]
    _, wrong = cells_of([Claim(1, "resnet50(depth=3)", figure="1")], KNOWN)
    assert "leave out its input and arguments" in wrong[1]


def test_rows_of_one_model_are_one_cell_and_other_inputs_another() -> None:
    rows = [
        Claim(1, "net:make", PICTURE, "1"),
        Claim(2, "net:make", PICTURE, "2", environment="current"),
        Claim(3, "net:make", "1,3,256,256", "2"),
        Claim(4, "net:make", PICTURE, "2", environment="timm"),
        Claim(5, "net:Make", PICTURE, "2"),
    ]
    cells, wrong = cells_of(rows, KNOWN)
    assert wrong == {}
    assert cells[1] == cells[2]
    assert len({safe(cell.name).lower() for cell in cells.values()}) == 4


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (Claim(1, "no_such_model", figure="1"), "unknown model 'no_such_model'"),
        (Claim(1, "timm:../../x", PICTURE, "1", environment="timm"), "is not a function name"),
        (Claim(1, "timm:vit", "1,x", "1", environment="timm"), "'x' is not a size"),
        (Claim(1, "timm:vit", PICTURE, "1", environment="nowhere"), "unknown environment 'nowhere'"),
        (Claim(1, "timm:vit", PICTURE, "1", environment="tf-2.3.1"), "has no PyTorch"),
        (Claim(1, "transformers:BertModel", figure="1", environment="timm"), "write transformers-5.23 in its"),
        (Claim(1, "resnet34", figure="1"), "timm:resnet34"),
        (Claim(1, "x", figure="1", wrong="this row is broken."), "this row is broken"),
    ],
)
def test_a_row_without_a_model_says_why_and_ends_nothing(claim: Claim, says: str) -> None:
    cells, wrong = cells_of([claim, Claim(2, "net:make", PICTURE, "1")], KNOWN)
    assert list(cells) == [2]
    assert says in wrong[1]


def test_a_library_that_is_not_there_says_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcile.products.audit.claim_cells.is_there", lambda _name, _paths: False)
    _, wrong = cells_of([Claim(1, "timm:vit", PICTURE, "1")], KNOWN)
    assert wrong[1].startswith("timm is not installed in this environment: pip install timm")
    assert "write timm in its column environment, which uv makes" in wrong[1]


def test_rows_run_here_where_an_environment_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def lack_uv() -> None:
        raise EnvironmentError_("uv is not installed")

    usual, said = ("timm", "current"), list[str]()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(claim_cells, "uv_command", lack_uv)
    assert claim_cells.list_usual(usual, KNOWN, said.append) == ["current", "current"]
    assert [why.partition(":")[0] for why in said] == ["timm cannot be made"]
    (made := folder_of(KNOWN["timm"])).mkdir(parents=True)
    (made / STAMP).touch()
    assert claim_cells.list_usual(usual, KNOWN, said.append) == list(usual)
    monkeypatch.undo()
    monkeypatch.setattr(claim_cells, "uv_command", lambda: ("uv",))
    assert (claim_cells.list_usual(usual, KNOWN, said.append), len(said)) == (list(usual), 1)


def test_a_bare_name_is_that_of_a_library_which_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, says, not_says in (
        ("torchvision", ["torchvision:vgg11"], "timm:"),
        ("", ["timm:vgg11", "torchvision:vgg11"], "x:"),
    ):
        monkeypatch.setattr(claim_cells, "is_there", lambda name, _paths, there=there: name == there)
        _, wrong = cells_of([Claim(1, "vgg11", figure="1")], KNOWN)
        assert [text for text in says if text not in wrong[1]] == []
        assert not_says not in wrong[1]
        assert "transformers" not in wrong[1]
