"""Declares torchvision's operators (schemas only) where its compiled library cannot be loaded, so that its models can be counted.

torchvision's wheels are built against CUDA: beside a PyTorch for the CPU the library does not load, and ``import torchvision``
fails at the first operator that it registers a meta kernel for.  Here the schemas are registered, and torchvision is told that
its library is loaded.  Operators whose results a detector uses have a kernel (kernels.py); for the others PyTorch
reports that it lacks one.  Python 3.8.
"""

import importlib.machinery
import os
import sys
from typing import Any, List

PACKAGE = "torchvision"
_REGIONS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_PICTURE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_WHERE = "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w"
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, Tensor rois, {_REGIONS}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool(Tensor input, Tensor rois, {_REGIONS}) -> (Tensor, Tensor)",
    f"ps_roi_align(Tensor input, Tensor rois, {_REGIONS}, int sampling_ratio) -> (Tensor, Tensor)",
    f"ps_roi_pool(Tensor input, Tensor rois, {_REGIONS}) -> (Tensor, Tensor)",
    f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_WHERE}, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor",
    f"_roi_align_backward(Tensor grad, Tensor rois, {_REGIONS}, {_PICTURE}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_REGIONS}, {_PICTURE}) -> Tensor",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_REGIONS}, int sampling_ratio, {_PICTURE}) "
    "-> Tensor",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_REGIONS}, {_PICTURE}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_WHERE}, "
    "SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    f"{_REGIONS}, int sampling_ratio, bool aligned) -> Tensor",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    "_cuda_version() -> int",
)
"""As torchvision 0.28 registers them (torchvision/csrc/ops/*.cpp)."""
_kept: List[Any] = []
"""Holds the torch.library.Library: when it is deleted, its operators are gone."""


class DeclaringFinder:
    """Declares the operators when torchvision is imported, and finds nothing itself."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """None; see the class."""
        if name != PACKAGE:
            return
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is not None and spec.origin:
            declare_operators(os.path.dirname(spec.origin))


def watch() -> None:
    """Have the operators declared when torchvision is imported (Framework.declared_by), where its library does not load."""
    if PACKAGE not in sys.modules and not any(isinstance(finder, DeclaringFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, DeclaringFinder())


def declare_operators(folder: str) -> None:
    """Load the library in torchvision's folder, as torchvision will do, or declare its operators if that fails."""
    import torch

    names = [name for name in sorted(os.listdir(folder)) if name.startswith("_C.") and not _kept]
    for name in names:
        try:
            torch.ops.load_library(os.path.join(folder, name))
            return
        except (ImportError, OSError):
            continue
    if not names or not hasattr(torch, "library"):
        return
    from . import kernels as of_cpu

    library = torch.library.Library(PACKAGE, "FRAGMENT")
    _kept.append(library)
    kernels = dict(of_cpu.KERNELS, _cuda_version=lambda: -1)
    for schema in SCHEMAS:
        name = schema.partition("(")[0]
        if hasattr(torch.ops.torchvision, name):  # the program has declared it
            continue
        library.define(schema)
        if name in kernels:
            library.impl(name, kernels[name], "CompositeExplicitAutograd" if name.startswith("_") else "CPU")
    _take_for_loaded([os.path.join(folder, name) for name in names])


def _take_for_loaded(paths: List[str]) -> None:
    """Make ``torch.ops.load_library`` do nothing for these paths: torchvision loads them again (torchvision/extension.py)."""
    import torch

    load = torch.ops.load_library
    same = {os.path.realpath(path) for path in paths}

    def loads(path: str) -> None:
        if os.path.realpath(path) not in same:
            load(path)

    torch.ops.load_library = loads
