"""Reasons why counters of a TorchScript trace (fvcore, mmengine, torchprofile) cannot count a model. Python 3.8, torch 1.x."""

from typing import Tuple

from ..limits import Limit

COUNTS_TRACED_GRAPH = "it counts a graph that torch.jit.trace makes, "
LIMITS = (
    Limit(
        ("not supported on ScriptModules", "not part of the active trace"),
        COUNTS_TRACED_GRAPH + "which cannot follow a ScriptModule: give the module that it was made of",
    ),
    Limit(
        ("stateless API can't be used with Jitted modules",),
        COUNTS_TRACED_GRAPH
        + "under which torch.func.functional_call runs nothing: load the weights into the module and call it",
    ),
    Limit(
        ("/_higher_order_ops/", "/flex_attention.py"),
        COUNTS_TRACED_GRAPH
        + "which cannot follow operators that run functions of their own, such as torch.cond and flex_attention: "
        "leave %s out",
    ),
    Limit(
        ("/_functorch/eager_transforms.py", "/torch/autograd/__init__.py"),
        COUNTS_TRACED_GRAPH
        + "which cannot follow a model that takes gradients itself: leave %s out, or give the forward pass alone",
    ),
    Limit(
        ("that requires grad as a constant",),
        COUNTS_TRACED_GRAPH
        + "which takes for a constant what it did not see made, and no constant may require a gradient: make it a parameter of "
        "the model, or call detach() on it; a result of another thread is such a constant, too",
    ),
    Limit(
        ("dynamo-optimized function",),
        COUNTS_TRACED_GRAPH
        + "which cannot follow a function that was compiled before the run: give the function as it is written",
    ),
    Limit(
        ("/torch/nested/",),
        COUNTS_TRACED_GRAPH + "which has no value for a nested tensor: leave %s out, or give padded tensors",
    ),
    Limit(
        ("Unsupported value kind: Tensor",),
        COUNTS_TRACED_GRAPH
        + "which has no constant for a tensor that is sparse, nested or otherwise no plain block of numbers: register a sparse "
        "one as a buffer of the model, or leave %s out",
    ),
    Limit(
        ("/_meta_registrations.py:meta_conv",),
        COUNTS_TRACED_GRAPH
        + "and this PyTorch cannot trace a convolution on meta, where sizes are tensors while it traces: %s needs the "
        "weights in memory, as on a machine with more of it, or PyTorch 2.5",
    ),
    Limit(
        ("cond must be a bool",),
        COUNTS_TRACED_GRAPH
        + "in which sizes are tensors, and a check of sizes (torch._check) takes none: leave %s out, or leave out that check",
    ),
    Limit(
        ("/torch/utils/checkpoint.py",),
        COUNTS_TRACED_GRAPH
        + "which cannot follow checkpoint(use_reentrant=True): take use_reentrant=False, which does the same work",
    ),
)
"""What a counter of such a graph cannot count; ``%s`` stands for its name."""


def limits(counter: str) -> Tuple[Limit, ...]:
    """The ``LIMITS`` of these counters, with this counter's name in their sentences."""
    return tuple(Limit(limit.marks, limit.reason.replace("%s", counter)) for limit in LIMITS)
