"""The facts of a transformers model that formulas read: sizes from its configuration, its layers, and its parameters."""

from __future__ import annotations

import math
import re
from typing import Any

import torch

from .config_fields import FIELDS
from .flat_parameters import Held, is_flat, padded_elements, pieces, plain, views
from .terms import EXPERT

INDEX = "indexer"
"""The name of the module that chooses the keys of sparse attention, in every model of transformers that has one."""
STACKS = ("num_layers", "num_decoder_layers", "num_hidden_layers", "encoder_layers", "decoder_layers")
"""The names of the numbers of layers in a configuration with an encoder and a decoder."""
SWITCH = "switch_transformers"
"""Its router chooses one expert, and no field says so (arXiv:2101.03961 section 2.1)."""
OFFSET = 2
"""Rows that a table of positions has more than positions: OPT's starts at 2."""


def read_configuration(config: Any) -> dict[str, Any]:
    """The facts that the configuration states; what it leaves out has the default of its library."""
    facts: dict[str, Any] = {}
    for fact, names in FIELDS.items():
        values = [getattr(config, name, None) for name in names]
        stated = [value for value in values if isinstance(value, int)]
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
    if getattr(config, "intermediate_size_mlp", None) is not None:
        # Llama 4 states the width of an expert there, and none of the shared one.
        facts.update(fe=config.intermediate_size, ns=1)
    if getattr(config, "model_type", "") == SWITCH:
        facts["a"] = 1
    facts["stated"] = sorted(
        name for names in FIELDS.values() for name in names if getattr(config, name, None) is not None
    )
    kind = getattr(config, "model_type", "")
    facts.update(model_type=kind, whole=kind, config_class=type(config).__name__, moe=False)
    facts["windows"] = sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ()) or bool(
        getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    )
    window = getattr(config, "sliding_window", None)
    facts["sides"] = bool(getattr(config, "is_encoder_decoder", False))
    facts.update(sliding=window if isinstance(window, int) else 0, windowless=sliding and not isinstance(window, int))
    return facts


def layer_kinds(config: Any, number: int) -> tuple[list[int], list[bool]]:
    """The window of each layer, in keys, 0 for one that sees all of them; and whether it has linear attention in place of it."""
    stated = [str(kind) for kind in getattr(config, "layer_types", None) or ()]
    window = getattr(config, "sliding_window", None)
    keys = window if isinstance(window, int) and getattr(config, "use_sliding_window", True) else 0
    kinds = ((stated or ["sliding"] * number) + [""] * number)[:number]
    return [keys if "sliding" in kind else 0 for kind in kinds], ["linear" in kind for kind in kinds]


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


def parameters(module: torch.nn.Module, facts: dict[str, Any], layers: list[str]) -> list[dict[str, Any]]:
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
                parts = [Held([(owner, name)], shape, int(value.numel()))]
                if is_flat(value):
                    more = padded_elements(value)
                    parts = pieces(value) + [Held([(owner, name)], [more], more, padding=True)] * (more > 0)
                found[id(value)] = value, parts
            elif not is_flat(value):
                found[id(value)][1][0].owners.append((owner, name))
    return [_facts(paths, shapes, value, facts, layers, part) for value, parts in found.values() for part in parts]


def _facts(
    paths: dict[torch.nn.Module, str],
    shapes: dict[tuple[int, str], list[int]],
    value: Any,
    facts: dict[str, Any],
    layers: list[str],
    held: Held,
) -> dict[str, Any]:
    """One parameter, which ``value`` is, or is a part of."""
    owners, shape, numel, padding = held
    owner, name = owners[0]
    path, experts = paths[owner], facts.get("E", 0)
    table = any(_is_table(*each) for each in owners)
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
        "kinds": [_kind(each) for each, _ in owners],
        "embedding": table,
        "positions": table and bool(layers) and _positions(shape[0], facts),
        "inside": any(path == layer or path.startswith(layer + ".") for layer in layers),
        "block_norm": path.rpartition(".")[0] in layers and all(len(other) < 2 for other in beside),
        "expert": re.search(EXPERT, path + ".") is not None or (stacked and len(shape) == 3) or of_each,
        "routed": experts > 1 and "a" in facts and (in_list or of_each),
        **({"padding": True} if padding else {}),
        "E": experts,
        "a": facts.get("a", 0),
    }


def _is_table(owner: torch.nn.Module, name: str) -> bool:
    return isinstance(owner, torch.nn.Embedding) and name == "weight"


def _kind(owner: torch.nn.Module) -> str:
    """The name of a module's class; a class made of Linear is one."""
    return "Linear" if isinstance(owner, torch.nn.Linear) else type(owner).__name__


def _positions(rows: int, facts: dict[str, Any]) -> bool:
    """Whether a table with this number of rows is a table of positions."""
    return "positions" in facts and 0 <= rows - facts["positions"] <= OFFSET and rows != facts.get("V")


def parameters_of_layer(weights: list[dict[str, Any]], layer: str) -> list[dict[str, Any]]:
    """The parameters of a layer."""
    return [weight for weight in weights if weight["name"].startswith(layer + ".")]


def matrices(weights: list[dict[str, Any]], facts: dict[str, Any]) -> int:
    """How many matrices of h x f the feed-forward of a layer has: the weights of its experts, or those f or 2 f wide.

    Where attention is as wide as the feed-forward (GLM-4.5: 96 heads of 128, f = 12,288), a matrix of a module of attention is no
    part of it.
    """
    h, f, routed = (
        facts["h"],
        facts["f"],
        [w for w in weights if w["routed"] and len(w["shape"]) > 1 and not w["name"].endswith("bias")],
    )
    if routed:
        return sum(math.prod(weight["shape"]) for weight in routed) // (h * facts["fe"] * facts["E"])
    flat = [w for w in weights if len(w["shape"]) > 1 and h in w["shape"] and {f, 2 * f} & set(w["shape"][-2:])]
    if facts.get("n", 0) * facts.get("d", 0) in (f, 2 * f):
        flat = [w for w in flat if not any("att" in word for word in w["owners"][0].split("."))]
    return sum(math.prod(weight["shape"]) for weight in flat) // (h * f)


def head_path(weights: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The last module outside of the layers that holds a weight of V x h; '' if none does."""
    wide = [w for w in weights if not w["inside"] and w["shape"] == [facts.get("V"), facts.get("h")]]
    return str(wide[-1]["owners"][-1]) if wide else ""


def has_tied_table(weights: list[dict[str, Any]]) -> bool:
    """Whether a table of nn.Embedding is another module's weight as well."""
    return any(w["embedding"] and len(w["owners"]) > 1 for w in weights)


def find_unshared_parameter(weights: list[dict[str, Any]]) -> str:
    """The first parameter of several experts whose active number nothing states; '' if there is none."""
    held = [weight for weight in weights if weight["expert"] and not weight["routed"]]
    several = len({re.sub(EXPERT, "", w["name"]) for w in held}) < len(held) or any(len(w["shape"]) == 3 for w in held)
    return str(held[0]["name"]) if several else ""


def has_indexer(weights: list[dict[str, Any]]) -> bool:
    """Whether one of these parameters is an indexer's."""
    return any(INDEX in weight["name"].split(".") for weight in weights)


def other_matrix(weights: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The first matrix outside of the layers that is neither a table nor as large as the head; '' if there is none."""
    wide = [facts.get("V"), facts.get("h")]
    own = [w for w in weights if not (w["inside"] or w["embedding"]) and len(w["shape"]) > 1 and w["shape"] != wide]
    return str(own[0]["name"]) if own else ""
