"""Formulas of ATen's grid samplers and antialiased resizing, and their gradients."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import UnknownWork, Work, formulas, prod
from .. import sampling
from ..shapes import attr, ints, out_shape, shape
from .gradients import by_part


def _grid(op: Op, index: int) -> tuple[int, int, int, int, int, bool]:
    """(places, channels, axes, mode, padding, align) of a picture at input ``index``, followed by its grid."""
    picture, grid = shape(op, index), shape(op, index + 1)
    if len(picture) < 3 or len(grid) != len(picture) or grid[-1] != len(picture) - 2:
        raise UnknownWork(f"{op.op} of a picture of {list(picture)} at a grid of {list(grid)}")
    options = (int(attr(op, name)) for name in ("interpolation_mode", "padding_mode", "align_corners"))
    mode, padding, align = options
    return prod(grid[:-1]), picture[1], len(picture) - 2, mode, padding, bool(align)


def _grid_sampler_backward(op: Op) -> Work:
    # g, picture, grid; the fallback for the CPU has no mask and makes both
    if "output_mask" not in op.attrs:
        return sampling.grid_sample_gradient(*_grid(op, 1), (True, True))
    return by_part(lambda op, mask: sampling.grid_sample_gradient(*_grid(op, 1), mask[:2]))(op)


def _reads(op: Op, small: tuple[int, ...], wide: tuple[int, ...]) -> tuple[int, ...]:
    """The taps of both axes, from sizes ``small`` to ``wide``."""
    interpolation, align = 4 if "bicubic" in op.op else 2, bool(attr(op, "align_corners"))
    scales = (op.attrs.get("scales_h"), op.attrs.get("scales_w"))
    factors = op.attrs.get("scale_factors") or scales
    return tuple(
        sampling.taps(size, wanted, interpolation, align, scale)
        for size, wanted, scale in zip(small, wide, factors, strict=True)
    )


def _resample_antialiased(op: Op) -> Work:
    sizes, wanted = shape(op), out_shape(op)
    return sampling.resample_antialiased(prod(sizes[:2]), sizes[2:], wanted[2:], _reads(op, sizes[2:], wanted[2:]))


def _antialiased_backward(op: Op) -> Work:
    wide = shape(op)
    return sampling.antialiased_gradient(prod(wide[:2]), _reads(op, ints(op, "input_size")[2:], wide[2:]))


formulas({
    "grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback": (  # picture (B, C, *in), grid (B, *out, axes)
        "sampling.grid_sample: ATen native/GridSampler.h, native/GridSampler.cpp",
        lambda op: sampling.grid_sample(*_grid(op, 0)),
    ),
    "grid_sampler_2d_backward grid_sampler_3d_backward _grid_sampler_2d_cpu_fallback_backward": (
        "sampling.grid_sample_gradient: ATen native/GridSampler.h, native/GridSampler.cpp", _grid_sampler_backward
    ),
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa": (
        "sampling.resample_antialiased: ATen native/cpu/UpSampleKernel.cpp", _resample_antialiased
    ),
    "_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward": (
        "sampling.antialiased_gradient: ATen native/cpu/UpSampleMoreKernel.cpp", _antialiased_backward
    ),
}, "aten.")  # fmt: skip
