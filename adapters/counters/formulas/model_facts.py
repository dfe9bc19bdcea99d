"""The facts of a transformers model that formulas read: sizes from its configuration, its layers, and its parameters."""

from __future__ import annotations

import math
import re
from typing import Any

import torch

from .config_fields import FIELDS
from .flat_parameters import Held, is_flat, pieces, plain, views
from .terms import EXPERT, INDEXER, Facts

STACKS = ("num_layers", "num_decoder_layers", "num_hidden_layers", "encoder_layers", "decoder_layers")
"""The names of the numbers of layers in a configuration with an encoder and a decoder."""
SWITCH = "switch_transformers"
"""Its router chooses one expert, and no field says so (arXiv:2101.03961 section 2.1)."""
OFFSET = 2
"""Rows that a table of positions has more than positions: OPT's and BART's start at 2."""


def read_configuration(config: Any) -> Facts:
    """The facts that the configuration states; what it leaves out has the default of its library."""
    found = {name: getattr(config, name, None) for names in FIELDS.values() for name in names}
    facts: Facts = {}
    for fact, names in FIELDS.items():
        stated = [found[name] for name in names if isinstance(found[name], int)]
        if stated:
            facts[fact] = stated[0]
    if "n" in facts and "h" in facts:
        facts.setdefault("k", facts["n"])
        if getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False):
            facts["k"] = 1  # Falcon states num_kv_heads beside it, and does not read it then
        facts.setdefault("d", facts["h"] // facts["n"])
        facts.setdefault("f", 4 * facts["h"])
    if "rkv" in facts and "drope" in facts:
        facts["dqk"] = facts["drope"] + facts.get("dnope", 0)
    elif "d" in facts:
        facts.update(dqk=facts["d"], dv=facts["d"])
    if "f" in facts:
        facts.setdefault("fe", facts["f"])
    if found["intermediate_size_mlp"] is not None:
        # Llama 4 states the width of an expert there, and none of the shared one.
        facts.update(fe=config.intermediate_size, ns=1)
    kind = getattr(config, "model_type", "")
    if kind == SWITCH:
        facts["a"] = 1
    window, is_used = getattr(config, "sliding_window", None), bool(getattr(config, "use_sliding_window", True))
    windows = "sliding_attention" in _kinds_of_layers(config) or bool(window and is_used)
    is_number = isinstance(window, int)
    return {
        **facts,
        "stated": sorted(name for name, value in found.items() if value is not None),
        "model_type": kind,
        "whole": kind,
        "config_class": type(config).__name__,
        "moe": False,
        "sides": bool(getattr(config, "is_encoder_decoder", False)),
        "windows": windows,
        "sliding": window if is_number and is_used else 0,
        "windowless": windows and not is_number,
    }


def _kinds_of_layers(config: Any) -> list[str]:
    return [str(kind) for kind in getattr(config, "layer_types", None) or ()]


def read_layers(config: Any, sliding: int, weights: list[Facts], layers: list[str]) -> list[Facts]:
    """The facts of each layer: its window, ``sliding`` keys, or 0 if it sees all of them; whether it has linear attention in
    place of attention, experts, and an indexer."""
    kinds = (_kinds_of_layers(config) or ["sliding"] * len(layers)) + [""] * len(layers)
    found = []
    for index, (layer, kind) in enumerate(zip(layers, kinds, strict=False)):
        own = parameters_of_layer(weights, layer)
        found.append(
            {
                "layer": layer,
                "index": index,
                "window": sliding if "sliding" in kind else 0,
                "linear": "linear" in kind,
                "moe": any(weight["routed"] for weight in own),
                "indexed": any(INDEXER in weight["name"].split(".") for weight in own),
            }
        )
    return found


def read_module(module: torch.nn.Module, config: Any, facts: Facts) -> tuple[list[Facts], list[Facts], Facts]:
    """The facts of each layer (none if they are not known), those of each parameter, and what the parameters say together.

    The latter: whether a table of nn.Embedding is ``tied``, another module's weight as well; the ``head``, which is the last
    module outside of the layers that holds a weight of V x h; ``beyond``, the first matrix there that is neither a table nor as
    large as the head; a parameter of experts that are ``unshared``; whether the ``last`` layer has experts; and ``m``, the
    matrices of a feed-forward. '' stands for none.
    """
    layers = stacks(module, config) if facts["sides"] else layer_paths(module, facts["L"]) if "L" in facts else []
    weights = parameters(module, facts, layers)
    inside = read_layers(config, facts["sliding"], weights, layers)
    wide = [facts.get("V"), facts.get("h")]
    outside = [w for w in weights if not w["inside"]]
    heads = [w["owners"][-1] for w in outside if w["shape"] == wide]
    others = [w["name"] for w in outside if not w["embedding"] and len(w["shape"]) > 1 and w["shape"] != wide]
    together = {
        "tied": any(w["embedding"] and len(w["owners"]) > 1 for w in weights),
        "head": heads[-1] if heads else "",
        "beyond": others[0] if others else "",
        "unshared": find_unshared_parameter(weights),
        "last": bool(inside) and inside[-1]["moe"],
    }
    if layers and {"h", "f"} <= set(facts):
        together["m"] = matrices(parameters_of_layer(weights, layers[0]), facts)
    return inside, weights, together


def layer_paths(module: torch.nn.Module, number: int) -> list[str]:
    """The paths of the layers: the members of the one nn.ModuleList or nn.Sequential of this length, at the least depth."""
    lists = [
        (plain(path).count("."), plain(path))
        for path, child in module.named_modules()
        if isinstance(child, (torch.nn.ModuleList, torch.nn.Sequential)) and len(child) == number
    ]
    least = [path for depth, path in lists if depth == min(lists)[0]]
    return [f"{least[0]}.{i}" for i in range(number)] if len(least) == 1 and least[0] else []


def stacks(module: torch.nn.Module, config: Any) -> list[str]:
    """The paths of the layers of an encoder and a decoder: the outermost lists of modules as long as the configuration says."""
    numbers = {getattr(config, name, None) for name in STACKS}
    lists = {
        plain(path): len(child)
        for path, child in module.named_modules()
        if isinstance(child, torch.nn.ModuleList) and len(child) in numbers
    }
    outer = [path for path in lists if not any(path.startswith(other + ".") for other in lists)]
    return [f"{path}.{i}" for path in outer for i in range(lists[path])]


def parameters(module: torch.nn.Module, facts: Facts, layers: list[str]) -> list[Facts]:
    """Every parameter once, under its first name, with the paths of all modules that hold it.

    ``numel`` is how many elements a program reads of it.  One that FullyShardedDataParallel has flattened is given by its own
    name and shape, with the elements that this rank has; what a flat tensor has beyond its parameters is ``padding``.
    """
    paths = {child: plain(path) for path, child in module.named_modules()}
    shapes = views(module)
    found: dict[int, tuple[Any, list[Held]]] = {}
    for owner in paths:
        for name, value in owner._parameters.items():
            if value is None:
                continue
            if id(value) not in found:
                shape = shapes.get((id(owner), name), [int(n) for n in value.shape])
                found[id(value)] = value, pieces(value) if is_flat(value) else [Held([], shape, int(value.numel()))]
            for part in found[id(value)][1]:
                if not (is_flat(value) and part.owners):
                    part.owners.append((owner, name))
    return [_facts(paths, shapes, value, facts, layers, part) for value, parts in found.values() for part in parts]


def _facts(
    paths: dict[torch.nn.Module, str],
    shapes: dict[tuple[int, str], list[int]],
    value: Any,
    facts: Facts,
    layers: list[str],
    held: Held,
) -> Facts:
    """One parameter, which ``value`` is, or is a part of."""
    owners, shape, numel, padding = held
    owner, name = owners[0]
    path, experts, positions = paths[owner], facts.get("E", 0), facts.get("positions", math.inf)
    table = any(isinstance(each, torch.nn.Embedding) and held_as == "weight" for each, held_as in owners)
    rows = shape[0] if shape else 0
    in_list = re.search(r"(^|\.)experts\.(expert_)?\d+(\.|$)", path) is not None
    stacked = path.rpartition(".")[2] == "experts"  # the matrices of all experts are one parameter, and their biases
    of_each = (len(shape) == 3 or (stacked and len(shape) == 2)) and shape[0] == experts > 1
    beside = [shapes.get((id(owner), n), p.shape) for n, p in owner._parameters.items() if p is not None]
    beside += [other for (held_by, _), other in shapes.items() if held_by == id(owner)]
    local = getattr(value, "_local_tensor", None)
    return {
        "name": (path + "." if path else "") + name,
        "shape": shape,
        "numel": numel,
        "part": shape if local is None else [int(n) for n in local.shape],
        "trainable": bool(value.requires_grad),
        "owners": [paths[each] for each, _ in owners],
        "kinds": ["Linear" if isinstance(each, torch.nn.Linear) else type(each).__name__ for each, _ in owners],
        "embedding": table,
        "positions": table and bool(layers) and 0 <= rows - positions <= OFFSET and rows != facts.get("V"),
        "inside": any(path == layer or path.startswith(layer + ".") for layer in layers),
        "block_norm": path.rpartition(".")[0] in layers and all(len(other) < 2 for other in beside),
        "expert": re.search(EXPERT, path + ".") is not None or (stacked and len(shape) == 3) or of_each,
        "routed": experts > 1 and "a" in facts and (in_list or of_each),
        **({"padding": True} if padding else {}),
        "E": experts,
        "a": facts.get("a", 0),
    }


def parameters_of_layer(weights: list[Facts], layer: str) -> list[Facts]:
    """The parameters of a layer."""
    return [weight for weight in weights if weight["name"].startswith(layer + ".")]


def matrices(weights: list[Facts], facts: Facts) -> int:
    """How many matrices of h x f the feed-forward of a layer has: the weights of its experts, or those f or 2 f wide.

    Where attention is as wide as the feed-forward (GLM-4.5: 96 heads of 128, f = 12,288), a matrix of a module of attention is no
    part of it.
    """
    h, f = facts["h"], facts["f"]
    routed = [w for w in weights if w["routed"] and len(w["shape"]) > 1 and not w["name"].endswith("bias")]
    if routed:
        return sum(math.prod(weight["shape"]) for weight in routed) // (h * facts["fe"] * facts["E"])
    flat = [w for w in weights if len(w["shape"]) > 1 and h in w["shape"] and {f, 2 * f} & set(w["shape"][-2:])]
    if facts.get("n", 0) * facts.get("d", 0) in (f, 2 * f):
        flat = [w for w in flat if not any("att" in word for word in w["owners"][0].split("."))]
    return sum(math.prod(weight["shape"]) for weight in flat) // (h * f)


def find_unshared_parameter(weights: list[Facts]) -> str:
    """The first parameter of several experts whose active number nothing states; '' if there is none."""
    held = [weight for weight in weights if weight["expert"] and not weight["routed"]]
    several = len({re.sub(EXPERT, "", w["name"]) for w in held}) < len(held) or any(len(w["shape"]) == 3 for w in held)
    return str(held[0]["name"]) if several else ""
