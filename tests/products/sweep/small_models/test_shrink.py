"""The smallest configuration of a library's model: what the rules keep together, what is tried, what is said if nothing fits."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import torch

import reconcile
from reconcile.products.sweep.small_models import example, transformers
from reconcile.products.sweep.small_models.shrink import (
    EQUAL,
    KEPT,
    RUNGS,
    SCALED,
    Rung,
    shrunk,
)

pytestmark = pytest.mark.frameworks


class Configuration:
    """As a library's: attributes with defaults, which named arguments replace."""

    model_type = "stub"
    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, **named: Any) -> None:
        vars(self).update({**self.defaults, **named})

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Text(Configuration):
    """A language model of the usual size: three layers of one kind, then one of another."""

    defaults: ClassVar[dict[str, Any]] = {
        "vocab_size": 152064, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "layer_types": ["linear"] * 3 + ["full"] + ["linear"] * 28,
        "max_position_embeddings": 32768, "num_experts": 128, "num_experts_per_tok": 8, "moe_k": 6, "pad_token_id": 151643,
        "eos_token_id": [151645, 151643], "bos_token_id": 1, "use_cache": True, "rope_theta": 10000.0,
    }  # fmt: skip


class Both(Configuration):
    """A configuration of two parts."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"text_config": Text(), "image_token_id": 151655, **named})


class Linear(Configuration):
    defaults: ClassVar[dict[str, Any]] = {"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 3052}


class Net(torch.nn.Module):
    """An embedding and square layers; ``refuses`` says which widths its code does not take."""

    config_class: type = Linear
    main_input_name = "input_ids"
    refuses: tuple[int, ...] = ()

    def __init__(self, config: Any) -> None:
        super().__init__()
        if config.hidden_size in self.refuses:
            raise ValueError(f"not {config.hidden_size}")
        self.config = config
        self.embedding = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.num_hidden_layers)
        )

    def forward(self, input_ids: Any = None) -> Any:
        hidden = self.embedding(input_ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """No model is known from another test."""
    transformers.Smallest.fitting.clear()
    yield
    transformers.Smallest.fitting.clear()


def test_equal_widths_fit_together() -> None:
    small = Text(**shrunk(Text(), RUNGS[0]))
    assert small.num_attention_heads * small.head_dim == small.hidden_size
    assert small.num_attention_heads % small.num_key_value_heads == 0
    assert small.num_key_value_heads < small.num_attention_heads  # as before
    assert small.num_experts_per_tok < small.num_experts < Text().num_experts
    assert small.moe_k < small.num_experts
    assert small.hidden_size < small.intermediate_size < Text().hidden_size
    assert small.use_cache is False
    assert (small.max_position_embeddings, small.rope_theta) == (32768, 10000.0)  # no width of a layer


def test_every_kind_of_layer_stays() -> None:
    small = Text(**shrunk(Text(), RUNGS[0]))
    assert small.layer_types == ["linear", "linear", "linear", "full"]
    assert small.num_hidden_layers == len(small.layer_types)


def test_tokens_with_a_meaning_stay_apart_and_in_the_vocabulary() -> None:
    """Those of all parts: a text's end is not an image."""
    small = Both(**shrunk(Both(), RUNGS[0]))
    text = small.text_config
    kept = {text.pad_token_id, text.eos_token_id[0], small.image_token_id, text.bos_token_id}
    assert len(kept) == 4
    assert [token for token in kept if token >= text.vocab_size] == []
    assert text.eos_token_id[1] == text.pad_token_id  # as before
    assert text.bos_token_id == 1


def test_scaled_widths_keep_their_ratios() -> None:
    before, small = Text(), Text(**shrunk(Text(), Rung(SCALED, divisor=4)))
    assert small.hidden_size < before.hidden_size
    assert small.hidden_size == small.num_attention_heads * small.head_dim
    assert small.intermediate_size * before.hidden_size == before.intermediate_size * small.hidden_size
    assert small.vocab_size == before.vocab_size


