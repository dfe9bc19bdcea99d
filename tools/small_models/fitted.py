"""Example inputs for a model of diffusers: by the names of the parameters of ``forward``, sized by its layers' shape errors.

Where a configuration does not say how wide an input is, a layer does: it refuses the input, and the error says how many
numbers it takes.  Every size that is not known starts as a number of its own, so that the error says whose size it is.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .example import rand

ATTEMPTS = 16
"""Calls of a model with one form, each of which may set one size."""
PRIMES = (37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127)
TEXT, SIDE, FRAMES, STEPS = 19, 4, 5, 32
"""Tokens of a text, rows and columns of patches in a sequence, frames of a video, and steps of a recording's latents."""

Sizes = dict[str, int]
Maker = Callable[[Sizes], Any]
Form = dict[str, Maker]

MAIN = ("hidden_states", "sample", "latents", "x", "z", "mel", "latent_image_embeds", "controls_latents")
GIVEN = (
    "timestep", "encoder_hidden_states", "pooled_projections", "img_ids", "txt_ids", "img_shapes", "num_frames",
    "height", "width", "timesteps", "encoder_hidden_states_mask",
    "start_seconds", "end_seconds", "padding_mask", "text_hidden_states", "hidden_states_1",
    "global_hidden_states",
)  # fmt: skip
"""Parameters that are None by default and that are given if there are such: what they are left out for is not the usual call."""
CHANNELS = (
    "in_channels",
    "input_channels",
    "audio_channels",
    "num_channels",
    "io_channels",
    "num_mels",
    "in_visual_dim",
)
TAKEN = (
    re.compile(r"cannot be multiplied \(\d+x(?P<got>\d+) and (?P<want>\d+)x\d+\)"),
    re.compile(r"to have (?P<want>\d+) channels, but got (?P<got>\d+) channels"),
    re.compile(r"expected (?P<want>\d+) (audio )?channels, got (?P<got>\d+)"),
    re.compile(r"normalized_shape=\[(?P<want>\d+)\].*size\[.*?(?P<got>\d+)\]"),
)
"""PyTorch's errors for a layer that does not take an input, or several side by side."""
BESIDE = (
    re.compile(r"Expected size (?P<want>\d+) but got size (?P<got>\d+)"),
    re.compile(r"Expected size (?P<got>\d+) but got size (?P<want>\d+)"),
    re.compile(r"tensor a \((?P<want>\d+)\) must match the size of tensor b \((?P<got>\d+)\)"),
    re.compile(r"tensor a \((?P<got>\d+)\) must match the size of tensor b \((?P<want>\d+)\)"),
)
"""Its errors for two tensors that do not fit together."""
DIMENSIONS = (
    re.compile(r"not enough values to unpack \(expected (?P<want>\d+), got (?P<got>\d+)\)"),
    re.compile(r"too many values to unpack \(expected (?P<want>\d+)"),
    re.compile(r"or (?P<want>\d+)D \(batched\) input to conv"),
    re.compile(r"input\.dim\(\) = (?P<got>\d+) is not equal to len\(dims\) = (?P<want>\d+)"),
)
"""Its errors for an input with another number of dimensions."""
WHOLE, EACH, NUMBERED, FLAT = "whole", "each", "numbered", "flat"
"""Sizes that are 1 where points in time are whole numbers, where every frame has one, where masks are numbers, and where
positions are those of one text."""
TURNS = {"scalar types: Long": WHOLE, "'Bool'": NUMBERED, "expected 2, got 1": EACH, "(seq": FLAT}
"""Words of an error, and the values that are then made in the other way."""
MORE = re.compile(r"(labels|ids|mask|embeds?|hidden_states|latents|_size|style)(_t5)?$")
"""Parameters that are given if the error is about a None."""


