"""Multiply-adds of every brick in closed form, per sample, from its input's and its output's shape without the batch.

Written from the definition of each layer: positions x filters x kernel x channels, steps x gates x units x (inputs +
units), and so on.  Families that only normalise, pool or map elements multiply and add nothing as a dot product.
"""

from __future__ import annotations

import importlib
from math import prod

FAMILIES = (
    "convolution", "transposed", "dense", "norm", "activation",
    "pooling", "recurrent", "attention", "block", "control",
)  # fmt: skip
WITHOUT_PRODUCTS = ("norm", "activation", "pooling")


def conv(kernel, groups=1):
    """Every output element is a dot product over the kernel's taps of its group's channels."""
    return lambda i, o: prod(o) * kernel ** (len(i) - 1) * i[-1] // groups


def dilated(kernel, dilation, same):
    """TensorFlow's side by side: the padded input is filled up to a multiple of the dilation, one plain convolution each."""

    def tf(i, o):
        reach = (kernel - 1) * dilation
        filled = [-(-(n + reach * same) // dilation) * dilation for n in i[:-1]]
        return prod(n - reach for n in filled) * o[-1] * kernel ** (len(i) - 1) * i[-1]

    return tf, conv(kernel)


def transposed(kernel):
    """Every input element is multiplied with the whole kernel."""
    return lambda i, o: prod(i) * kernel ** (len(i) - 1) * o[-1]


def depthwise(kernel):
    """Every output element looks at one channel."""
    return lambda i, o: prod(o) * kernel ** (len(i) - 1)


def separable(kernel, filters):
    """At every position the depthwise and the pointwise product."""
    return lambda i, o: prod(i) * (kernel ** (len(i) - 1) + filters)


def dense(*units):
    """Every row by each of these widths; 0 is the input's own."""
    return lambda i, o: prod(i) * sum(n or i[-1] for n in units)


def cells(gates, levels=1, directions=1, units=3):
    """Every step, level and direction: gates x units x (inputs + units)."""

    def macs(i, o):
        widths = [i[-1], *[units * directions] * (levels - 1)]
        return sum(i[0] * directions * gates * units * (width + units) for width in widths)

    return macs


def attention(projected, asking=None):
    """Scores of every asking step with every step and the sum over values; ``projected(asking, steps, width)``."""

    def macs(i, o):
        steps, width = i
        rows = asking or steps
        return projected(rows, steps, width) + 2 * rows * steps * width

    return macs


def square(rows, steps, width):
    """Queries and outputs of the asking rows, keys and values of all steps."""
    return (2 * rows + 2 * steps) * width**2


def shared(groups, heads=4):
    """Keys and values of as many heads as there are groups."""
    return lambda rows, steps, width: 2 * rows * width**2 + 2 * steps * width * (width // heads) * groups


def none(_rows, _steps, _width):
    """No projection."""
    return 0


HALVINGS = 9
"""1 / 2**9 is the first below 0.002."""

FORMS = {
    **{
        name: conv(3)
        for name in ("conv1d", "conv1d_stride", "conv1d_causal", "conv2d", "conv2d_no_bias", "conv2d_stride")
    },
    **{name: conv(3) for name in ("conv2d_same", "conv2d_same_stride", "conv3d_stride")},
    **{name: conv(3, groups=2) for name in ("conv1d_groups", "conv2d_groups")},
    "conv1d_dilated": dilated(3, 2, same=True),
    "conv2d_dilated": dilated(3, 2, same=False),
    "conv2d_same_even_kernel": conv(4),
    "conv2d_pointwise": conv(1),
    "conv3d": conv(2),
    **{name: depthwise(3) for name in ("depthwise1d", "depthwise2d", "depthwise2d_stride")},
    **{name: separable(3, 6) for name in ("separable1d", "separable2d")},
    **{name: transposed(3) for name in ("transposed1d", "transposed1d_stride", "transposed2d", "transposed2d_stride")},
    **{name: transposed(3) for name in ("transposed2d_same_odd", "transposed3d_stride")},
    **{name: transposed(2) for name in ("transposed2d_gaps", "transposed2d_no_bias", "transposed3d")},
    "transposed2d_same_even": transposed(4),
    **{name: dense(5) for name in ("dense", "dense_no_bias")},
    **{name: dense(4) for name in ("dense_steps", "dense_steps_no_bias")},
    "dense_one_unit": dense(1),
    "dense_map": dense(6),
    "einsum_dense": dense(3 * 2),
    "embedding": lambda i, o: 0,
    **{name: cells(1) for name in ("rnn", "rnn_relu", "rnn_no_bias", "rnn_cell")},
    **{name: cells(3) for name in ("gru", "gru_no_bias", "gru_last", "gru_steps_first", "gru_unrolled", "gru_cell")},
    **{name: cells(3) for name in ("gru_reset_before", "gru_reset_before_no_bias")},
    "gru_stacked_both_ways": cells(3, levels=2, directions=2),
    **{name: cells(4) for name in ("lstm", "lstm_no_bias", "lstm_last", "lstm_cell")},
    "lstm_stacked": cells(4, levels=2),
    "lstm_both_ways": cells(4, directions=2),
    **{name: attention(square) for name in ("multi_head", "multi_head_weights", "multi_head_causal")},
    **{name: attention(square) for name in ("written_out", "written_out_causal")},
    "multi_head_across": attention(square, asking=2),
    "grouped_query": attention(shared(2)),
    "multi_query": attention(shared(1)),
    **{name: attention(none) for name in ("dot_product", "dot_product_causal")},
    **{name: lambda i, o: i[0] * i[0] * i[1] for name in ("einsum_scores", "matmul_scores")},
    **{name: lambda i, o: 0 for name in ("statistics", "powers", "dropout")},
    "residual": dense(7, 7),
    "gate": dense(0, 0),
    "join": dense(3),
    "excite": lambda i, o: 2 * i[-1] * 2,
    "functional": dense(7, 7),
    **{name: dense(0, 0) for name in ("called_twice", "two_parents")},
    "conditional": dense(0),
    "counted_loop": dense(0, 0, 0),
    "halving_loop": dense(*[0] * HALVINGS),
}
"""Brick -> its form, or one for TensorFlow and one for PyTorch where they multiply in other numbers."""


def bricks():
    """Every family's bricks by name. Raises ValueError if two have the same name."""
    found = {}
    for family in FAMILIES:
        for brick in importlib.import_module(f"reconcile.model_zoo.family_{family}").BRICKS:
            if brick.name in found:
                raise ValueError(f"two bricks are called {brick.name}")
            found[brick.name] = brick
            if family in WITHOUT_PRODUCTS:
                FORMS[brick.name] = lambda i, o: 0
    return found


BRICKS = bricks()


def macs(name, shape):
    """(TensorFlow's, PyTorch's) multiply-adds of a brick on one sample of this shape."""
    brick, form = BRICKS[name], FORMS[name]
    both = form if isinstance(form, tuple) else (form, form)
    return tuple(one(shape, brick.out(shape)) for one in both)


def family(name, batch=2):
    """Both sides' multiply-adds of a family's pair."""
    mine = importlib.import_module(f"reconcile.model_zoo.family_{name}").BRICKS
    return tuple(batch * sum(side) for side in zip(*(macs(b.name, b.shape) for b in mine), strict=True))
