"""Attributes that a configuration has to be given: every error that is understood, on configurations that raise it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch

from reconcile.products.sweep.small_models import example, transformers
from reconcile.products.sweep.small_models.mend import add_mend

from .test_shrink import Configuration, Net

pytestmark = pytest.mark.frameworks


class Part(Configuration):
    defaults: ClassVar[dict[str, Any]] = {
        "hidden_size": 64, "adapter_size": 128, "layer_types": ["full", "linear"], "experts_size": None, "vocab_size": 100,
        "group_pool": 16, "rope_parameters": {"rope_type": "default", "mrope_section": [8, 12, 12]}, "scale_factors": (),
        "conv_groups": 512, "index_budget": None,
    }  # fmt: skip


class Whole(Configuration):
    """A configuration with one part."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"part_config": Part(), "image_token_id": None, "vocab_size": 100, **named})


def raised(call: Callable[[], Any]) -> Exception:
    """What that call raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    return caught.value


@pytest.mark.parametrize(
    ("message", "name", "value"),
    [
        ("`part_config.adapter_size` (128) must equal `hidden_size // 4` (16).", "adapter_size", 16),
        ("`part_config.index_budget` (None) and `index_budget` (2) must be equal.", "index_budget", 2),
        ("adapter_size (2) must be divisible by group_pool (16).", "adapter_size", 16),
        ("adapter_size must match hidden_size", "adapter_size", 64),
        ("adapter_size must be 0, got 128", "adapter_size", 0),
        ("`config.part_config.adapter_size=128` should match `config.patch_size=384`.", "adapter_size", 384),
        ("Could not find a `sliding_window` argument in the config, or it is not set", "sliding_window", 64),
        ("It requires group_pool=1.", "group_pool", 1),
        ("in_channels must be divisible by groups", "conv_groups", 16),
        ("torch.cat(): expected a non-empty list of Tensors", "scale_factors", [1.0]),
        ("it is missing required fields: ['index_budget'].", "index_budget", 64),
    ],
)
def test_numbers_that_have_to_agree(message: str, name: str, value: Any) -> None:
    assert add_mend(ValueError(message), Whole(), {}) == {Part: {name: value}}


def test_sections_of_a_head_keep_their_proportions() -> None:
    error = RuntimeError(
        "split_with_sizes expects split_sizes to sum exactly to 16 (at -1), but got split_sizes=[8, 12, 12]"
    )
    [(name, rope)] = (add_mend(error, Whole(), {}) or {})[Part].items()
    assert (name, rope["rope_type"], sum(rope["mrope_section"])) == ("rope_parameters", "default", 16)
    assert rope["mrope_section"] == [4, 6, 6]


def test_an_attribute_that_the_code_reads_and_no_default_gives() -> None:
    error = raised(lambda: Part().shared_expert_intermediate_size)  # type: ignore[attr-defined]
    assert set((add_mend(error, Whole(), {}) or {})[Part]) == {"shared_expert_intermediate_size"}


def test_parameters_by_the_kind_of_the_layer() -> None:
    error = raised(lambda: Part().rope_parameters["linear"])  # type: ignore[attr-defined]
    [(name, rope)] = (add_mend(error, Whole(), {}) or {})[Part].items()
    assert (name, sorted(rope)) == ("rope_parameters", ["full", "linear"])


def test_an_attribute_that_is_none_where_the_error_arose() -> None:
    """The other one that is None was not read before."""

    def build(config: Any) -> int:
        width: int = config.experts_size
        return 2 * width + int(config.index_budget)

    error = raised(lambda: build(Part()))
    assert add_mend(error, Whole(), {}) == {Part: {"experts_size": 64}}


def test_a_placeholder_is_the_last_token_without_a_meaning() -> None:
    def placeholders(config: Any) -> Any:
        mask: Any = config.image_token_id == 5
        return mask.unsqueeze(-1)

    error = raised(lambda: placeholders(Whole(eos_token_id=99)))
    assert add_mend(error, Whole(), {}) == {Whole: {"image_token_id": 98}}


def test_what_has_been_said_is_not_said_again() -> None:
    error = ValueError("adapter_size must be 0, got 128")
    once = add_mend(error, Whole(), {})
    assert once is not None
    assert add_mend(error, Whole(), once) is None
    assert add_mend(ValueError("no"), Whole(), {}) is None


def test_a_configuration_is_mended_until_the_model_takes_it() -> None:
    class Open(Configuration):
        defaults: ClassVar[dict[str, Any]] = {
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "vocab_size": 3052,
            "ffn_dim": None,
        }

    class Opened(Net):
        config_class = Open

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.inner = torch.nn.Linear(config.hidden_size, 2 * config.ffn_dim)
            self.theta = config.rope_theta

    model, _, _ = transformers.maker(Opened)()
    assert model.config.hidden_size < 768
    assert model.config.rope_theta == model.theta == 10000.0
    assert model.inner.out_features == 2 * model.config.ffn_dim


def test_parts_that_disagree_are_mended_as_the_rung_wants() -> None:
    class Adapter(Configuration):
        defaults: ClassVar[dict[str, Any]] = {"hidden_size": 1280, "adapter_input_size": 1280}

        def __init__(self, **named: Any) -> None:
            super().__init__(**named)
            if vars(self)["adapter_input_size"] != vars(self)["hidden_size"]:
                raise ValueError("adapter_input_size must match hidden_size")

    class Adapted(Configuration):
        def __init__(self, **named: Any) -> None:
            super().__init__(
                **{"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 3052, "adapter": Adapter(), **named}
            )

    class Joined(Net):
        config_class = Adapted

    model, _, _ = transformers.maker(Joined)()
    assert model.config.adapter.adapter_input_size == model.config.adapter.hidden_size < 1280
    rung, _, _ = transformers.Smallest.fitting[Joined, "[]"]
    assert rung == transformers.RUNGS[0]


def test_an_input_that_the_models_code_asks_for() -> None:
    """By its name in the message, or in the line that raised it."""

    class Masked(Net):
        def forward(
            self, input_ids: Any = None, qformer_input_ids: Any = None, encoder_hidden_states: Any = None
        ) -> Any:
            if encoder_hidden_states is None:
                raise ValueError("encoder_hidden_states must be given")
            return super().forward(input_ids) + qformer_input_ids.sum()

    class Both(Masked):
        def forward(self, input_ids: Any = None, qformer_input_ids: Any = None) -> Any:
            return torch.nn.Module() if qformer_input_ids.sum() else None

    error = raised(lambda: Masked.forward(None, 1))  # type: ignore[arg-type]
    model = Masked(Net.config_class())
    assert [set(given) for given in example.complete_inputs(model, {"input_ids": 1}, error)] == [
        {"input_ids", "encoder_hidden_states"}
    ] * 2
    _, _, named = transformers.maker(Both)()
    assert set(named) == {"input_ids", "qformer_input_ids"}


def test_a_model_may_have_several_main_inputs() -> None:
    class Two(Net):
        main_input_name = ["pixel_values", "task_inputs"]  # type: ignore[assignment]  # noqa: RUF012

        def forward(self, pixel_values: Any = None, task_inputs: Any = None) -> Any:
            return super().forward(task_inputs) + pixel_values.sum()

    _, _, named = transformers.maker(Two)()
    assert set(named) == {"pixel_values", "task_inputs"}


def test_patches_as_wide_as_the_models_code_wants_them() -> None:
    class Patches(Net):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.embedding = torch.nn.Linear(1171, config.hidden_size)

        def forward(self, pixel_values: Any) -> Any:
            return super().forward(pixel_values)

    _, _, named = transformers.maker(Patches)()
    assert named["pixel_values"].shape[-1] == 1171


def test_a_text_alone_is_tried_where_no_image_is_taken() -> None:
    """Also if every image is tried with a decoder's text and without."""

    class Blind(Net):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.config.is_encoder_decoder = True
            self.config.image_token_id = 5

        def forward(self, input_ids: Any = None, pixel_values: Any = None, decoder_input_ids: Any = None) -> Any:
            if pixel_values is not None:
                raise ValueError("no image")
            return super().forward(input_ids)

    _, _, named = transformers.maker(Blind)()
    assert set(named) == {"input_ids", "decoder_input_ids"}


def test_a_class_without_a_forward_is_not_built() -> None:
    class Parts(Net):
        forward = torch.nn.Module.forward

        def __init__(self, config: Any) -> None:
            raise AssertionError

    with pytest.raises(transformers.Unfit, match="has no forward: give a function"):
        transformers.maker(Parts)()
