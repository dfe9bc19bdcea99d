"""Example inputs for a model that is made from a configuration, by the names of the parameters of its ``forward``.

For every set of inputs that could be meant, the most complete comes first; the first that the model's own code takes is used.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from reconcile.products.sweep.small_models.transformers import is_configuration

from . import mend
from .shrink import is_integer

TEXT, TARGET, IMAGE, SOUND, SPECTRUM = 16, 8, 64, 7680, 128
"""Tokens of a text and of a decoder's text, the side of an image, samples of a recording, and steps of a spectrum.

A recording has 2^9 x 3 x 5 samples: codecs take multiples of the product of their strides.
"""
MOST = 30
"""Sets of inputs that are tried with one configuration."""
MORE = 8
"""Fuller sets that are tried where an error says what is missing."""
MAINS = (
    "input_ids", "pixel_values", "pixel_values_videos", "input_features", "input_values", "past_values", "inputs",
    "inputs_embeds", "hidden_states",
)  # fmt: skip
VISION = ("vision_config", "backbone_config", "encoder", "image_config", "vit_config")


def read_attribute(configuration: Any, *names: str, default: Any = None) -> Any:
    """The first of these attributes that a configuration or one of its parts has: a number, or a sequence of numbers."""
    for name in names:
        value = getattr(configuration, name, None)
        if (isinstance(value, (int, float)) and not isinstance(value, bool)) or (
            isinstance(value, (list, tuple)) and value
        ):
            return value
    for part in vars(configuration).values():
        if is_configuration(part) and (value := read_attribute(part, *names)) is not None:
            return value
    return default


def number(configuration: Any, *names: str, default: int) -> int:
    """As ``read_attribute``, and the first of a sequence."""
    value = read_attribute(configuration, *names, default=default)
    value = value[0] if isinstance(value, (list, tuple)) else value
    return int(value) if is_integer(value) else default


def part(configuration: Any, *names: str) -> Any:
    """The first of these parts of a configuration; itself if it has none."""
    return next(
        (p for p in (getattr(configuration, name, None) for name in names) if is_configuration(p)), configuration
    )


def rand(*shape: int) -> Any:
    """Numbers between 0 and 1, the same ones every time."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


def tokens(configuration: Any, length: int) -> Any:
    """A text of that length: tokens with no meaning of their own, as far as names tell."""
    text = configuration
    with contextlib.suppress(Exception):
        text = configuration.get_text_config()
    size = number(text, "vocab_size", "n_vocab", default=number(configuration, "vocab_size", default=100))
    top = max(2, min(size, 60))
    row = (torch.arange(length) % max(1, top - 8) + min(7, top - 1)).view(1, length) % max(1, size)
    if (question := number(text, "question_token_id", default=-1)) >= 0:
        row[:, 1] = question
    return row


def image(configuration: Any, frames: int = 0, side: int = 0) -> Any:
    """An image, or a video of ``frames`` frames."""
    vision = part(configuration, *VISION)
    channels = number(vision, "num_channels", "in_channels", "in_chans", default=3)
    size = side or read_attribute(vision, "image_size", "img_size", "input_size", "resolution", default=IMAGE)
    height, width = (size[0], size[-1]) if isinstance(size, (list, tuple)) else (size, size)
    shape = (channels if channels <= 16 else 3, int(height), int(width))
    return rand(1, *((frames,) if frames else ()), *shape)


def patches(configuration: Any) -> tuple[Any, Any]:
    """The patches of an image, one row each, and how many they are in time, height and width."""
    vision = part(configuration, "vision_config")
    patch = number(vision, "patch_size", default=14)
    channels = number(vision, "in_channels", "num_channels", "in_chans", default=3)
    depth = number(vision, "temporal_patch_size", default=1)
    side = 2 * (number(vision, "spatial_merge_size", "pooling_kernel_size", default=2) or 2)
    return rand(side * side, channels * depth * patch * patch), torch.tensor([[1, side, side]])


def _images(c: Any) -> list[Any]:
    frames = number(c, "num_frames", default=8) if read_attribute(c, "num_frames", "tubelet_size") else 0
    videos = [image(c, frames)] if frames else []
    return [
        *videos,
        image(c),
        image(c, side=64),
        image(c, 1),
        image(c, 2),
        image(c, side=224),
        patches(c)[0],
        patches(c)[0][None],
    ]


def _videos(c: Any) -> list[Any]:
    return [image(c, number(c, "frames_per_clip", "num_frames", default=8)), image(c, 2)]


