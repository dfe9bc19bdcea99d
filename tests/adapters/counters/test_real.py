"""The cases by hand are what the installed counters' own functions say; fvcore's handles take nodes of a trace, tests/layers
runs those.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.core.records import LENGTHS, Op
from tests.adapters.counters import tf_cases, thop_cases, torch_cases
from tests.adapters.counters.cases import Case
from tests.adapters.counters.test_rules import FAMILIES

pytestmark = pytest.mark.frameworks

Said = Iterator[tuple[int, int | None]]
"""Of every case of the newest release its number, and the count; None where the counter has nothing for that op."""


def of(cases: tuple[Case, ...], release: str) -> Iterator[tuple[int, Op]]:
    """The cases of a release by their numbers."""
    return ((number, case.op) for number, case in enumerate(cases) if release in case.releases)


def count_by_tf_profiler() -> Said:
    """The registered statistics, of a node whose graph knows the shapes alone."""
    from tensorflow.core.framework.node_def_pb2 import NodeDef
    from tensorflow.python.framework import ops
    from tensorflow.python.framework.tensor_shape import TensorShape
    from tensorflow.python.ops import nn_ops  # noqa: F401, which registers some
    from tensorflow.python.profiler.internal import flops_registry  # noqa: F401, which registers the rest

    for number, op in of(tf_cases.CASES, tf_cases.RELEASES[-1]):
        control = op.attrs.get("control_inputs", 0)
        names = [*(f"in{at}" for at in range(len(op.inputs))), *(f"^c{at}" for at in range(control))]
        shapes = {f"in{at}:0": tensor.shape for at, tensor in enumerate(op.inputs)} | {"out:0": op.outputs[0].shape}
        node = NodeDef(op=op.op, name="out", input=names)
        node.attr["data_format"].s = op.attrs.get("data_format", "NHWC").encode()
        for name in ("ksize", "strides"):
            node.attr[name].list.i.extend(op.attrs.get(name, []))
        for name in ("transpose_a", "adj_x"):
            node.attr[name].b = op.attrs.get(name, False)
        graph = SimpleNamespace(
            get_tensor_by_name=lambda name, shapes=shapes: SimpleNamespace(get_shape=lambda: TensorShape(shapes[name]))
        )
        try:
            counted = ops.get_stats_for_node_def(graph, node, "flops").value
        except ValueError:  # another data format
            counted = None
        yield number, None if counted is None else int(counted)


def count_by_thop() -> Said:
    """The hooks, called with a module that has its settings alone."""
    import torch
    from thop.profile import register_hooks
    from torch.nn.utils.rnn import PackedSequence

    by_name = {f"{cls.__module__}.{cls.__qualname__}": hook for cls, hook in register_hooks.items()}

    def empty(shape: Any) -> torch.Tensor:
        return torch.empty(list(shape), device="meta")

    for number, op in of(thop_cases.CASES, thop_cases.RELEASES[-1]):
        if op.op == "thop.float32":
            yield number, None
            continue
        settings = dict(op.attrs)
        for name in ("weight", "bias"):
            if isinstance(settings.get(name), list):
                settings[name] = empty(settings[name])
        module = SimpleNamespace(total_ops=torch.zeros(1, dtype=torch.float64), training=False, **settings)
        first: Any = empty(op.inputs[0].shape or ())
        if settings.get("packed_batch"):
            lengths = [2, 2, 2, 1, 1]  # as many as the steps, and 8 in all
            first = PackedSequence(first, torch.tensor(lengths))
        if op.op in by_name:
            by_name[op.op](module, (first,), empty(op.outputs[0].shape or ()))
            yield number, int(module.total_ops)
        else:
            yield number, None


OF_KERNELS = ("aten._flash_attention", "aten._efficient_attention")
"""Kernels whose formulas take the arguments themselves."""


def count_by_flop_counter() -> Said:
    """The registered formulas, called with shapes for tensors."""
    import torch
    from torch.utils.flop_counter import flop_registry

    by_name = {str(packet).replace("::", "."): function for packet, function in flop_registry.items()}
    for number, op in of(torch_cases.FLOP_COUNTER, torch.__version__.partition("+")[0]):
        inputs = [torch.empty(tensor.shape or (), device="meta") for tensor in op.inputs]
        out = torch.empty(op.outputs[0].shape or (), device="meta")
        transposed = op.attrs.get("transposed", False)
        rest: list[Any] = []
        if op.op == "aten.convolution_backward":
            mask = op.attrs["output_mask"]
            part = op.attrs.get("part")
            wanted = [asked and part in (None, at) for at, asked in enumerate(mask)]
            rest = [None, None, None, None, transposed, None, 1, wanted]
            out = (inputs[1], inputs[2], None)
        elif "conv" in op.op:
            rest = [None, None, None, None, transposed]
        elif op.op == "aten._scaled_mm":
            rest = [None, None]  # two scales
        elif op.op.removesuffix("_forward").removesuffix("_backward") in OF_KERNELS:
            before = 2 if op.op.endswith("_backward") else int("efficient" in op.op)  # out and logsumexp or bias; bias
            ends = [torch.tensor([0, *accumulate(row)]) for row in op.attrs.get(LENGTHS, ())] or [None, None]
            rest = [None] * before + [*ends, 5, 5]
        counted = by_name[op.op](*inputs, *rest, out_val=out) if op.op in by_name else None
        yield number, None if counted is None else int(counted)


BY_FAMILY = {"tf.profiler": count_by_tf_profiler, "thop": count_by_thop, "flop_counter": count_by_flop_counter}


@pytest.mark.filterwarnings("ignore:distutils Version classes", "ignore:This API is being deprecated")  # thop's own
@pytest.mark.parametrize("family", BY_FAMILY)
def test_cases_are_what_the_counters_functions_say(family: str) -> None:
    pytest.importorskip("tensorflow" if family == "tf.profiler" else "torch")
    counted = list(BY_FAMILY[family]())
    releases, cases = FAMILIES[family]
    # PyTorch's is the installed one: rules have read later releases than the lock has.
    release = version("torch").partition("+")[0] if family == "flop_counter" else releases[-1]
    assert [number for number, _ in counted] == [number for number, _ in of(cases, release)]
    off = [
        (cases[number].op.op, cases[number].op.attrs, cases[number].total, value)
        for number, value in counted
        if (value or 0) != cases[number].total
    ]
    assert off == []
