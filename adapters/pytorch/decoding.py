"""Arguments of a language model's call with a key-value cache, for ``--pass prefill`` and ``--pass decode``, and a copy of that
cache for each call.

A prefill reads the prompt and fills the cache; a decoding step reads one more token of each sequence.  A model takes part if
its ``forward`` takes ``use_cache`` and a cache (``past_key_values`` or ``cache_params``), and returns the cache under the same
name: the convention of transformers.  The model itself fills the cache of a decoding step, before anything is counted.
Python 3.8.
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


def note(context: int) -> str:
    """The report's sentence on the call: a prefill if ``context`` is 0, else a decoding step with a cache of so many tokens."""
    if not context:
        return "prefill: one call with use_cache=True, which reads the whole prompt and fills an empty cache"
    return (
        f"a decoding step with {Words(context)}: one more token of each sequence; the model filled the cache before anything "
        "was counted"
    )


class Words:
    """The cache of a decoding step, in words."""

    def __init__(self, context: int) -> None:
        self.text = "a cache of 1 token" if context == 1 else f"a cache of {context:,} tokens"

    def __repr__(self) -> str:
        return self.text


def describe_arguments(given: nested.Arguments, context: int) -> nested.Arguments:
    """The arguments of a decoding step with the cache in words."""
    positional, named = given
    return positional, {name: Words(context) if name in CACHES else value for name, value in named.items()}


def arguments(
    module: torch.nn.Module,
    given: nested.Arguments,
    context: int,
    filled: Callable[[nested.Arguments], nested.Arguments],
) -> nested.Arguments:
    """The arguments of the call, made of those ``given`` for a call with the prompt; ``filled`` makes tensors of leaves.

    Raises FactoryError for a model without a cache, and for arguments that say nothing about the next token.
    """
    parameters = _parameters(module)
    name = next((name for name in CACHES if name in parameters and SWITCH in parameters), "")
    if not name:
        raise FactoryError(
            f"{type(module).__name__} has no cache to fill or to read: --pass prefill and --pass decode need a model whose "
            f"forward takes {SWITCH} and {' or '.join(CACHES)}, as the language models of transformers do."
        )
    encoded = [other for other in ENCODED if other in parameters]
    if encoded:
        raise FactoryError(
            f"{type(module).__name__} has an encoder (its forward takes {encoded[0]}): --pass prefill and --pass "
            "decode count models that are a decoder alone."
        )
    positional, named = given
    if not context:
        return positional, dict(named, **{SWITCH: True})
    ids, mask = _tokens(module, positional, named, parameters)
    batch = int(ids.shape[0])
    prompt = _named_arguments(ids, batch, context, mask, context)
    with torch.no_grad():
        outputs = module(**dict(filled(((), prompt))[1], **{SWITCH: True}))
    cache = outputs.get(name) if isinstance(outputs, Mapping) else getattr(outputs, name, None)
    if cache is None:
        raise FactoryError(
            f"{type(module).__name__} returned no {name} for a call with {SWITCH}=True: a decoding step "
            "needs the cache that the model filled."
        )
    step = _named_arguments(ids, batch, 1, mask, context + 1)
    return (), dict(step, **{name: cache, SWITCH: True})


def _parameters(module: torch.nn.Module) -> List[str]:
    """The names of the parameters of the module's ``forward``, in order."""
    return list(inspect.signature(module.forward).parameters)


def _tokens(
    module: torch.nn.Module, positional: Tuple[Any, ...], named: Dict[str, Any], parameters: List[str]
) -> Tuple[Any, Any]:
    """The tokens of the prompt and its mask, None without one. Raises FactoryError if there are other arguments."""
    inputs = dict(zip(parameters, positional), **named)
    leaves = {key: value for key, value in inputs.items() if hasattr(value, "shape") and hasattr(value, "dtype")}
    ids = leaves.pop(TOKENS, None)
    mask = leaves.pop(MASK, None)
    if ids is None or len(ids.shape) != 2 or leaves or (mask is not None and len(mask.shape) != 2):
        raise FactoryError(
            f"a decoding step of {type(module).__name__} takes {TOKENS} of (batch, tokens), and {MASK} of the same shape "
            f"at most: give them with --input, such as --input {TOKENS}=1,128:int64."
        )
    return ids, mask


def _named_arguments(ids: Any, batch: int, tokens: int, mask: Any, seen: int) -> Dict[str, Any]:
    """The named arguments of a call with these many tokens, with a mask over all tokens that the model has seen."""
    inputs: Dict[str, Any] = {TOKENS: Input(TOKENS, (batch, tokens), _dtype(ids))}
    if mask is not None:
        inputs[MASK] = torch.ones((batch, seen), dtype=getattr(torch, _dtype(mask)), device="cpu")
    return inputs


def _dtype(leaf: Any) -> str:
    return str(leaf.dtype).replace("torch.", "") or "int64"


def copy_cache(value: Any) -> Any:
    """A copy of a cache that shares its tensors: a call that appends to it leaves the original as it is. No op runs.

    A cache is an object that holds tensors; anything else stays as it is.
    """
    if isinstance(value, (torch.Tensor, type, str, torch.nn.Module)) or not _holds(value, set()):
        return value
    return _copy_value(value, {})


def _parts(value: Any) -> List[Any]:
    """The values inside a container or an object."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(getattr(value, "__dict__", {}).values())


def _is_closed(value: Any) -> bool:
    """Whether nothing inside the value belongs to a cache."""
    return isinstance(value, (torch.nn.Module, type)) or callable(value)


def _holds(value: Any, met: Any) -> bool:
    """Whether there is a tensor inside."""
    if isinstance(value, torch.Tensor):
        return True
    if id(value) in met or _is_closed(value):
        return False
    met.add(id(value))
    return any(_holds(part, met) for part in _parts(value))


def _copy_value(value: Any, copies: Dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor) or _is_closed(value):
        return value
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, tuple):
        items = [_copy_value(item, copies) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    fresh: Any = None
    if isinstance(value, list):
        copies[id(value)] = fresh = type(value)()
        fresh.extend(_copy_value(item, copies) for item in value)
        return fresh
    if isinstance(value, dict):
        copies[id(value)] = fresh = value.copy()
        for key, item in value.items():
            fresh[key] = _copy_value(item, copies)
        return fresh
    if not hasattr(value, "__dict__"):
        return value
    copies[id(value)] = fresh = object.__new__(type(value))
    fresh.__dict__.update((key, _copy_value(item, copies)) for key, item in vars(value).items())
    return fresh
