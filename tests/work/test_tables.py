"""Every row of the elementwise tables: the expression it counts, run on counting numbers, against the op's values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from reconcile.work import elementwise, find, load, work_of
from tests.work import counting
from tests.work.counting import Num, Tally
from tests.work.records_by_hand import make

F = torch.nn.functional
exp, log, sqrt = (lambda x, f=f: x.special(f) for f in (math.exp, math.log, math.sqrt))


def expm1(x: Num) -> Num:
    return x.special(math.expm1)


def log1p(x: Num) -> Num:
    return x.special(math.log1p)


def absolute(x: Num) -> Num:
    return x.max(-x.value)


def select(condition: bool, costly: Num, cheap: float) -> Num:
    """One comparison; the costlier side was computed (and counted) whichever is taken."""
    costly.tally["cmp"] += 1
    return costly if condition else Num(cheap, costly.tally)


SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

# row -> (expression on numbers, torch's or numpy's function on arrays); x is any number, y and z are positive
SHARED = {
    "add": (lambda x, y: x + y, torch.add),
    "sub": (lambda x, y: x - y, torch.sub),
    "neg": (lambda x: -x, torch.neg),
    "mul": (lambda x, y: x * y, torch.mul),
    "square": (lambda x: x * x, torch.square),
    "div": (lambda x, y: x / y, torch.div),
    "reciprocal": (lambda x: Num(1.0, x.tally) / x, torch.reciprocal),
    "compare": (lambda x, y: x.max(y), torch.maximum),
    "special": (lambda x: x.tanh(), torch.tanh),
    "clamp2": (lambda x: x.max(0.0).min(6.0), F.relu6),
    "floordiv": (lambda x, y: (x / y).special(math.floor), torch.floor_divide),
    "remainder": (lambda x, y: x._do("div", x.value % y.value), torch.remainder),
    "xlogy": (lambda x, y: select(x.value != 0, x * log(y), 0.0), torch.xlogy),
    "silu": (lambda x: x * x.sigmoid(), F.silu),
    "gelu": (lambda x: x * 0.5 * (1 + (x * math.sqrt(0.5)).special(math.erf)), F.gelu),
    "gelu_tanh": (
        lambda x: 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))).tanh()),
        lambda x: F.gelu(x, approximate="tanh"),
    ),
    "softsign": (lambda x: x / (1 + absolute(x)), F.softsign),
    "leaky_relu": (lambda x: select(x.value <= 0, x * 0.01, x.value), F.leaky_relu),
    "addcmul": (lambda x, y, z: x + y * z, torch.addcmul),
    "addcdiv": (lambda x, y, z: x + y / z, torch.addcdiv),
}


ATEN = {
    "elu": (lambda x: select(x.value <= 0, expm1(x * 1.0) * 1.0, x.value), F.elu),
    "softplus": (lambda x: select(x.value * 2 <= 20, log1p(exp(x * 2.0)) / 2.0, x.value), lambda x: F.softplus(x, 2)),
    "hardsigmoid": (lambda x: (x + 3.0).max(0.0).min(6.0) / 6.0, F.hardsigmoid),
    "hardswish": (lambda x: x * (x + 3.0).max(0.0).min(6.0) / 6.0, F.hardswish),
    "mish": (lambda x: x * log1p(exp(x)).tanh(), F.mish),
    "glu": (lambda x, y: x * y.sigmoid(), lambda x, y: F.glu(torch.cat([x, y]), 0)),
    "log_sigmoid": (lambda x: x.min(0.0) - log1p(exp(-absolute(x))), F.logsigmoid),
    "softshrink": (
        lambda x: select(True, select(abs(x.value) > 0.5, x - math.copysign(0.5, x.value), 0.0), 0.0),
        F.softshrink,
    ),
    "lerp": (lambda x, y: x + 0.3 * (y - x), lambda x, y: torch.lerp(x, y, 0.3)),
    "dropout": (lambda x: x * (Num(1.0, x.tally) / 0.5), lambda x: x * 2),
    "native_dropout": (lambda x: x * 1.0 * 2.0, lambda x: x * 2),
    "logit": (
        lambda x: (lambda p: (p / (1 - p)).special(math.log))(x.max(0.2).min(0.8)),
        lambda x: torch.logit(x, 0.2),
    ),
    "cross": (lambda x, y, z: x * y - z * y, lambda x, y, z: x * y - z * y),
    "rrelu": (lambda x: select(x.value <= 0, x * 0.01, x.value), F.leaky_relu),
}


TENSORFLOW = {
    "Elu": (lambda x: select(x.value < 0, exp(x) - 1.0, x.value), F.elu),
    "Selu": (lambda x: select(x.value < 0, SELU_SCALE * SELU_ALPHA * (exp(x) - 1.0), SELU_SCALE * x.value), F.selu),
    "Softplus": (lambda x: select(True, select(True, log1p(exp(x)), x.value), 0.0), F.softplus),
    "SquaredDifference": (lambda x, y: counting.square(x - y), lambda x, y: (x - y) ** 2),
    "DivNoNan": (lambda x, y: select(y.value != 0, x / y, 0.0), torch.div),
    "MulNoNan": (lambda x, y: select(y.value != 0, x * y, 0.0), torch.mul),
    "Xdivy": (lambda x, y: select(x.value != 0, x / y, 0.0), torch.div),
    "RsqrtGrad": (lambda y, dy: -0.5 * (dy * y) * (y * y), lambda y, dy: -0.5 * dy * y**3),
    "SqrtGrad": (lambda y, dy: 0.5 * dy / y, lambda y, dy: 0.5 * dy / y),
    "TanhGrad": (lambda y, dy: dy * (1 - y * y), lambda y, dy: dy * (1 - y * y)),
    "SigmoidGrad": (lambda y, dy: dy * (1 - y) * y, lambda y, dy: dy * y * (1 - y)),
    "InvGrad": (lambda y, dy: -dy * y * y, lambda y, dy: -dy * y * y),
    "ReluGrad": (
        lambda dy, x: Num(dy.max(-math.inf).value if x.value > 0 else 0.0, dy.tally),
        lambda dy, x: dy * (x > 0),
    ),
    "Relu6Grad": (
        lambda dy, x: select(True, select(0 < x.value < 6, dy, 0.0), 0.0),
        lambda dy, x: dy * ((x > 0) & (x < 6)),
    ),
    "LeakyReluGrad": (
        lambda dy, x: select(x.value <= 0, dy * 0.01, dy.value),
        lambda dy, x: torch.where(x > 0, dy, dy * 0.01),
    ),
    "EluGrad": (
        lambda dy, y: select(y.value < 0, dy * (y + 1.0), dy.value),
        lambda dy, y: torch.where(y < 0, dy * (y + 1), dy),
    ),
    "SeluGrad": (
        lambda dy, y: select(y.value < 0, dy * (y + 2.0), dy.value * 3.0),
        lambda dy, y: torch.where(y < 0, dy * (y + 2), dy * 3),
    ),
    "SoftplusGrad": (lambda dy, x: dy / (exp(-x) + 1.0), lambda dy, x: dy * torch.sigmoid(x)),
    "SoftsignGrad": (lambda dy, x: dy / counting.square(absolute(x) + 1.0), lambda dy, x: dy / (1 + x.abs()) ** 2),
    "ReciprocalGrad": (lambda y, dy: -dy * y * y, lambda y, dy: -dy * y * y),
}

POWER = {
    0.0: lambda x: Num(1.0, x.tally), 1.0: lambda x: x, 2.0: lambda x: x * x, 3.0: lambda x: x * x * x, 0.5: sqrt,
    -0.5: Num.rsqrt, -1.0: lambda x: Num(1.0, x.tally) / x, -2.0: lambda x: Num(1.0, x.tally) / (x * x),
}  # fmt: skip

ROWS = [
    *((elementwise.SHARED, name, *pair) for name, pair in SHARED.items()),
    *((elementwise.ATEN, name, *pair) for name, pair in ATEN.items()),
    *((elementwise.TENSORFLOW, name, *pair) for name, pair in TENSORFLOW.items()),
    *((elementwise.POWER, n, loop, lambda x, n=n: torch.pow(x, n)) for n, loop in POWER.items()),
]


load()


def test_every_row_is_held():
    assert set(SHARED) == set(elementwise.SHARED)
    assert set(ATEN) == set(elementwise.ATEN)
    assert set(TENSORFLOW) == set(elementwise.TENSORFLOW)
    assert set(POWER) == set(elementwise.POWER)


@pytest.mark.parametrize(("table", "row", "expression", "function"), ROWS, ids=[str(row[1]) for row in ROWS])
def test_row(table, row, expression, function):
    arguments = expression.__code__.co_argcount if hasattr(expression, "__code__") else 1
    arguments -= len(getattr(expression, "__defaults__", None) or ())
    random = np.random.default_rng(1)
    arrays = [random.normal(size=7), *(np.abs(random.normal(size=(2, 7))) + 0.1)][:arguments]
    if table is elementwise.POWER:
        arrays[0] = np.abs(arrays[0]) + 0.1
    tally = Tally()
    result = counting.each(expression, *map(tally.array, arrays))
    np.testing.assert_allclose(counting.values(result), function(*map(torch.from_numpy, arrays)), rtol=1e-6, atol=1e-9)
    assert table[row][0] * 7 == tally.work()
    for name in (row, f"aten.{row}"):  # the ops that are called as the row is
        if isinstance(row, str) and find(name):
            assert work_of(make(name, arrays, arrays[:1], train=True, p=0.5)) == tally.work(), name
