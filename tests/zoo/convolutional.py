"""Closed forms: multiply-accumulates of the convolutional networks per image, from their published tables."""

from __future__ import annotations

from itertools import pairwise


def conv(rows, columns, filters, kernel, channels):
    """Products of a convolution: one row of `kernel` x `channels` per output element."""
    return rows * columns * filters * kernel * channels


def resnet50(size, classes, v1_5=False):
    """MACs of ResNet-50 per image, stride in the first 1x1 (v1) or in the 3x3 (v1.5)."""
    side = (size - 1) // 2 + 1
    total = conv(side, side, 64, 49, 3)
    side, width = (side - 1) // 2 + 1, 64
    for filters, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(count):
            before = side
            if block == 0:
                side = (side - 1) // stride + 1
                total += conv(side, side, 4 * filters, 1, width)
            first = before if v1_5 else side
            total += conv(first, first, filters, 1, width)
            total += conv(side, side, filters, 9, filters) + conv(side, side, 4 * filters, 1, filters)
            width = 4 * filters
    return total + width * classes


def inverted(size, classes, stages, excite):
    """MACs of MobileNetV2 and its like: stages of blocks that expand, run depthwise, squeeze and excite or not, and project."""
    side, width = (size + 1) // 2, 32
    total = conv(side, side, 32, 9, 3)
    for t, filters, kernel, count, stride in stages:
        for block in range(count):
            wide = t * width
            total += conv(side, side, wide, 1, width) if t > 1 else 0
            side = (side + 1) // 2 if (block, stride) == (0, 2) else side
            total += conv(side, side, wide, kernel**2, 1) + 2 * wide * (width // 4) * excite
            total += conv(side, side, filters, 1, wide)
            width = filters
    return total + conv(side, side, 1280, 1, 320) + 1280 * classes


def mobilenet_v2(size, classes):
    """MACs of MobileNetV2 at width 1.0 per image."""
    stages = (
        (1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 32, 3, 3, 2), (6, 64, 3, 4, 2), (6, 96, 3, 3, 1), (6, 160, 3, 3, 2),
        (6, 320, 3, 1, 1),
    )  # fmt: skip
    return inverted(size, classes, stages, 0)


def vgg16(size, classes):
    """MACs of VGG-16 per image."""
    total, width = 0, 3
    for count, filters in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            total, width = total + conv(size, size, filters, 9, width), filters
        size //= 2
    return total + size * size * 512 * 4096 + 4096 * 4096 + 4096 * classes


def unet(size, filters, classes):
    """MACs of the padded U-Net of four levels; a transposed convolution goes by its input."""
    total, width = 0, 3
    for level in range(5):
        side, wide = size >> level, filters << level
        total, width = total + conv(side, side, wide, 9, width + wide), wide
    for level in range(4):
        side, wide = size >> level, filters << level
        total += conv(side // 2, side // 2, 2 * wide, 4, wide) + conv(side, side, wide, 9, 2 * wide + wide)
    return total + conv(size, size, classes, 1, filters)


def eighth(value):
    """The nearest multiple of 8, as the MobileNets round their widths."""
    return max(8, int(value + 4) // 8 * 8)


def mobilenet_v3_small(size, classes):
    """MACs of MobileNetV3-Small per image: expand, depthwise, squeeze and excite, project; a head of two layers."""
    side, width = (size + 1) // 2, 16
    total = conv(side, side, 16, 9, 3)
    for wide, filters, kernel, stride, excite in (
        (16, 16, 3, 2, 1), (72, 24, 3, 2, 0), (88, 24, 3, 1, 0), (96, 40, 5, 2, 1), (240, 40, 5, 1, 1), (240, 40, 5, 1, 1),
        (120, 48, 5, 1, 1), (144, 48, 5, 1, 1), (288, 96, 5, 2, 1), (576, 96, 5, 1, 1), (576, 96, 5, 1, 1),
    ):  # fmt: skip
        total += conv(side, side, wide, 1, width) if wide > 16 else 0
        side = (side + 1) // 2 if stride == 2 else side
        total += conv(side, side, wide, kernel**2, 1) + conv(side, side, filters, 1, wide)
        total += 2 * wide * eighth(wide / 4) * excite
        width = filters
    return total + conv(side, side, 576, 1, 96) + 576 * 1024 + 1024 * classes


def efficientnet_b0(size, classes):
    """MACs of EfficientNet-B0 per image: expand, depthwise, squeeze and excite, project."""
    stages = (
        (1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 40, 5, 2, 2), (6, 80, 3, 3, 2), (6, 112, 5, 3, 1), (6, 192, 5, 4, 2),
        (6, 320, 3, 1, 1),
    )  # fmt: skip
    return inverted(size, classes, stages, 1)


def densenet121(size, classes):
    """MACs of DenseNet-121 per image: each of 58 layers adds 32 channels by a 1x1 to 128 and a 3x3."""
    return densenet121_both(size)[0] + 1024 * classes


def densenet121_both(size):
    """MACs of DenseNet-121's convolutions, and elements that its batch norms read: all channels joined, before each of them."""
    side = (size - 1) // 2 + 1
    total, read = conv(side, side, 64, 49, 3), side**2 * 64
    side, width = (side - 1) // 2 + 1, 64
    for count, last in ((6, False), (12, False), (24, False), (16, True)):
        for _ in range(count):
            total += conv(side, side, 128, 1, width) + conv(side, side, 32, 9, 128)
            read += side**2 * (width + 128)
            width += 32
        read += side**2 * width
        if not last:
            total += conv(side, side, width // 2, 1, width)
            side, width = side // 2, width // 2
    return total, read


def convnext_tiny(size, classes):
    """MACs of ConvNeXt-T per image: patches of 4, then depthwise 7x7 and two dense layers per block, halving between."""
    side = size // 4
    total, before = conv(side, side, 96, 16, 3), 96
    for count, width in ((3, 96), (3, 192), (9, 384), (3, 768)):
        if width != before:
            side //= 2
            total += conv(side, side, width, 4, before)
        total += count * (conv(side, side, width, 49, 1) + 2 * conv(side, side, 4 * width, 1, width))
        before = width
    return total + 768 * classes


def dcgan(noise, filters):
    """MACs of the DCGAN generator per image: every input element times a kernel 4x4 for every output channel."""
    total, side, width = 0, 1, noise
    for channels in (8 * filters, 4 * filters, 2 * filters, filters, 3):
        total += conv(side, side, channels, 16, width)
        side, width = 4 if side == 1 else 2 * side, channels
    return total


def mlp(*widths):
    """MACs of dense layers in a row, per row of input."""
    return sum(before * after for before, after in pairwise(widths))


def dlrm(batch, width, scale):
    """MACs of the recommender: two MLPs and the square of dot products of 26 looked-up vectors and the bottom's."""
    bottom = mlp(13, 512 // scale, 256 // scale, 64 // scale, width)
    top = mlp(27 * 26 // 2 + width, 512 // scale, 256 // scale, 1)
    return batch * (bottom + 27 * 27 * width + top)


def pointnet(points, classes, scale, batch=1):
    """MACs of PointNet: layers per point, two transforms found by layers per point and per cloud, and applied to points."""
    wide, turned = 1024 // scale, 64 // scale
    total = 0
    for width in (3, turned):
        total += points * (mlp(width, 64 // scale, 128 // scale, wide) + width * width)
        total += mlp(wide, 512 // scale, 256 // scale, width * width)
    total += points * (mlp(3, turned, turned) + mlp(turned, 64 // scale, 128 // scale, wide))
    return batch * (total + mlp(wide, 512 // scale, 256 // scale, classes))
