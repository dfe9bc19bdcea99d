"""Recording of PyTorch's higher-order operators (torch.ops.higher_order), which run functions of the program.

``cond``, ``while_loop``, ``scan``, ``associative_scan`` and ``map`` run as they would: the branch that is taken and every trip of
the loop are recorded op by op.
``flex_attention`` is one op, and so are its gradients.  Any other is recorded as one op without a formula, and the trace says
that it is incomplete.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Callable

import torch

from ....core.records import Op
from .records import plain, tensor_record, tensors_in
from .wrapped_functions import wrap_function

SPACE = "higher_order."
FLEX = SPACE + "flex_attention"
BLOCK_MASK_NOT_READ = (
    "flex_attention is counted over all pairs of positions, also those that its block mask leaves out: a kernel that is compiled "
    "for it skips them block by block, and does less work than is shown here"
)
"""Note of a trace with such a mask."""
IDENTITY = "identity"
"""``score_mod`` of attention whose scores are taken as they are."""

FUNCTIONS_AT = {"flex_attention": (3, 4), "flex_attention_backward": (7, 9)}
"""Attention and its gradients: which arguments are ``score_mod`` and the block mask; the scale is the next."""

DIRECT = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
"""PyTorch's own switch of flex_attention, by which it is not compiled."""


def is_higher_order(func: Any) -> bool:
    """Whether it is a higher-order operator."""
    return isinstance(func, torch._ops.HigherOrderOperator)


@contextmanager
def disable_compilation() -> Iterator[None]:
    """Within this, flex_attention is called as it is: PyTorch would compile it, which it does not do beneath a recorder."""
    try:  # now: a model that imports it where it calls it would find the switch as PyTorch sets it
        from torch.nn.attention import flex_attention as module
    except ImportError:  # before PyTorch 2.5
        yield
        return
    with wrap_function(module, DIRECT, lambda _switch: True) if hasattr(module, DIRECT) else nullcontext():
        yield


def open_operator(func: Any, args: tuple[Any, ...]) -> Callable[[], Any] | None:
    """What runs the functions of this operator one by one, so that their own ops can be recorded; None for an operator that is
    recorded whole."""
    runs: dict[str, Callable[..., Any]] = {
        "cond": open_condition,
        "while_loop": _while_loop,
        "scan": _scan,
        "associative_scan": _associative_scan,
        "map_impl": _map,
    }
    run = runs.get(func.name())
    return None if run is None else partial(run, *args)


def open_condition(predicate: Any, if_true: Any, if_false: Any, operands: Any) -> Any:
    """The branch of torch.cond that is taken, called as a plain function."""
    return (if_true if predicate else if_false)(*operands)


def _while_loop(condition: Any, body: Any, carried: Any, additional: Any, *_: Any) -> Any:
    if not condition(*carried, *additional):
        return tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in carried)
    while True:
        carried = body(*carried, *additional)
        if not condition(*carried, *additional):
            return carried


def _scan(combine: Any, init: Any, xs: Any, additional: Any = ()) -> Any:
    from torch._higher_order_ops.scan import generic_scan

    return generic_scan(combine, init, xs, additional_inputs=additional)


def _associative_scan(combine: Any, xs: Any, additional: Any = ()) -> Any:
    from torch._higher_order_ops.associative_scan import generic_associative_scan

    return generic_associative_scan(combine, xs, additional_inputs=additional)


def _map(function: Any, xs: Any, others: Any) -> Any:
    maps: Any = sys.modules["torch._higher_order_ops.map"]  # of that package, ``map`` is the function
    return maps._stack_pytree([function(*(tuple(row) + tuple(others))) for row in maps._unstack_pytree(xs)])


def record(func: Any, args: tuple[Any, ...], out: Any, layer: str) -> Op:
    """The record of a higher-order operator's call; flex_attention's says whether scores are changed and blocks are masked."""
    inputs = tuple(tensor_record(t) for t in tensors_in(args))
    attrs: dict[str, Any] = {}
    if func.name() in FUNCTIONS_AT:
        at, mask_at = FUNCTIONS_AT[func.name()]
        inputs = inputs[:3]
        attrs = {
            "score_mod": IDENTITY if _passes_on(args[at]) else plain(getattr(args[at], "__name__", "score_mod")),
            "block_mask": not _masks_nothing(args[mask_at][-1]),
            "scale": plain(args[mask_at + 1]),
        }
    return Op("", SPACE + func.name(), layer, inputs, tuple(tensor_record(t) for t in tensors_in(out)), attrs)


def _passes_on(score_mod: Any) -> bool:
    """Whether it returns the score that it is given: PyTorch's own identity, or its graph."""
    return _returns(score_mod, lambda graph, output: output is next(iter(graph.nodes)), "_identity")


def _masks_nothing(mask_mod: Any) -> bool:
    """Whether every position is kept: PyTorch's mask for calls without one, or its graph, which makes a tensor of ones."""
    return _returns(mask_mod, lambda _, output: "new_ones" in str(output.target), "noop_mask")


def _returns(function: Any, test: Callable[[Any, Any], bool], name: str) -> bool:
    graph = getattr(function, "graph", None)
    if graph is None:
        return getattr(function, "__name__", "") == name
    output = list(graph.nodes)[-1].args[0]
    output = output[0] if isinstance(output, (tuple, list)) else output
    return isinstance(output, torch.fx.Node) and test(graph, output)
