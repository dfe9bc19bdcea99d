"""Networks of blocks made small by the arguments of ``__init__``, and inputs by what their layers refuse."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import reconcile
from reconcile.products.sweep.small_models import diffusers, fitted
from reconcile.products.sweep.small_models.shrink_kwargs import STEPS, Step, smaller

pytestmark = pytest.mark.frameworks

WIDTH, CHANNELS = 96, 4


class Base(torch.nn.Module):
    """What models of the library inherit from."""


class Net(Base):
    """An image and a text of its own width, each through a layer; ``num_layers`` layers follow."""

    register_to_config = None

    def __init__(self, num_layers: int = 12, in_channels: int = CHANNELS, text_dim: int = WIDTH) -> None:
        super().__init__()
        self.config = {"num_layers": num_layers, "in_channels": in_channels, "patch_size": 1}
        self.text = torch.nn.Linear(text_dim, 8, bias=False)
        self.image = torch.nn.Conv2d(in_channels, 8, 1, bias=False)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8, bias=False) for _ in range(num_layers))

    def forward(self, hidden_states: Any, encoder_hidden_states: Any, timestep: Any) -> Any:
        x = self.image(hidden_states).flatten(2).transpose(1, 2) * timestep
        x = torch.cat([x, self.text(encoder_hidden_states)], 1)
        for layer in self.layers:
            x = layer(x)
        return x


class Several(Base):
    """What is made from other models."""

    register_to_config = None

    def __init__(self, controlnets: list[NetModel]) -> None: ...  # noqa: F821


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A library with these classes, and no model known from another test."""
    module = types.ModuleType("diffusers")
    vars(module).update(Net=Net, Base=Base, Plain=type("Plain", (Base,), {}), Several=Several, make=lambda: None)
    monkeypatch.setitem(sys.modules, "diffusers", module)
    monkeypatch.setattr(diffusers, "_base", lambda: Base)
    monkeypatch.setattr(Net, "__module__", "diffusers.models.stub")
    diffusers.Smallest.fitting.clear()
    yield module
    diffusers.Smallest.fitting.clear()


def inputs_of(model: Any, **configuration: Any) -> dict[str, Any]:
    """The first form that the model takes."""
    parameters = inspect.signature(model.forward).parameters
    for form in fitted.forms(configuration, parameters):
        values = fitted.fit(model, form, configuration)
        try:
            model(**values)
        except Exception:  # another form is tried
            continue
        return values
    raise AssertionError("no form fits")


def test_a_width_stays_heads_times_their_size() -> None:
    before = {
        "num_attention_heads": 24, "attention_head_dim": 128, "caption_projection_dim": 3072, "axes_dims_rope": (16, 56, 56),
        "num_layers": 19, "joint_attention_dim": 4096,
    }  # fmt: skip
    after = {**before, **smaller(before, STEPS[0])}
    assert after["caption_projection_dim"] == after["num_attention_heads"] * 128 < 3072
    assert (after["attention_head_dim"], sum(after["axes_dims_rope"])) == (128, 128)
    assert after["num_layers"] == 1


def test_two_kinds_of_heads_shrink_together() -> None:
    before = {"num_attention_heads": 70, "attention_head_dim": 32, "num_cross_attention_heads": 20,
              "cross_attention_head_dim": 112, "cross_attention_dim": 2240}  # fmt: skip
    after = {**before, **smaller(before, STEPS[0])}
    assert after["num_attention_heads"] * 32 == after["num_cross_attention_heads"] * 112 == after["cross_attention_dim"]
    assert after["cross_attention_dim"] < 2240


def test_channels_keep_their_ratios_and_stay_groups() -> None:
    before = {"block_out_channels": (320, 640, 1280, 1280), "norm_num_groups": 32, "in_channels": 64}
    after = {**before, **smaller(before, STEPS[0])}
    assert after["block_out_channels"] == (32, 64, 128, 128)
    assert (after["norm_num_groups"], after["in_channels"]) == (32, 64)


def test_every_stage_keeps_a_block() -> None:
    before = {"layers_per_block": (4, 6, 6, 2), "num_res_blocks": 2, "injection_layer_ids": (0, 6, 14), "nlayers": 12}
    after = smaller(before, Step(32))
    assert after == {"layers_per_block": (1, 1, 1, 1), "num_res_blocks": 1, "injection_layer_ids": (0,), "nlayers": 1}


