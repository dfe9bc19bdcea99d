"""Evaluates a formula on the sizes and parameters of a fresh model, and returns its ledger: an entry per term and layer.

A formula runs nothing.  Its total is the sum of its terms.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import compress
from typing import Any, NamedTuple

import torch

from ....core.records import FLOP, Entry, Ledger, Op, Sighting, Tensor
from ...pytorch.call_adapter import is_leaf
from ...pytorch.model import TorchModel, versions
from ...shared import nested
from ...shared.refusal import BeyondCounter
from .config_fields import FIELDS
from .configured.described_model import FACTS
from .configured.equal_layers import ATTRIBUTE
from .model_facts import read_configuration, read_module
from .table import FORMULAS, parts
from .terms import ALL_EXPERTS, ATTENTION, HEAD, LAYER, PARAMETER, WHOLE, Facts, Formula, Term, count_of

Place = tuple[str, Facts]
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
        places: Where terms are, by their kind: at every parameter, at the head, once, or, as those of ``LAYER``, in every layer;
            of equal layers, one of which ran for all, in the first.
    """

    device: str
    versions: dict[str, str]
    facts: Facts
    layers: list[str]
    places: dict[str, list[Place]]


def _read_model(model: TorchModel) -> Read:
    module = model.build(model.device)
    inputs = list(model.example(model.device))
    config, described = getattr(module, "config", None), getattr(module, FACTS, {})
    batch, steps = (described["B"], described["T"]) if "B" in described else size_of(inputs)
    facts = {**read_configuration(config), "elements": elements_of(module, model, inputs)}
    facts.update(B=batch, T=steps, tokens=batch * steps, training=bool(model.training), context=model.context or 0)
    facts.update(described)
    inside, weights, whole = read_module(module, config, facts)
    facts.update(whole, all_layers=len(inside))
    equal = getattr(module, ATTRIBUTE, None)
    if equal is not None:
        equal.group({own["layer"]: _counts_of_layer(facts, own) for own in inside})
        weights = [{**held, "copies": copies} for held in weights if (copies := equal.copies_of(held["owners"][0]))]
        inside = [{**own, "copies": copies} for own in inside if (copies := equal.copies_of(own["layer"]))]
    places: dict[str, list[Place]] = {
        PARAMETER: [(weight["owners"][0], {**facts, **weight}) for weight in weights],
        HEAD: [(facts["head"], facts)],
        WHOLE: [("", facts)],
        LAYER: [(own["layer"], {**facts, **own}) for own in inside],
    }
    return Read(model.device, versions(module), facts, [own["layer"] for own in inside], places)


def _counts_of_layer(facts: Facts, own: Facts) -> tuple[int, ...]:
    """What every formula that covers the model counts of a layer with these facts of its own."""
    counts: list[int] = []
    for name, formula in FORMULAS.items():
        with suppress(BeyondCounter):
            _applies(formula, facts, [own["layer"]])
            terms = [part for part in parts(name).values() if part[0].kind not in (PARAMETER, HEAD, WHOLE)]
            counts += [count_of(term, index, {**facts, **own}) for term, index in terms]
    return tuple(counts)


def capture(counter: str, model: TorchModel) -> Ledger:
    """The terms of a formula: of one forward pass, or of a training step. All formulas read one module: none runs it."""
    name = counter.partition(":")[2]
    formula = FORMULAS[name]
    if not model.training and not formula.forward:
        raise BeyondCounter("its source states a training step only: give --pass training")
    if model.context and not formula.cache and any(term.kind == ATTENTION for term in formula.terms):
        raise BeyondCounter("its source counts whole sequences and has no term for a cache: give --pass prefill")
    read = model.once("formulas", lambda: _read_model(model))
    _applies(formula, read.facts, read.layers)
    parted = list(parts(name).items())
    if all(term.kind != PARAMETER for term in formula.terms):
        nothing = Term(PARAMETER, lambda facts: 0, "", passes=(0, 0))  # it shows which products read a weight
        parted = [(f"{name}/{PARAMETER}", (nothing, None))] + parted
    sightings: list[Sighting] = []
    entries: dict[str, Entry] = {}
    for op, (term, index) in parted:
        for layer, own_facts in read.places.get(term.kind, read.places[LAYER]):
            passes = term.passes[1 if model.training else 0]
            if term.kind == PARAMETER and model.training and not own_facts["trainable"]:
                passes = min(passes, formula.frozen)
            attrs: Facts = dict(own_facts, passes=passes, layers=read.layers)
            entry = f"{layer}|{term.title}"
            record = Op(
                f"term{len(sightings)}", op, layer, (), (Tensor(tuple(own_facts.get("shape", ())), "float32"),), attrs
            )
            copies = own_facts.get("copies", 1)
            sightings.append(Sighting(record, entry, copies=copies))
            value = (1 if term.plain else 2) * count_of(term, index, attrs) * passes * copies
            if value:
                held = entries.get(entry, Entry(entry, layer, f"{name}/{term.title}", 0, 1))
                entries[entry] = held._replace(value=held.value + value)
    total = sum(entry.value for entry in entries.values())
    return Ledger(counter, "torch", FLOP, read.device, read.versions, total, tuple(entries.values()), tuple(sightings))


def _applies(formula: Formula, facts: Facts, layers: list[str]) -> None:
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
