"""Exports the PyTorch model of a pair to ONNX (torch.onnx), for pairs without an ONNX model of their own."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...products.files.model_file import FileError
from ..shared.refusal import BeyondCounter
from .load import Model, read_model

NAME = "PyTorch's export of the model"
LIMIT = 200


def model(pair: Any, params: Any) -> Model:
    """The model as torch.onnx exports it, by the exporter that needs no other package. Raises BeyondCounter if it cannot."""
    import torch

    from ..pytorch.model import TorchModel

    side = TorchModel(pair, params)
    module = side.build("cpu")
    data = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad(), _disable_fused_kernels():
            warnings.simplefilter("ignore")  # the exporter warns of each value that it takes for a constant
            torch.onnx.export(module, tuple(side.example("cpu")), data, dynamo=False)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0][:LIMIT].rstrip(".")
        raise BeyondCounter(f"PyTorch cannot export this model to ONNX ({type(error).__name__}: {first})") from error
    try:
        return read_model(_valid(data.getvalue()), NAME, None)[0]
    except FileError as error:
        raise BeyondCounter(str(error).rstrip(".")) from error


@contextmanager
def _disable_fused_kernels() -> Iterator[None]:
    """Within this block, attention and encoder layers run their parts: their fused kernels have no export."""
    from torch.backends import mha

    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)


def _valid(data: bytes) -> bytes:
    """The exported model with the axes of every transpose as ONNX wants them: the exporter writes -1 where the model does."""
    import onnx

    proto = onnx.load_model_from_string(data)
    for node in proto.graph.node:
        if node.op_type == "Transpose":
            for attribute in node.attribute:
                attribute.ints[:] = [axis % len(attribute.ints) for axis in attribute.ints]
    written: bytes = proto.SerializeToString()
    return written
