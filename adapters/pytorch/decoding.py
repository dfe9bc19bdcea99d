"""A call of a language model with a cache: the prompt that fills the cache, or one more token of each sequence.

A model takes part if its ``forward`` takes ``use_cache`` and a cache (``past_key_values`` or ``cache_params``), and returns the
cache under the same name: the convention of transformers.  The cache of a decoding step is made by the model itself, before
anything is counted.  Python 3.6.
"""

import inspect
from typing import Any, Callable, Dict, List, Mapping, Tuple

import torch

from ...model_zoo.pair import Input
from ..shared import nested
from ..shared.refusal import FactoryError

CACHES = ("past_key_values", "cache_params")
TOKENS = "input_ids"
MASK = "attention_mask"
SWITCH = "use_cache"
ENCODED = ("decoder_input_ids", "decoder_inputs_embeds")
"""Arguments of a model whose decoder reads the outputs of an encoder."""


def note(context):
    # type: (int) -> str
    """The call, for the report."""
    if not context:
        return "prefill: one call with use_cache=True, which reads the whole prompt and fills an empty cache"
    return (
        "a decoding step with %s: one more token of each sequence; the model filled the cache before anything was counted"
        % Words(context)
    )


class Words(object):
    """The cache of a decoding step, in words."""

    def __init__(self, context):
        # type: (int) -> None
        self.text = "a cache of 1 token" if context == 1 else "a cache of {:,} tokens".format(context)

    def __repr__(self):
        # type: () -> str
        return self.text


def worded(given, context):
    # type: (nested.Arguments, int) -> nested.Arguments
    """The arguments of a decoding step with the cache in words."""
    positional, named = given
    return positional, {name: Words(context) if name in CACHES else value for name, value in named.items()}


def arguments(module, given, context, filled):
    # type: (torch.nn.Module, nested.Arguments, int, Callable[[nested.Arguments], nested.Arguments]) -> nested.Arguments
    """The arguments of the call, made of those ``given`` for a call with the prompt; ``filled`` makes tensors of leaves.

    Raises FactoryError for a model without a cache, and for arguments that say nothing about the next token.
    """
    parameters = _parameters(module)
    name = next((name for name in CACHES if name in parameters and SWITCH in parameters), "")
    if not name:
        raise FactoryError(
            "%s has no cache to fill or to read: --pass prefill and --pass decode need a model whose forward takes %s and %s, "
            "as the language models of transformers do." % (type(module).__name__, SWITCH, " or ".join(CACHES))
        )
    encoded = [other for other in ENCODED if other in parameters]
    if encoded:
        raise FactoryError(
            "%s has an encoder (its forward takes %s): --pass prefill and --pass decode count models that are a decoder alone."
            % (type(module).__name__, encoded[0])
        )
    positional, named = given
    if not context:
        return positional, dict(named, **{SWITCH: True})
    ids, mask = _tokens(module, positional, named, parameters)
    batch = int(ids.shape[0])
    prompt = _named(ids, batch, context, mask, context)
    with torch.no_grad():
        outputs = module(**dict(filled(((), prompt))[1], **{SWITCH: True}))
    cache = outputs.get(name) if isinstance(outputs, Mapping) else getattr(outputs, name, None)
    if cache is None:
        raise FactoryError(
            "%s returned no %s for a call with %s=True: a decoding step needs the cache that the model filled."
            % (type(module).__name__, name, SWITCH)
        )
    step = _named(ids, batch, 1, mask, context + 1)
    return (), dict(step, **{name: cache, SWITCH: True})


def _parameters(module):
    # type: (torch.nn.Module) -> List[str]
    """The names of the parameters of the module's ``forward``, in order."""
    return list(inspect.signature(module.forward).parameters)


def _tokens(module, positional, named, parameters):
    # type: (torch.nn.Module, Tuple[Any, ...], Dict[str, Any], List[str]) -> Tuple[Any, Any]
    """The tokens of the prompt and its mask, None without one. Raises FactoryError if there are other arguments."""
    inputs = dict(zip(parameters, positional), **named)
    leaves = {key: value for key, value in inputs.items() if hasattr(value, "shape") and hasattr(value, "dtype")}
    ids = leaves.pop(TOKENS, None)
    mask = leaves.pop(MASK, None)
    if ids is None or len(ids.shape) != 2 or leaves or (mask is not None and len(mask.shape) != 2):
        raise FactoryError(
            "a decoding step of %s takes %s of (batch, tokens), and %s of the same shape at most: give them with --input, such "
            "as --input %s=1,128:int64." % (type(module).__name__, TOKENS, MASK, TOKENS)
        )
    return ids, mask


def _named(ids, batch, tokens, mask, seen):
    # type: (Any, int, int, Any, int) -> Dict[str, Any]
    """The named arguments of a call with these many tokens, of which a mask shows all that the model has seen."""
    inputs = {TOKENS: Input(TOKENS, (batch, tokens), _dtype(ids))}  # type: Dict[str, Any]
    if mask is not None:
        inputs[MASK] = torch.ones((batch, seen), dtype=getattr(torch, _dtype(mask)), device="cpu")
    return inputs


def _dtype(leaf):
    # type: (Any) -> str
    return str(leaf.dtype).replace("torch.", "") or "int64"


def unshared(value):
    # type: (Any) -> Any
    """A copy of a cache that shares its tensors: a call that appends to it leaves the original as it is. No op runs.

    A cache is an object that holds tensors; anything else stays as it is.
    """
    if isinstance(value, (torch.Tensor, type, str, torch.nn.Module)) or not _holds(value, set()):
        return value
    return _copied(value, {})


def _parts(value):
    # type: (Any) -> List[Any]
    """The values inside a container or an object."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(getattr(value, "__dict__", {}).values())


def _is_closed(value):
    # type: (Any) -> bool
    """Whether nothing inside the value belongs to a cache."""
    return isinstance(value, (torch.nn.Module, type)) or callable(value)


def _holds(value, met):
    # type: (Any, Any) -> bool
    """Whether there is a tensor inside."""
    if isinstance(value, torch.Tensor):
        return True
    if id(value) in met or _is_closed(value):
        return False
    met.add(id(value))
    return any(_holds(part, met) for part in _parts(value))


def _copied(value, copies):
    # type: (Any, Dict[int, Any]) -> Any
    if isinstance(value, torch.Tensor) or _is_closed(value):
        return value
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, tuple):
        items = [_copied(item, copies) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    fresh = None  # type: Any
    if isinstance(value, list):
        copies[id(value)] = fresh = type(value)()
        fresh.extend(_copied(item, copies) for item in value)
        return fresh
    if isinstance(value, dict):
        copies[id(value)] = fresh = value.copy()
        for key, item in value.items():
            fresh[key] = _copied(item, copies)
        return fresh
    if not hasattr(value, "__dict__"):
        return value
    copies[id(value)] = fresh = object.__new__(type(value))
    fresh.__dict__.update((key, _copied(item, copies)) for key, item in vars(value).items())
    return fresh
