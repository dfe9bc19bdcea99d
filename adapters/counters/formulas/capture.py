"""Evaluates a formula on the sizes and parameters of a fresh model, and returns its ledger: an entry per term and layer.

A formula runs nothing.  Its total is the sum of its terms.
"""

from __future__ import annotations

from itertools import compress
from typing import Any, NamedTuple

import torch

from ....core.records import FLOP, Entry, Ledger, Op, Sighting, Tensor
from ...pytorch.call_adapter import is_leaf
from ...pytorch.model import TorchModel, versions
from ...shared import nested
from ...shared.refusal import BeyondCounter
from .. import make_ledger
from .config_fields import FIELDS
from .configured.image_models import ImageModel, ImageTextModel
from .configured.packed_documents import WHOLE_TYPE, Documents
from .model_facts import (
    find_unshared_parameter,
    has_indexer,
    has_tied_table,
    head_path,
    layer_kinds,
    layer_paths,
    matrices,
    other_matrix,
    parameters,
    parameters_of_layer,
    read_configuration,
    stacks,
)
from .table import FORMULAS, parts
from .terms import ALL_EXPERTS, ATTENTION, HEAD, PARAMETER, WHOLE, Formula, Term, count_of

Place = tuple[str, dict[str, Any]]
"""Where a term is, and its facts there."""


def size_of(inputs: list[Any]) -> tuple[int, int]:
    """B and T: the dimensions of the first tensor, but the last of a floating-point one; B is 1 where there is one dimension.
    Raises BeyondCounter where there is no tensor, and for more than two dimensions."""
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    if not tensors or not tensors[0].dim():
        raise BeyondCounter(
            "a formula reads the number of tokens from the first input, and the model takes no tensor there"
        )
    shape = tensors[0].shape if not tensors[0].is_floating_point() else tensors[0].shape[:-1]
    if len(shape) > 2:
        raise BeyondCounter("a formula counts per token: the first input has more than two dimensions of positions")
    sizes = ([1, 1] + [int(n) for n in shape])[-2:]
    return sizes[0], sizes[1]


def elements_of(module: torch.nn.Module, model: TorchModel, inputs: list[torch.Tensor]) -> int:
    """How many elements the main input has, as a model of transformers names it: of images their pixels. 0 for a model that
    names none and takes no token ids."""
    names = (getattr(child, "main_input_name", None) for child in module.modules())
    name = next((name for name in names if isinstance(name, str)), "")
    arguments: nested.Arguments = getattr(model, "arguments", ((), {}))
    main = arguments[1].get(name)
    passed = compress(inputs, (leaf is main for leaf in nested.leaves(arguments, is_leaf)))
    tensor = next(passed, next(iter(inputs), None))
    if tensor is None or (not name and tensor.is_floating_point()):
        return 0
    return int(tensor.numel())


class Read(NamedTuple):
    """What formulas read of a module: equal for all formulas of one model, and no tensor is kept.

    Attributes:
        device: The device on which the model was made.
        versions: Versions by package, those that a trace of the model has.
        facts: What the configuration, the inputs and the weights say, by the letters and words that formulas use.
        layers: The paths of the layers in order, those of an encoder and a decoder one after another; empty if they are not
            known.
        weights: Every parameter once, with its facts (model_facts.py, ``parameters``).
        windows: The window of each layer, in keys; 0 for one that sees all of them.
        linear: For each layer, whether it has linear attention in place of attention.
        head: The path of the last module outside of the layers that holds a weight of V x h; '' if none does.
    """

    device: str
    versions: dict[str, str]
    facts: dict[str, Any]
    layers: list[str]
    weights: list[dict[str, Any]]
    windows: list[int]
    linear: list[bool]
    head: str


def _read_model(model: TorchModel) -> Read:
    module = model.build(model.device)
    sizes = (module.images, module.tokens) if isinstance(module, ImageModel) else None
    inputs = list(model.example(model.device))
    batch, steps = sizes or size_of(inputs)
    config = getattr(module, "config", None)
    facts = read_configuration(config)
    facts["whole"] = getattr(module, WHOLE_TYPE, facts["whole"])
    facts["elements"] = elements_of(module, model, inputs)
    if isinstance(module, Documents):
        facts["lengths"] = list(module.lengths)
    if isinstance(module, ImageModel):
        facts.update(pictures=True, text=module.text)
    if isinstance(module, ImageTextModel):
        layout = module.layout
        facts.update(vision=list(module.vision), pixels=list(layout.pixels))
        facts.update(images=layout.images, taken=layout.images * layout.tokens)
    facts.update(B=batch, T=steps, tokens=batch * steps, training=bool(model.training), context=model.context or 0)
    facts["evenly"] = any(getattr(child, "evenly", False) for child in module.modules())
    layers = stacks(module, config) if facts["sides"] else layer_paths(module, facts["L"]) if "L" in facts else []
    weights = parameters(module, facts, layers)
    last = parameters_of_layer(weights, layers[-1]) if layers else []
    facts["unshared"] = find_unshared_parameter(weights)
    facts.update(
        tied=has_tied_table(weights), beyond=other_matrix(weights, facts), last=any(weight["routed"] for weight in last)
    )
    if layers and {"h", "f"} <= set(facts):
        facts["m"] = matrices(parameters_of_layer(weights, layers[0]), dict(facts))
    windows, linear = layer_kinds(config, len(layers))
    return Read(model.device, versions(module), facts, layers, weights, windows, linear, head_path(weights, facts))


