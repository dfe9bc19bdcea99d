"""Rules of torch.profiler with_flops, by the name of an event and the shapes of its first inputs. Unit FLOP.

U = torch/csrc/profiler/util.cpp (computeFlops). The wheel does not contain that file: lines are of PyTorch's main branch, and the
tests measure the formulas with the installed release. An op that ran counts what each event that is or ran in it counts:
``events`` are [name, shapes of its tensors, other arguments, times per call].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.causes import Cause
from ....core.records import Op, Tensor
from ....work import ZERO, Work, prod
from ..rule_parts import matrix_product, per_input
from ..rulebook import NotCounted, RuleBook, apply, dims
from . import COUNTERS, EVENTS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"U": "torch/csrc/profiler/util.cpp"})
rule = BOOK.rule


@rule(
    "aten::conv2d",
    source="U:807",
    formula="2 B Ho Wo Kh Kw Cin Cout / groups; 0 without a batch, or if padding is a name",
)
def _conv2d(op: Op) -> Work:
    x, w = dims(op.inputs[0].shape), dims(op.inputs[1].shape)
    stride, padding, dilation, groups = op.attrs["arguments"][3:7]
    if len(x) != 4 or len(w) != 4 or not isinstance(padding, list) or len(padding) != 2 or len(stride) != 2:
        raise NotCounted(
            Cause.OP_NOT_COUNTED, "torch.profiler counts aten::conv2d only of a batch and with padding in numbers"
        )
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x[2:], w[2:], stride, padding, dilation, strict=True)
    ]
    return Work(mac=x[0] * prod(out) * prod(w[2:]) * x[1] * w[0] // groups)


rule("aten::mm", source="U:848", formula="2 m n k")(matrix_product())
rule("aten::addmm", source="U:848", formula="2 m n k, the added term is not counted")(matrix_product(1))
rule("aten::bmm", source="U:895", formula="2 b m n k")(matrix_product())
rule("aten::baddbmm", source="U:895", formula="2 b m n k, the added term is not counted")(matrix_product(1))
OF_FIRST_INPUT = "elements of the first input, whatever it is broadcast to"
rule("aten::mul", source="U:915", formula=OF_FIRST_INPUT)(per_input(mul=1))
rule("aten::add", source="U:934", formula=OF_FIRST_INPUT)(per_input(add=1))


def as_event(op: Op) -> list[Any]:
    """A counted event as it stands in the attributes of the op that it is or ran in, with how often."""
    return [op.op, [list(dims(t.shape)) for t in op.inputs], op.attrs["arguments"], op.calls]


def counts(op: Op) -> bool:
    """Whether the profiler has a formula for events of this name."""
    return BOOK.find(op.op, {}) is not None


def of_events(
    book: RuleBook,
    counts: Callable[[Op], bool],
    source: str,
    formula: str,
    arguments: Callable[[Op], list[Any]] = lambda op: [],
) -> None:
    """Give a book the rule of an op that is or runs events that it ``counts``. ``arguments`` are those of an op's own event."""

    def events(op: Op) -> list[Any]:
        """The counted events that the op is or runs; an op whose events are not known is one of its own name."""
        own = op._replace(op=op.op.replace(".", "::", 1), attrs={"arguments": arguments(op)}, calls=1)
        return list(op.attrs[EVENTS]) if EVENTS in op.attrs else [as_event(own)] if counts(own) else []

    @book.pattern(
        "an operator that is or runs some of these", lambda op: bool(events(op)), source=source, formula=formula
    )
    def _of_events(op: Op) -> Work:
        total, missed = ZERO, None
        for name, shapes, given, times in events(op):
            inputs = tuple(Tensor(tuple(shape), "") for shape in shapes)
            inner = Op(op.id, name, "", inputs, (), {"arguments": given})
            counted, nothing = apply(book.find(name, {}), inner, lambda op: "")
            total, missed = total + counted * times, missed or nothing
        if missed is not None and not total:
            raise missed
        return total


of_events(
    BOOK, counts, "U:733", "the sum of these, each as often as it is called; an in-place one (aten::add_) counts 0"
)
