"""torchvision's operators as names and signatures, declared where its own library cannot be loaded.

torchvision's wheels are built against CUDA: beside a PyTorch for the CPU its library does not load, and ``import torchvision``
fails at the first operator that it gives a shape to.  A model that is counted needs none of them, so they get their schemas
and no kernel; a model that calls one gets torchvision's own sentence about it.  Python 3.6.
"""

import importlib.machinery
import os
import sys
from typing import Any, List

PACKAGE = "torchvision"
_REGIONS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
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
    library = torch.library.Library(PACKAGE, "DEF")
    _kept.append(library)
    for schema in SCHEMAS:
        library.define(schema)