def test_kept_widths_stay() -> None:
    before, small = Text(), Text(**shrunk(Text(), Rung(KEPT)))
    names = ("hidden_size", "intermediate_size", "num_attention_heads", "head_dim", "num_experts", "vocab_size")
    assert [name for name in names if getattr(small, name) != getattr(before, name)] == []
    assert small.num_hidden_layers == 4


def test_a_size_that_is_left_open_is_filled_only_where_asked() -> None:
    class Open(Configuration):
        defaults: ClassVar[dict[str, Any]] = {
            "hidden_size": 768,
            "num_attention_heads": 12,
            "head_dim": None,
            "num_key_value_heads": None,
        }

    assert "head_dim" not in shrunk(Open(), Rung(EQUAL))
    filled = Open(**shrunk(Open(), Rung(EQUAL, filled=True)))
    assert filled.head_dim * filled.num_attention_heads == filled.hidden_size
    assert filled.num_attention_heads % filled.num_key_value_heads == 0


def test_no_layer_is_left_out_at_random() -> None:
    class Dropping(Configuration):
        defaults: ClassVar[dict[str, Any]] = {"encoder_layerdrop": 0.1, "drop_path_rate": 0.2, "hidden_dropout": 0.1}

    assert [shrunk(Dropping(), rung) for rung in RUNGS] == [{"encoder_layerdrop": 0.0, "drop_path_rate": 0.0}] * len(
        RUNGS
    )


def test_an_image_takes_as_many_tokens_as_the_model_makes_of_it() -> None:
    class Seeing(torch.nn.Module):
        config = Configuration(image_token_id=99, vocab_size=100, image_size=32, num_channels=3)

        def get_image_features(self, pixel_values: Any) -> Any:
            return pixel_values.flatten(2).transpose(1, 2)[:, ::128]

        def forward(self, input_ids: Any = None, pixel_values: Any = None) -> None: ...

    class Around(torch.nn.Module):
        config = Seeing.config
        forward = Seeing.forward

        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(Seeing())

    for model in (Seeing(), Around()):
        first = next(example.examples(model))
        assert tuple(first["pixel_values"].shape) == (1, 3, 32, 32)
        assert int((first["input_ids"] == 99).sum()) == 32 * 32 // 128


def test_the_first_configuration_that_the_code_takes() -> None:
    """Also the second time, without the others being tried."""

    class Picky(Net):
        refuses = (64, 512)

    make = transformers.maker(Picky)
    model, positional, named = make()
    assert model.config.hidden_size not in (64, 512, 768)
    assert positional == ()
    assert model(**named).shape[-1] == model.config.hidden_size
    assert model.training is False
    assert f"hidden_size={model.config.hidden_size}" in make.notes[0]
    [(rung, mends, _)] = transformers.Smallest.fitting.values()
    assert rung not in transformers.RUNGS[:3]
    assert mends == {}
    again, _, same = make()
    assert again is not model
    assert torch.equal(same["input_ids"], named["input_ids"])


def test_named_arguments_replace_what_the_rules_say() -> None:
    model, _, _ = transformers.maker(Net)(num_hidden_layers=5)
    assert len(model.layers) == 5


@pytest.mark.heavy
def test_where_nothing_fits_the_models_own_error_is_said() -> None:
    class Never(Net):
        def forward(self, input_ids: Any = None) -> Any:
            raise ValueError("set the default language first")

    class Missing(Net):
        def forward(self, input_ids: Any = None) -> Any:
            raise ImportError("requires a library")

    with pytest.raises(transformers.Unfit, match=r"give a function .* set the default language first"):
        transformers.maker(Never)()
    with pytest.raises(ImportError, match="requires a library"):
        transformers.maker(Missing)()