def forms(configuration: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> Iterator[Form]:
    """Possible inputs, the most usual first: sequences, images, videos and recordings, then without optional parameters."""
    required = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    guided = any(value is True for name, value in configuration.items() if name.startswith("guidance"))
    given = (*GIVEN, *MAIN, *(("guidance",) if guided else ()))
    usual = [name for name in parameters if name in required or name in given]
    for names, shape in itertools.product(
        dict.fromkeys((tuple(usual), tuple(required))), _layouts(configuration, parameters)
    ):
        yield {name: _make_annotated(parameters[name], _maker(name, shape, configuration)) for name in names}


def dimensions(form: Form) -> int:
    """How many dimensions the main input of a form has; 0 if it has none."""
    value = next((make({}) for name, make in form.items() if name in MAIN), None)
    return value.dim() if isinstance(value, torch.Tensor) else 0


def stated_dimensions(message: str, given: int) -> int:
    """How many dimensions an error asks for, of an input that has ``given`` ones; 0 if it does not say."""
    for pattern in DIMENSIONS:
        match = pattern.search(message)
        if match is not None and int(match.groupdict().get("got") or given) == given:
            return int(match["want"])
    return 0


def fit(model: Any, form: Form, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Values of that form, with the sizes that the model's layers take as far as its errors tell."""
    sizes: Sizes = {}
    parameters = inspect.signature(model.forward).parameters
    form = dict(form)
    for _ in range(ATTEMPTS):
        values = {name: make(sizes) for name, make in form.items()}
        try:
            with torch.no_grad():
                model(**values)
        except ImportError:
            raise
        except Exception as error:
            if not (_resize_input(str(error), sizes) or _add_parameter(str(error), form, parameters, configuration)):
                break
        else:
            break
    return {name: make(sizes) for name, make in form.items()}


def _size(sizes: Sizes, name: str, start: int = 0) -> int:
    """The size of that name, which is one of its own if nothing is known about it."""
    return sizes.setdefault(name, start or next(prime for prime in PRIMES if prime not in sizes.values()))


def _resize_input(message: str, sizes: Sizes) -> bool:
    """Whether a size could be set to what a layer takes."""
    for text, turn in TURNS.items():
        if text in message and not sizes.get(turn):
            sizes[turn] = 1
            return True
    for pattern in (*TAKEN, *BESIDE):
        match = pattern.search(message)
        if match is None:
            continue
        want, got = int(match["want"]), int(match["got"])
        names = [
            name for name, size in sizes.items() if size and f"{name} set" not in sizes and name not in TURNS.values()
        ]
        names.sort(key=lambda name: sizes[name] not in PRIMES)
        for name in names:
            times = got // sizes[name] if got % sizes[name] == 0 else 0
            several = pattern in TAKEN and sizes[name] > 2
            if (times == 1 or (times and several)) and want % times == 0 and want != got:
                return _set_size(sizes, name, want // times)
        for name in names:
            rest = got - sizes[name]
            along = rest in sizes.values() if pattern in TAKEN else name.startswith("text")
            if along and 0 < want - rest != sizes[name] < got:
                return _set_size(sizes, name, want - rest)
    return False


def _set_size(sizes: Sizes, name: str, size: int) -> bool:
    """A size is set once: if one layer took it, no other layer's refusal changes it."""
    sizes[name] = size
    sizes[f"{name} set"] = 0
    return True


def _add_parameter(message: str, form: Form, parameters: Mapping[str, Any], configuration: Mapping[str, Any]) -> bool:
    """Whether the error names a parameter that was not given, or is about one that is None."""
    left = [name for name, p in parameters.items() if name not in form and p.default is None]
    named = [name for name in left if re.search(rf"\b{name}\b", message)]
    if not named and "None" in message and "callable" not in message:
        named = [name for name in left if MORE.search(name)]
    if named:
        main = next((make for given, make in form.items() if given in MAIN), next(iter(form.values()), _moment))
        form[named[0]] = _make_annotated(parameters[named[0]], _maker(named[0], main, configuration))
    return bool(named)


def _layouts(configuration: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Maker]:
    """The main input."""
    channels = next((configuration[name] for name in CHANNELS if isinstance(configuration.get(name), int)), 0)
    side = configuration.get("sample_size")
    side = side if isinstance(side, int) and side <= 64 else 32

    def make_layout(*shape: Any) -> Maker:
        return lambda sizes: rand(*(_size(sizes, "channels", channels) if size is None else size for size in shape))

    image, video = make_layout(1, None, side, side), make_layout(1, None, FRAMES, side, side)
    sequence, frames = make_layout(1, SIDE * SIDE, None), make_layout(1, FRAMES, None, side, side)
    sounds = [make_layout(1, None, STEPS), make_layout(1, None, 4096)]
    rest = [
        make_layout(1, None),
        make_layout(FRAMES, None, side, side),
        make_layout(1, None, 1, side, side),
        make_layout(1, None, 9, 64, 64),
    ]
    rest += [make_layout(1, 1, 4096), make_layout(1, FRAMES, side, side, None)]
    patch = configuration.get("patch_size")
    flat = {"img_ids", "img_shapes", "width", "position_ids"} & set(parameters)
    if flat or (patch is None and "hidden_states" in parameters):
        first = [sequence, image, video, frames]
    elif (isinstance(patch, (list, tuple)) and len(patch) == 3) or _in_time(configuration):
        first = [video, frames, image, sequence]
    else:
        first = [image, video, sequence, frames]
    return [*first, *sounds, *rest]


def _in_time(configuration: Mapping[str, Any]) -> bool:
    return any(re.search(r"patch_size_t|tempo|temper|frames|motion", name) for name in configuration) or any(
        "3D" in str(value) or "Temporal" in str(value) for name, value in configuration.items() if "block_type" in name
    )


def _moment(sizes: Sizes) -> Any:
    shape = (1, FRAMES) if sizes.get(EACH) else (1,)
    return torch.ones(shape, dtype=torch.long if sizes.get(WHOLE) else torch.float32)


def _positions(sizes: Sizes) -> Any:
    positions = torch.zeros(1, SIDE * SIDE + _size(sizes, "text", TEXT), 3, dtype=torch.long)
    return positions[0] if sizes.get(FLAT) else positions


def _maker(name: str, main: Maker, configuration: Mapping[str, Any]) -> Maker:
    """A value for a parameter, by its name."""
    axes = next((len(v) for k, v in configuration.items() if "axes" in k and isinstance(v, (list, tuple))), 3)
    if name in MAIN:
        return main
    if name in NAMED:
        return NAMED[name]
    if name in ("img_ids", "txt_ids"):
        return lambda sizes: torch.zeros(SIDE * SIDE if name == "img_ids" else _size(sizes, "text", TEXT), axes)
    if name == "position_ids":
        return _positions
    if re.search(r"timestep|^t$|_time$|sigma|guidance|seconds|fps", name):
        return _moment
    if re.search(r"_size$|coords$", name):
        return lambda _sizes: torch.full((1, 6 if "meta" in name else 2), 64.0)
    if name == "condition_mask":
        return lambda sizes: _like(main(sizes), 1)
    if name == "padding_mask":
        return lambda sizes: torch.ones(1, 1, *main(sizes).shape[-2:])
    stages = [value for key, value in configuration.items() if key.endswith("conditioning_embedding_out_channels")]
    if name == "controlnet_cond" and stages:
        return lambda sizes: _enlarge_latent(main(sizes), _size(sizes, name), 2 ** (len(stages[0]) - 1))
    if name == "style" or name.endswith("_lens"):
        return lambda sizes: torch.full((1,), 0 if name == "style" else _size(sizes, "text", TEXT))
    if re.search(r"mask(_t5|_1|_2)?$", name):
        whose = re.sub(r"_?(attention_|embedding_)?mask", "", name)
        return lambda sizes: torch.ones(1, _text(sizes, whose), dtype=torch.long if sizes.get(NUMBERED) else torch.bool)
    if re.search(r"input_ids$|token_id$|labels$", name):
        return lambda sizes: torch.ones(*((1,) if "label" in name else (1, _text(sizes, name))), dtype=torch.long)
    if re.search(r"pooled|proj_embedding|global|image_embeds|time_ids$", name):
        return lambda sizes: rand(*((1, 1) if "global" in name else (1,)), _size(sizes, name))
    if re.search(r"latents$|_cond$", name):
        return lambda sizes: _like(main(sizes), _size(sizes, name))
    return lambda sizes: rand(1, _text(sizes, name), _size(sizes, name))


def _make_annotated(parameter: inspect.Parameter, make: Maker) -> Maker:
    """The value of a parameter whose annotation takes no tensor but a number, a choice, or a list of tensors."""
    annotation = parameter.annotation
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if parameter.name not in (*MAIN, *NAMED) and text in NUMBERS:
        return lambda _sizes: NUMBERS[text]
    if parameter.name not in (*MAIN, *NAMED) and LIST.match(text):
        return lambda sizes: [make(sizes)]
    return make


def _text(sizes: Sizes, name: str) -> int:
    """Tokens of a text: several inputs are about the same one."""
    other = re.search(r"(_t5|_1|_2|audio|lyric)", name)
    return _size(sizes, f"text{other[0]}", TEXT + 4 * len(other[0])) if other else _size(sizes, "text", TEXT)


def _like(main: Any, channels: int) -> Any:
    """Beside the main input: as large, with channels of its own."""
    axis = 2 if main.dim() == 3 else 1
    with contextlib.suppress(IndexError):
        return rand(*(channels if i == axis else size for i, size in enumerate(main.shape)))
    return main


def _enlarge_latent(main: Any, channels: int, times: int) -> Any:
    """The picture that a latent image is made from: ``times`` times as high and wide, with ``channels`` channels."""
    if main.dim() < 4:
        return main
    batch, _, *frames, height, width = main.shape
    return rand(batch, channels, *frames, times * height, times * width)


NAMED: Mapping[str, Maker] = {
    "height": lambda _sizes: SIDE,
    "width": lambda _sizes: SIDE,
    "num_frames": lambda _sizes: 1,
    "img_shapes": lambda _sizes: [[(1, SIDE, SIDE)]],
    "conditioning_scale": lambda _sizes: 1.0,
}
"""Values of parameters that are no tensors."""
NUMBERS: Mapping[str, Any] = {"int": 1, "float": 1.0, "bool": False}
LIST = re.compile(r"(typing\.)?list\[torch\.\w*tensor\]$", re.IGNORECASE)
"""Annotations of parameters that are no tensors."""
