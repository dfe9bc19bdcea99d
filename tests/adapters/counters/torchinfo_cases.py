"""torchinfo's mult-adds by hand, from torchinfo/layer_info.py (L) of 1.8.0: a parameter's elements times output positions."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.core.causes import Cause
from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("1.8.0",)
CONV = "any class with Conv in its name"


def cases() -> Iterator[Case]:
    def case(name: str, out: Shape, parameters: list[tuple[str, int, int]], work: Work) -> Case:
        """``parameters``: name, elements, dimensions."""
        record = op(f"torch.nn.modules.{name}", [], [out], leaf=True, parameters=parameters)
        return Case(record, RELEASES, sum((work.mac, work.add, work.mul)), work)

    # L:242: output_size[0] times the parameters, so the 5 of (2, 5, 4) is dropped.
    linear = [("weight", 4 * 3, 2), ("bias", 4, 1)]
    yield case("linear.Linear", (2, 4), linear, Work(mac=2 * 12, add=2 * 4))
    yield case("linear.Linear", (2, 5, 4), linear, Work(mac=2 * 12, add=2 * 4))
    # L:238: the batch and every position of the output, in the output of a transposed one as well.
    conv = [("weight", 4 * 3 * 2, 3), ("bias", 4, 1)]
    yield case("conv.Conv1d", (2, 4, 7), conv, Work(mac=2 * 7 * 24, add=2 * 7 * 4))
    yield case("conv.ConvTranspose1d", (2, 4, 7), conv, Work(mac=2 * 7 * 24, add=2 * 7 * 4))
    # Without a batch, (4, 7): the channels for the batch, and no positions.
    yield case("conv.Conv1d", (4, 7), conv, Work(mac=4 * 24, add=4 * 4))
    # L:242 again: a scale of one dimension is a product, and so is one of a norm; a table is taken for a matrix.
    yield case("batchnorm.BatchNorm2d", (2, 3, 5, 5), [("weight", 3, 1), ("bias", 3, 1)], Work(mul=2 * 3, add=2 * 3))
    yield case("normalization.LayerNorm", (2, 3, 5), [("weight", 15, 2), ("bias", 15, 2)], Work(mul=2 * 15, add=2 * 15))
    yield case("activation.PReLU", (2, 3), [("weight", 1, 1)], Work(mul=2))
    yield case("sparse.Embedding", (2, 5, 4), [("weight", 10 * 4, 2)], Work(mac=2 * 40))
    # L:245: names that contain weight or bias take the first two dimensions, which are steps and batch of an RNN's output.
    gru = [("weight_ih_l0", 9 * 4, 2), ("weight_hh_l0", 9 * 3, 2), ("bias_ih_l0", 9, 1), ("bias_hh_l0", 9, 1)]
    yield case("rnn.GRU", (5, 2, 3), gru, Work(mac=10 * 63, add=10 * 18))
    yield case("rnn.GRU", (5, 3), gru, Work(mac=15 * 63, add=15 * 18))  # without a batch: H for it
    # Other names count nothing beside one that does.
    yield case("own.Scaled", (2, 3), [("weight", 3, 1), ("scale", 3, 1)], Work(mul=2 * 3))
    for settings in ({"leaf": False, "parameters": linear}, {"leaf": True, "parameters": [("scale", 3, 1)]}):
        yield Case(op("own.Module", [], [(2, 4)], **settings), RELEASES)
    # A result without a tensor has no size.
    record = op("own.Module", [], [], leaf=True, parameters=linear)
    yield Case(record, RELEASES, missed=Cause.SHAPE_UNKNOWN)
    yield Case(record._replace(op="own.Conv"), RELEASES, missed=Cause.SHAPE_UNKNOWN)


CASES = tuple(cases())

FAMILIES = {"torchinfo": (RELEASES, CASES)}