@pytest.mark.heavy
def test_errors_that_repeat_hold_no_activations() -> None:
    """One per message, at most, while the next inputs are tried."""
    held = weakref.WeakSet[torch.Tensor]()
    most = 0

    class Wide(Net):
        def forward(self, pixel_values: Any = None) -> Any:
            nonlocal most
            activation = torch.ones(4)
            held.add(activation)
            most = max(most, len(held))
            raise ValueError("not this one")

    with pytest.raises(transformers.Unfit, match="not this one"):
        transformers.maker(Wide)()
    assert most == 2, "the first that said it, and the one that runs"


@pytest.mark.heavy
def test_a_failed_configuration_holds_no_model_meanwhile() -> None:
    """Neither its errors' text, nor the errors that those were raised from, nor a circle of its own keeps it alive."""
    held = weakref.WeakSet[torch.nn.Module]()
    most = calls = 0

    class Circular(Net):
        def __init__(self, configuration: Any) -> None:
            nonlocal most
            super().__init__(configuration)
            held.add(self)
            vars(self)["me"] = self
            most = max(most, len({id(model) for model in held if not next(model.parameters()).is_meta}))

        def forward(self, input_ids: Any = None) -> Any:
            nonlocal calls
            calls += 1
            try:
                raise KeyError(calls)
            except KeyError as error:
                raise ValueError(f"not this one, the {calls}th") from error

    gc.disable()
    try:
        with pytest.raises(transformers.Unfit, match="not this one"):
            transformers.maker(Circular)()
    finally:
        gc.enable()
    assert most == 1, "the one that is tried"


@pytest.mark.heavy
def test_a_model_too_large_however_shrunk_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers, "LARGEST", 10)
    with pytest.raises(transformers.Unfit, match="parameters even so"):
        transformers.maker(Net)()


def test_anything_but_such_a_class_is_its_own_factory() -> None:
    def make() -> None: ...

    assert transformers.maker(make) is make
    assert transformers.maker(torch.nn.Linear) is torch.nn.Linear


def test_a_configuration_makes_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is given: nothing is shrunk, and the class is that of ``architectures``, else of the most usual task."""
    library = types.ModuleType("transformers")
    vars(library).update(Net=Net, Other=type("Other", (Net,), {}))
    monkeypatch.setitem(sys.modules, "transformers", library)
    monkeypatch.setattr(transformers, "_classes", lambda: {"stub": "Net"})
    make = transformers.maker(Linear)
    assert make.notes == ()
    model = make(num_hidden_layers=2)
    assert type(model) is Net
    assert (model.config.hidden_size, model.config.num_hidden_layers) == (768, 2)
    assert not model.training
    assert make.notes == ("Net of the configuration Linear(num_hidden_layers=2)",)
    assert type(make(architectures="Other")) is library.Other
    with pytest.raises(transformers.Unfit, match="transformers has no class Nobody"):
        make(architectures="Nobody")
    monkeypatch.setattr(transformers, "_classes", dict)
    with pytest.raises(transformers.Unfit, match="no class for this configuration: name one with architectures="):
        make()


def test_a_run_takes_the_class_and_says_how_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of a package that the framework lists; 2 x rows x width x width for each layer."""
    monkeypatch.setattr(Net, "__module__", "transformers.models.stub")
    result = reconcile.run(torch=Net, counters=("flop_counter",)).result
    assert result.exit_code == 0
    [trace] = result.traces
    small = Linear(**shrunk(Linear(), RUNGS[0]))
    assert trace.totals["matmul"] == small.num_hidden_layers * 2 * example.TEXT * small.hidden_size**2
    assert [note for note in trace.notes if note.startswith("made from the smallest configuration")] != []


def test_on_meta_the_same_configuration_with_inputs_of_values() -> None:
    """The search reads values, which tensors on meta do not have."""

    class Reads(Net):
        def forward(self, input_ids: Any = None) -> Any:
            assert input_ids.sum().item() > 0
            return super().forward(input_ids)

    with torch.device("meta"):
        model, _, named = transformers.maker(Reads)()
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert named["input_ids"].device.type == "cpu"