def test_only_what_is_asked_for_or_required_is_filled() -> None:
    before = {"in_channels": None, "latent_channels": inspect.Parameter.empty, "cross_attention_dim": None}
    assert smaller(before, None) == {"latent_channels": 16}
    assert smaller(before, Step(32, filled=("in_channels",))).keys() == {"in_channels", "latent_channels"}


def test_an_input_gets_the_width_that_a_layer_takes() -> None:
    values = inputs_of(Net(), in_channels=CHANNELS, patch_size=1)
    assert values["hidden_states"].shape[:2] == (1, CHANNELS)
    assert values["encoder_hidden_states"].shape[-1] == WIDTH


def test_inputs_side_by_side_fill_the_width_together() -> None:
    class Beside(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(192, 8)

        def forward(self, hidden_states: Any, context_latents: Any, img_ids: Any) -> Any:
            return self.layer(torch.cat([hidden_states, context_latents], -1))

    values = inputs_of(Beside(), in_channels=192)
    assert sum(values[name].shape[-1] for name in ("hidden_states", "context_latents")) == 192


def test_labels_are_given_where_asked_looked_up_time_is_whole() -> None:
    class Labelled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.times, self.classes = torch.nn.Embedding(10, 4), torch.nn.Embedding(10, 4)

        def forward(self, hidden_states: Any, timestep: Any, class_labels: Any = None, mask: Any = None) -> Any:
            return hidden_states.mean() * self.times(timestep) + self.classes(class_labels)

    values = inputs_of(Labelled())
    assert values["timestep"].dtype == values["class_labels"].dtype == torch.int64
    assert "mask" not in values


def test_as_many_dimensions_as_an_error_asks_for_are_tried_first() -> None:
    """A class like Net's, of videos: an image is the first form that is tried, and a video the second."""
    tried: list[int] = []

    class Video(Net):
        def forward(self, hidden_states: Any) -> Any:
            tried.append(hidden_states.dim())
            _batch, _channels, frames, _height, _width = hidden_states.shape
            if frames != 9:
                raise ValueError("too few frames")
            return hidden_states

    _, _, inputs = diffusers.Smallest(Video)()
    assert tried[0] == 4
    assert [dimensions for dimensions in tried[2:] if dimensions != 5] == []
    assert inputs["hidden_states"].shape[:3] == (1, CHANNELS, 9)


@pytest.mark.parametrize(
    ("message", "given", "wanted"),
    [
        ("not enough values to unpack (expected 5, got 4)", 4, 5),
        ("not enough values to unpack (expected 4, got 3)", 5, 0),
        ("too many values to unpack (expected 3)", 4, 3),
        ("Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: [1, 2, 32, 32]", 4, 3),
        ("i.e. input.dim() = 3 is not equal to len(dims) = 4", 3, 4),
        ("mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)", 2, 0),
    ],
)
def test_an_error_states_the_dimensions_an_input_should_have(message: str, given: int, wanted: int) -> None:
    assert fitted.stated_dimensions(message, given) == wanted


def test_what_an_annotation_takes_is_given() -> None:
    def forward(
        hidden_states: Any, scale: int, share: float, chosen: bool, cond: list[torch.Tensor], t: torch.Tensor
    ) -> None: ...

    form = next(fitted.forms({}, inspect.signature(forward).parameters))
    values = {name: make({}) for name, make in form.items()}
    assert [values[name] for name in ("scale", "share", "chosen")] == [1, 1.0, False]
    assert [type(item) for item in values["cond"]] == [torch.Tensor]
    assert isinstance(values["t"], torch.Tensor)


def test_classes_that_keep_their_arguments_are_listed() -> None:
    """Neither the base, nor a wrapper of other models, nor a function."""
    assert diffusers.names() == ["Net"]
    assert isinstance(diffusers.maker(Net), diffusers.Smallest)
    assert diffusers.maker(Base) is Base


def test_a_run_takes_the_class_and_says_how_it_was_made() -> None:
    """2 FLOPs per multiply-add of the image's layer, the text's, and the one layer that is left."""
    result = reconcile.run(torch=Net, counters=("flop_counter",)).result
    assert result.exit_code == 0
    [trace] = result.traces
    pixels, tokens = 32 * 32, fitted.TEXT
    macs = pixels * CHANNELS * 8 + tokens * WIDTH * 8 + (pixels + tokens) * 8 * 8
    assert trace.totals["matmul"] == 2 * macs
    assert [note for note in trace.notes if note.endswith("its code allows: num_layers=1")] != []