def _spectra(c: Any) -> list[Any]:
    names = (
        "feature_projection_input_dim", "num_mel_bins", "n_mels", "input_feat_per_channel", "feature_size", "input_dim",
        "mel_bins", "audio_num_mel_bins", "num_mel_channels", "mel_dim", "spectrogram_bins",
    )  # fmt: skip
    bins = number(c, *names, default=80)
    steps = 2 * number(c, "max_source_positions", default=SPECTRUM // 2)
    shapes = ((1, bins, steps), (1, bins, SPECTRUM), (1, SPECTRUM, bins), (1, 1, SPECTRUM, bins), (1, 1, 1024, bins))
    wide = number(c, "input_size", default=bins)  # several steps at once
    return [rand(*shape) for shape in (*(((1, SPECTRUM, wide),) if wide != bins else ()), *shapes)]


def _sounds(c: Any) -> list[Any]:
    bins = number(c, "num_mel_bins", default=128)
    return [rand(*shape) for shape in ((1, SOUND), (1, 1, SOUND), (1, 1024, bins), (1, 1, 1024, 128), (1, 64, bins))]


def _past(c: Any) -> int:
    lags = getattr(c, "lags_sequence", None) or [0]
    return number(c, "context_length", "history_length", "prediction_length", default=32) + int(max(lags))


def _series(c: Any) -> list[Any]:
    channels, past = number(c, "num_input_channels", "input_size", default=1), _past(c)
    return [rand(1, past, channels), rand(1, past)]


def _widths(c: Any) -> list[int]:
    return [number(c, "hidden_size", "d_model", "embed_dim", "dim", default=64)]


def _hidden_shape(c: Any) -> list[Any]:
    [width] = _widths(c)
    values = [rand(1, TEXT, width), patches(c)[0], rand(TEXT, width)]
    channels = number(c, "channels", "in_channels", "num_channels", default=0)
    return [*values, *([rand(1, channels, SOUND)] if channels else []), rand(1, width, TEXT)]


def _steps(c: Any) -> list[int]:
    return [SPECTRUM, 2 * number(c, "max_source_positions", default=SPECTRUM // 2), TEXT]


def _positions(grid: Any) -> Any:
    """Where every patch of an image is: its column and its row."""
    _, height, width = grid[0].tolist()
    return torch.stack([torch.arange(height * width) % width, torch.arange(height * width) // width], -1)[None]


CANDIDATES: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "input_ids": lambda c: [tokens(c, TEXT)],
    "decoder_input_ids": lambda c: [tokens(c, TARGET)],
    "pixel_values": _images,
    "images": _images,
    "prompt_pixel_values": _images,
    "prompt_masks": _images,
    "state": lambda c: [rand(1, number(c, "max_state_dim", default=32))],
    "task_inputs": lambda c: [tokens(c, number(c, "task_seq_len", default=TEXT))],
    "pixel_values_videos": _videos,
    "input_features": _spectra,
    "audio_features": _spectra,
    "audio_mel": _spectra,
    "audio_mel_mask": lambda _c: [torch.zeros(1, SPECTRUM, dtype=torch.bool)],
    "spectrogram": _spectra,
    "input_spectrogram": _spectra,
    "input_values": _sounds,
    "audio_values": _sounds,
    "waveform": _sounds,
    "bbox": lambda _c: [torch.zeros(1, TEXT, 4, dtype=torch.long)],
    "inputs": lambda c: [rand(1, 20, number(c, "d_model", default=32))],
    "past_values": _series,
    "past_time_features": lambda c: [rand(1, _past(c), number(c, "num_time_features", default=0))],
    "past_observed_mask": lambda c: [torch.ones(1, _past(c))],
    "image_grid_thw": lambda c: [patches(c)[1]],
    "grid_thw": lambda c: [patches(c)[1]],
    "merge_sizes": lambda c: [torch.tensor([number(c, "spatial_merge_size", default=2)])],
    "spatial_shapes": lambda c: [patches(c)[1][:, 1:]],
    "target_sizes": lambda c: [patches(c)[1][:, 1:]],
    "pixel_position_ids": lambda c: [_positions(patches(c)[1])],
    "pixel_attention_mask": lambda c: [torch.ones(1, len(patches(c)[0]), dtype=torch.long)],
    "input_features_mask": lambda c: [torch.ones(1, steps, dtype=torch.long) for steps in _steps(c)],
    "qformer_input_ids": lambda c: [tokens(part(c, "qformer_config"), TEXT)],
    "qformer_attention_mask": lambda _c: [torch.ones(1, TEXT, dtype=torch.long)],
    "encoder_hidden_states": lambda c: [
        rand(1, TEXT, width) for width in (number(c, "encoder_hidden_size", default=64), *_widths(c))
    ],
    "inputs_embeds": _hidden_shape,
    "hidden_states": _hidden_shape,
    "noise_embeds": _hidden_shape,
    "context_hidden_states": _hidden_shape,
    "query_embeds": _hidden_shape,
    "latents": lambda c: [*_hidden_shape(c), *(value.transpose(-1, -2) for value in _hidden_shape(c))],
}
"""What a parameter of ``forward`` can be given, by its name."""


def examples(model: Any) -> Iterator[dict[str, Any]]:
    """Named arguments for one call, the most complete first."""
    configuration = model.config
    parameters = inspect.signature(model.forward).parameters
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    required = [name for name, p in parameters.items() if p.default is p.empty and p.kind in kinds]
    beside = {}
    if "decoder_input_ids" in parameters and getattr(configuration, "is_encoder_decoder", False):
        beside["decoder_input_ids"] = tokens(configuration, TARGET)
    if "bbox" in parameters:
        beside["bbox"] = torch.zeros(1, TEXT, 4, dtype=torch.long)
    if {"input_ids", "pixel_values"} <= set(parameters):
        for given in _text_with_image(model, parameters):
            yield {**beside, **given}
    for names in _sets(getattr(model, "main_input_name", ""), parameters, required):
        options = [CANDIDATES[name](configuration) for name in names]
        for values in itertools.islice(itertools.product(*options), 12):
            given = dict(zip(names, values, strict=True))
            yield from ({**beside, **given}, given) if beside else (given,)
    if not set(CANDIDATES) & set(parameters):
        with contextlib.suppress(Exception):
            yield dict(model.dummy_inputs)


def complete_inputs(model: Any, inputs: Mapping[str, Any], error: Exception) -> Iterator[dict[str, Any]]:
    """The same arguments, and those besides that the model's own code asks for in an error."""
    parameters = inspect.signature(model.forward).parameters
    names = [n for n in mend.missing_parameters(error, parameters) if n in CANDIDATES and inputs.get(n) is None]
    for values in itertools.product(*(CANDIDATES[name](model.config) for name in names)) if names else ():
        yield {**inputs, **dict(zip(names, values, strict=True))}
    for name, value in inputs.items():
        if getattr(value, "is_floating_point", bool)():
            yield from (
                {**inputs, name: wanted} for wanted in _wanted_values(str(error), tuple(value.shape), model.config)
            )


def _wanted_values(error: str, shape: Sequence[int], configuration: Any) -> Iterator[Any]:
    """Values of the width that a layer wants, as its error says: as many rows as before, or as an image has patches."""
    rows = patches(configuration)[0].shape[0]
    for width in map(int, re.findall(r"\(\d+x\d+ and (\d+)x\d+\)", error)):
        yield from (rand(*rest, width) for rest in (shape[:-1], (rows,), (1, rows)))
    for channels in re.findall(r"to have (\d+) channels, but got", error):
        yield rand(1, int(channels), TEXT)


def _sets(
    main: str | Sequence[str], parameters: Mapping[str, Any], required: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    texts = [("input_ids", other) for other in ("input_features", "input_values", "pixel_values")]
    seen = set()
    mains = (main,) if isinstance(main, str) else tuple(main)
    for names in (*texts, mains, ("input_ids",), tuple(required), *((name,) for name in MAINS)):
        whole = tuple(dict.fromkeys([*names, *(name for name in required if name in CANDIDATES)]))
        if whole and whole not in seen and all(name in parameters and name in CANDIDATES for name in whole):
            seen.add(whole)
            yield whole


def _text_with_image(model: Any, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A text with an image in it, which takes as many tokens as the model's own code makes of the image."""
    configuration = model.config
    token = read_attribute(configuration, "image_token_id", "image_token_index", "media_placeholder_token_id")
    features = next(filter(None, (getattr(module, "get_image_features", None) for module in model.modules())), None)
    if features is None and token is None:
        return
    images = [{"pixel_values": value} for value in _images(configuration)]
    if "image_grid_thw" in parameters:
        rows, grid = patches(configuration)
        images.insert(0, {"pixel_values": rows, "image_grid_thw": grid})
    for given in images:
        text = tokens(configuration, TARGET)
        if features is not None and token is not None:
            try:
                with torch.no_grad():
                    placeholders = torch.full((1, _rows(features(**given))), int(token))
            except Exception:  # an image of another form is tried next
                continue
            text = torch.cat([text[:, :4], placeholders, text[:, 4:]], 1)
            if "mm_token_type_ids" in parameters:
                given["mm_token_type_ids"] = (text == int(token)).long()
        yield {"input_ids": text, **given}


def _rows(features: Any) -> int:
    for name in ("pooler_output", "last_hidden_state", "image_embeds"):
        if getattr(features, name, None) is not None:
            features = getattr(features, name)
            break
    if isinstance(features, (list, tuple)):
        return sum(map(_rows, features))
    return int(features.numel() // features.shape[-1])