def capture(counter: str, model: TorchModel) -> Ledger:
    """The terms of a formula: of one forward pass, or of a training step. All formulas read one module: none runs it."""
    name = counter.partition(":")[2]
    formula = FORMULAS[name]
    if not model.training and not formula.forward:
        raise BeyondCounter("its source states a training step only: give --pass training")
    if model.context and not formula.cache and any(term.kind == ATTENTION for term in formula.terms):
        raise BeyondCounter("its source counts whole sequences and has no term for a cache: give --pass prefill")
    read = model.once("formulas", lambda: _read_model(model))
    facts, layers, weights = dict(read.facts), read.layers, read.weights
    _applies(formula, facts, layers)
    places: dict[str, list[Place]] = {
        PARAMETER: [(weight["owners"][0], dict(facts, **weight)) for weight in weights],
        HEAD: [(read.head, facts)],
        WHOLE: [("", facts)],
    }
    inside: list[Place] = []
    for i, layer in enumerate(layers):
        mine = parameters_of_layer(weights, layer)
        moe, chooses = any(weight["routed"] for weight in mine), has_indexer(mine)
        own_facts = dict(facts, layer=layer, index=i, window=read.windows[i], linear=read.linear[i])
        inside.append((layer, dict(own_facts, moe=moe, indexed=chooses)))
    parted = list(parts(name).items())
    if PARAMETER not in [
        term.kind for term in formula.terms
    ]:  # it counts nothing, and shows which products read a weight
        nothing = Term(PARAMETER, lambda facts: 0, "", "", passes=(0, 0))
        parted = [(f"{name}/{PARAMETER}", (nothing, None))] + parted
    sightings: list[Sighting] = []
    entries: dict[str, Entry] = {}
    for op, (term, index) in parted:
        for layer, own_facts in places.get(term.kind, inside):
            passes = term.passes[1 if model.training else 0]
            if term.kind == PARAMETER and model.training and not own_facts["trainable"]:
                passes = min(passes, formula.frozen)
            attrs: dict[str, Any] = dict(own_facts, passes=passes, layers=layers)
            entry = f"{layer}|{term.title}"
            record = Op(
                f"term{len(sightings)}", op, layer, (), (Tensor(tuple(own_facts.get("shape", ())), "float32"),), attrs
            )
            sightings.append(Sighting(record, entry))
            value = (1 if term.plain else 2) * count_of(term, index, attrs) * passes
            if value:
                held = entries.get(entry, Entry(entry, layer, f"{name}/{term.title}", 0, 1))
                entries[entry] = held._replace(value=held.value + value)
    total = sum(entry.value for entry in entries.values())
    return make_ledger(counter, "torch", FLOP, read.device, read.versions, total, entries.values(), sightings)


def _applies(formula: Formula, facts: dict[str, Any], layers: list[str]) -> None:
    """Refuse, in a sentence, a configuration that the formula cannot read or does not cover."""
    if formula.reads and facts["sides"]:
        raise BeyondCounter(
            "its source counts one stack of layers on one sequence, and this model has an encoder and a decoder"
        )
    lacking = [fact for fact in formula.reads if fact not in facts]
    if lacking or (formula.reads and not layers):
        fields = [FIELDS[fact][0] for fact in lacking if fact in FIELDS]
        why = (
            f"the model has no config with {', '.join(fields)}"
            if fields
            else "no list of modules is as long as its config says"
        )
        raise BeyondCounter(f"this formula reads a transformer's configuration, and {why}")
    if facts["unshared"] and not any(ALL_EXPERTS in term.assumes for term in formula.terms):
        raise BeyondCounter(
            f"its source counts the active experts, and no configuration of the model says how many a token meets of those with "
            f"{facts['unshared']} (num_experts and num_experts_per_tok)"
        )
    refusal = formula.refuses(facts)
    if refusal:
        raise BeyondCounter(refusal)
