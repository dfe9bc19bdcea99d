"""Small models of a library's classes: what is built from a row of a table, what is said of it, and of a class without a row."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

import reconcile
from reconcile.products.sweep.small_models import HEADLESS, OF_CONFIGURATION, diffusers, table, transformers

from .library import LAYERS, SIDE, TOKENS, WIDTH, Blocks, Configuration, Net, Part, Whole, load

pytestmark = pytest.mark.frameworks


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries with these classes, and their tables."""
    for name, values in (("transformers", {"Net": Net, "Whole": Whole}), ("diffusers", {"Blocks": Blocks})):
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(table, "load", load)
    monkeypatch.setattr(transformers, "_classes", lambda: {"stub": "Net"})
    monkeypatch.setattr(transformers, "_headless_class", lambda architecture: "")
    monkeypatch.setattr(diffusers, "_base", lambda: torch.nn.Module)
    monkeypatch.setattr(Net, "__module__", "transformers.models.stub")
    monkeypatch.setattr(Blocks, "__module__", "diffusers.models.stub")


def test_the_configuration_and_the_inputs_of_the_row() -> None:
    make = transformers.maker(Net)
    model, positional, inputs = make()
    config = model.config
    assert (config.hidden_size, config.num_hidden_layers, config.vocab_size) == (WIDTH, LAYERS, 20)
    assert (type(config.part), config.part.image, config.part.sizes, config.part.channels) == (Part, 32, (4, 2), 3)
    assert (positional, model.training) == ((), False)
    assert inputs["input_ids"].tolist() == [[7, 8, 9, 10, 11]]
    assert inputs["pixel_values"].shape == (1, 3, 32, 32)
    changed = f"hidden_size={WIDTH}, num_hidden_layers={LAYERS}, vocab_size=20, part.image=32"
    assert make.notes == (f"made from the smallest configuration that its code allows: {changed}",)


def test_every_model_of_a_class_is_the_same() -> None:
    """Its parameters, and the random numbers after it."""
    (one, _, _), after = transformers.maker(Net)(), torch.rand(3)
    torch.rand(5)
    (same, _, _), again = transformers.maker(Net)(), torch.rand(3)
    assert torch.equal(after, again)
    pairs = zip(one.named_parameters(), same.parameters(), strict=True)
    assert [name for (name, a), b in pairs if not torch.equal(a, b)] == []


def test_named_arguments_replace_those_of_the_row() -> None:
    model, _, _ = transformers.maker(Net)(num_hidden_layers=3)
    assert (len(model.layers), model.config.hidden_size) == (3, WIDTH)
    small, _, _ = diffusers.maker(Blocks)(num_layers=3)
    assert len(small.layers) == 3


def test_on_meta_the_inputs_have_values() -> None:
    with torch.device("meta"):
        model, _, inputs = transformers.maker(Net)()
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert {value.device.type for value in inputs.values()} == {"cpu"}


def test_another_class_of_an_architecture_has_its_row() -> None:
    """With the inputs that it takes."""

    class Text(Net):
        def forward(self, input_ids: Any) -> Any:
            return super().forward(input_ids)

    make = transformers.maker(Text)
    model, _, inputs = make()
    assert (type(model), model.config.hidden_size, list(inputs)) == (Text, WIDTH, ["input_ids"])
    assert make.notes[0].startswith(
        "made from the small configuration of another class"
    )  # nobody made this one smaller


def test_a_class_without_a_row_says_what_to_give() -> None:
    class Other(Configuration):
        model_type = "other"

    class Unknown(Net):
        config_class = Other

    class Missing(Blocks): ...

    with pytest.raises(table.Unfit) as caught:
        transformers.maker(Unknown)()
    assert str(caught.value) == (
        "no small model of Unknown is known, only of classes in the table of transformers 1.2: "
        "give its configuration (transformers:Other) and inputs, or a function that returns the model with inputs"
    )
    with pytest.raises(table.Unfit, match=r"no small model of Missing .* diffusers 1.2: give a function that returns"):
        diffusers.maker(Missing)()


def test_arguments_of_a_class_of_diffusers() -> None:
    make = diffusers.maker(Blocks)
    model, _, inputs = make()
    assert model(**inputs).shape == (1, SIDE * SIDE + TOKENS, WIDTH)
    assert make.notes == (
        f"made from the smallest configuration that its code allows: num_layers=1, channels=({WIDTH}, 16)",
    )


def test_anything_but_such_a_class_is_its_own_factory() -> None:
    def make() -> None: ...

    assert transformers.maker(make) is make
    assert transformers.maker(torch.nn.Linear) is torch.nn.Linear
    assert diffusers.maker(torch.nn.Linear) is torch.nn.Linear


def test_classes_of_diffusers_that_keep_their_arguments_are_listed() -> None:
    """Neither the base, nor a wrapper of other models, nor a function."""

    class Several(torch.nn.Module):
        register_to_config = None

        def __init__(self, controlnets: list[NetModel]) -> None: ...  # noqa: F821

    vars(sys.modules["diffusers"]).update(Several=Several, Base=torch.nn.Module, make=lambda: None)
    assert diffusers.names() == ["Blocks"]
    assert diffusers.maker(Several) is Several


def test_a_configuration_makes_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is given: nothing is shrunk, and the class is that of ``architectures``, else of the most usual task."""
    library = sys.modules["transformers"]
    vars(library)["Other"] = type("Other", (Net,), {})
    make = transformers.maker(Whole)
    assert make.notes == ()
    model = make(num_hidden_layers=2)
    assert type(model) is Net
    assert (model.config.hidden_size, model.config.num_hidden_layers, model.training) == (768, 2, False)
    made = f"Net{OF_CONFIGURATION}Whole(num_hidden_layers=2)"
    assert make.notes == (made,)
    monkeypatch.setattr(transformers, "_headless_class", lambda architecture: "NetBase")
    make(num_hidden_layers=2)
    assert make.notes == (made + HEADLESS + "NetBase",)
    assert type(make(architectures="Other")) is vars(library)["Other"]
    with pytest.raises(table.Unfit, match="transformers has no class Nobody"):
        make(architectures="Nobody")


def test_a_configuration_of_no_listed_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers, "_classes", dict)
    with pytest.raises(table.Unfit, match="no class for this configuration: name one with architectures="):
        transformers.maker(Whole)()


@pytest.mark.parametrize(
    ("model", "macs"),
    [
        (Net, LAYERS * TOKENS * WIDTH**2),
        (Blocks, SIDE * SIDE * 4 * WIDTH + TOKENS * 96 * WIDTH + (SIDE * SIDE + TOKENS) * WIDTH**2),
    ],
)
def test_a_run_takes_the_class_and_says_how_it_was_made(model: type, macs: int) -> None:
    """A class of a package that the framework lists."""
    result = reconcile.run(torch=model, counters=("flop_counter",)).result
    assert result.exit_code == 0
    [trace] = result.traces
    assert trace.totals["matmul"] == 2 * macs
    assert [note for note in trace.notes if note.startswith("made from the smallest configuration")] != []
