"""torchvision beside a PyTorch that its library was not built for: its operators are declared when it is imported, and only then.

A stand-in has what matters of the package: a library that cannot be loaded, and a shape for an operator of it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = """
import torch
torch.library.register_fake("torchvision::nms")(lambda dets, scores, iou_threshold: dets)
torch.library.register_fake("torchvision::qnms")(lambda dets, scores, iou_threshold: dets)
"""
TRY = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from reconcile.products.torchvision.pytorch import operators
if sys.argv[3] == "watch":
    operators.watch()
    operators.watch()
import torch
assert not hasattr(torch.ops.torchvision, "nms")
if len(sys.argv) > 4:
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", lambda dets, scores, iou_threshold: scores + iou_threshold, "CPU")
import torchvision
if len(sys.argv) > 4:
    assert torch.ops.torchvision.nms(torch.zeros(1, 4), torch.ones(1), 2.0).tolist() == [3]
assert [finder for finder in sys.meta_path if isinstance(finder, operators.DeclaringFinder)] == []
print(torch.ops.torchvision.deform_conv2d.default._schema)
"""


def imported(folder: Path, how: str, library: bytes | None, *declared: str) -> subprocess.CompletedProcess[str]:
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    if library is not None:
        (package / "_C.so").write_bytes(library)
    command = [sys.executable, "-c", TRY, str(folder), str(ROOT), how, *declared]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.frameworks
@pytest.mark.parametrize("declared", [pytest.param((), marks=pytest.mark.slow), ("declared",)])
def test_operators_are_declared_where_the_library_does_not_load(tmp_path: Path, declared: tuple[str, ...]) -> None:
    """But those that the program has declared itself."""
    done = imported(tmp_path, "watch", b"no library", *declared)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset")


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize(("how", "library"), [("", b"no library"), ("watch", None)])
def test_without_that_or_without_a_library_it_fails_as_it_did(tmp_path: Path, how: str, library: bytes | None) -> None:
    done = imported(tmp_path, how, library)
    assert done.returncode == 1
    assert "operator torchvision::nms does not exist" in done.stderr
