"""Recording of PyTorch's higher-order operators (torch.ops.higher_order), which run functions of the program.

``cond``, ``while_loop``, ``scan``, ``associative_scan`` and ``map`` run as they would: the branch that is taken and every trip of
the loop are recorded op by op.
``flex_attention`` is one op, and so are its gradients.  Any other is recorded as one op without a formula, and the trace says
that it is incomplete.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
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

WRITTEN_OUT = (
    "the functions of %s were called one by one, and so were their gradients: PyTorch's own gradients of map and while_loop call "
    "the functions once more"
)
"""Note of a training step with such an operator."""
COMPILERS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("torch.nn.attention.flex_attention", "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", lambda _switch: True),
    ("torch._higher_order_ops.utils", "_hop_compile_and_call", lambda _compiles: lambda run, args, *_: run(*args)),
)
"""PyTorch's own switch of flex_attention, and what compiles all other operators; each with what takes its place."""


@contextmanager
def write_out(met: Callable[[str], None] = lambda _name: None) -> Iterator[None]:
    """Within this, an operator that runs functions calls them one by one as plain functions, so that autograd follows them, and
    flex_attention is called as it is: PyTorch would compile them, which it does not do beneath a recorder.

    ``met`` is called with the name of each operator that is written out.
    """

    def call_functions(call: Any) -> Callable[..., Any]:
        def call_written(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            run = WRITTEN.get(self.name())
            if run is None:
                return call(self, *args, **kwargs)
            met(self.name())
            return run(*args)

        return call_written

    with ExitStack() as stack:
        stack.enter_context(wrap_function(torch._ops.HigherOrderOperator, "__call__", call_functions))
        for place, name, make in COMPILERS:
            with suppress(ImportError):
                # now: a model that imports it where it calls it would find it as PyTorch sets it
                module = import_module(place)
                stack.enter_context(wrap_function(module, name, make) if hasattr(module, name) else nullcontext())
        yield


def _while_loop(condition: Any, body: Any, carried: Any, additional: Any, *_: Any) -> Any:
    if not condition(*carried, *additional):
        return tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in carried)
    while True:
        carried = body(*carried, *additional)
        if not condition(*carried, *additional):
            return carried


def _run_generic(name: str, *args: Any) -> Any:
    """PyTorch's own plain function of an operator, whose last argument are the additional inputs."""
    module = sys.modules[f"torch._higher_order_ops.{name}"]
    return getattr(module, f"generic_{name}")(*args[:-1], additional_inputs=args[-1])


def _map(function: Any, xs: Any, others: Any) -> Any:
    maps: Any = sys.modules["torch._higher_order_ops.map"]  # of that package, ``map`` is the function
    return maps._stack_pytree([function(*(tuple(row) + tuple(others))) for row in maps._unstack_pytree(xs)])


WRITTEN: dict[str, Callable[..., Any]] = {
    "cond": lambda predicate, if_true, if_false, operands: (if_true if predicate else if_false)(*operands),
    "while_loop": _while_loop,
    "scan": partial(_run_generic, "scan"),
    "associative_scan": partial(_run_generic, "associative_scan"),
    "map_impl": _map,
}
"""The operators that are written out, and what calls their functions one by one."""


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
