"""The work of convolutions and of their filter gradients, from sizes alone. Products with padding zeros count like the others.

Strides, dilation and padding need no terms of their own, because the output's shape reflects them.
"""

from __future__ import annotations

from ..core.work import Work, prod
from .contraction import dots


def convolution(outputs: int, taps: int, bias: bool) -> Work:
    """outputs = B * prod(out spatial) * c_out; taps = c_in/groups * prod(kernel): products per output element.

    MACs outputs * taps, one accumulator per output element; bias one add per output element.
    """
    return dots(outputs, taps) + Work(add=outputs if bias else 0)


def transposed_convolution(inputs: int, spread: int, outputs: int, bias: bool) -> Work:
    """inputs = B * prod(in spatial) * c_in, each scattered into ``spread`` = c_out/groups * prod(kernel) products.

    MACs inputs * spread = B * prod(in spatial) * numel(weight), including the products that padding crops (the GEMM
    computes them: ATen native/NaiveConvolutionTranspose2d.cpp, TensorFlow conv_grad_input_ops.cc); one accumulator per
    output element, but no more than there are products: a stride longer than the kernel leaves outputs without any
    product, which have no first add to save. Bias one add per output element.
    """
    macs = inputs * spread
    return Work(mac=macs, accumulators=min(outputs, macs), add=outputs if bias else 0)


def filter_gradient(outputs: int, taps: int, weights: int) -> Work:
    """Gradient with respect to the filter: every product of the forward pass once, one accumulator per weight."""
    macs = outputs * taps
    return Work(mac=macs, accumulators=weights if macs else 0)


def taps_torch(weight: tuple[int, ...]) -> int:
    """weight (c_out, c_in/groups, *kernel) -> c_in/groups * prod(kernel).

    Of a transposed convolution, weight (c_in, c_out/groups, *kernel) -> c_out/groups * prod(kernel).
    """
    return prod(weight[1:])


def taps_tf(filter_: tuple[int, ...]) -> int:
    """filter (*kernel, c_in/groups, c_out) -> prod(kernel) * c_in/groups. The last dimension is the output channels,
    also of Conv2DBackpropInput, where it is the dimension that the scattered values are multiplied along."""
    return prod(filter_[:-1])
