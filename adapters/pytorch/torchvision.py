"""torchvision's operators as names and signatures, declared where its own library cannot be loaded.

torchvision's wheels are built against CUDA: beside a PyTorch for the CPU its library does not load, and ``import torchvision``
fails at the first operator that it gives a shape to.  Here they get their schemas, and torchvision is told that its library is
there.  Those that a detector goes on from have a kernel (torchvision_kernels.py), and PyTorch says which of the others has none.
Python 3.6.
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
    "roi_align(Tensor input, Tensor rois, %s, int sampling_ratio, bool aligned) -> Tensor" % _REGIONS,
    "roi_pool(Tensor input, Tensor rois, %s) -> (Tensor, Tensor)" % _REGIONS,
    "ps_roi_align(Tensor input, Tensor rois, %s, int sampling_ratio) -> (Tensor, Tensor)" % _REGIONS,
    "ps_roi_pool(Tensor input, Tensor rois, %s) -> (Tensor, Tensor)" % _REGIONS,
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, %s, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor" % _WHERE,
    "_roi_align_backward(Tensor grad, Tensor rois, %s, %s, int sampling_ratio, bool aligned) -> Tensor"
    % (_REGIONS, _PICTURE),
    "_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, %s, %s) -> Tensor" % (_REGIONS, _PICTURE),
    "_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, %s, int sampling_ratio, %s) -> Tensor"
    % (_REGIONS, _PICTURE),
    "_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, %s, %s) -> Tensor" % (_REGIONS, _PICTURE),
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, %s, "
    "SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)" % _WHERE,
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    "%s, int sampling_ratio, bool aligned) -> Tensor" % _REGIONS,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    "_cuda_version() -> int",
)
"""As torchvision 0.28 registers them (torchvision/csrc/ops/*.cpp)."""
_kept = []  # type: List[Any]
"""A library's operators are gone when it is."""


class Finder(object):
    """Declares the operators when somebody imports torchvision, and finds nothing itself."""

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Any) -> None
        """None; see the class."""
        if name != PACKAGE:
            return
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is not None and spec.origin:
            declare(os.path.dirname(spec.origin))


def watch():
    # type: () -> None
    """From now on, torchvision can be imported beside a PyTorch that its library was not built for."""
    if PACKAGE not in sys.modules and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def declare(folder):
    # type: (str) -> None
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
    from . import torchvision_kernels

    library = torch.library.Library(PACKAGE, "DEF")
    _kept.append(library)
    for schema in SCHEMAS:
        library.define(schema)
    for name, kernel in torchvision_kernels.KERNELS.items():
        library.impl(name, kernel, "CPU")
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
    _take_for_loaded([os.path.join(folder, name) for name in names])


def _take_for_loaded(paths):
    # type: (List[str]) -> None
    """Have torchvision find that these libraries load: it tries again (torchvision/extension.py)."""
    import torch

    load = torch.ops.load_library
    same = {os.path.realpath(path) for path in paths}

    def loads(path):
        # type: (str) -> None
        if os.path.realpath(path) not in same:
            load(path)

    torch.ops.load_library = loads
