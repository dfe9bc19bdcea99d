"""TensorFlow Lite models: converted from functions, and written by hand with the schema's own classes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
from tensorflow.lite.python import schema_py_generated as schema

from reconcile.adapters.tflite.load import read_model
from reconcile.adapters.tflite.trace import trace
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import UNENTERED, Op, Trace
from reconcile.launch.user_models import read_inputs
from reconcile.work import work_of


def convert(function: Callable[..., Any], *shapes: Sequence[int | None], **settings: Any) -> bytes:
    """A function of float32 tensors of these shapes as the converter writes it; ``settings`` are the converter's."""
    import tensorflow as tf

    module = tf.Module()
    made = tf.function(function, input_signature=[tf.TensorSpec(shape, tf.float32) for shape in shapes])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([made.get_concrete_function()], module)
    for name, value in settings.items():
        setattr(converter, name, value)
    data: bytes = converter.convert()
    return data


Given = tuple[str, Sequence[int], Any]
"""Type and shape of a tensor, and its values if it is a constant."""


def graph(
    tensors: Sequence[Given], operators: Sequence[tuple[str, Any, Sequence[int], Sequence[int]]], ends: Any
) -> Any:
    """A graph of tensors and of operators (name, options, inputs, outputs); ``ends`` are its inputs and outputs."""
    return tensors, operators, ends


def write(*graphs: Any, change: Callable[[Any], None] = lambda model: None) -> bytes:
    """A file with these graphs, after a change to the schema's own objects."""
    import numpy

    model = schema.ModelT(version=3, subgraphs=[], operatorCodes=[], buffers=[schema.BufferT()])
    for tensors, operators, (inputs, outputs) in graphs:
        made = schema.SubGraphT(inputs=list(inputs), outputs=list(outputs), tensors=[], operators=[])
        for number, (dtype, shape, values) in enumerate(tensors):
            kind = getattr(schema.TensorType, dtype.upper())
            tensor = schema.TensorT(name=f"t{number}", shape=list(shape), type=kind, hasRank=True)
            if values is not None:
                tensor.buffer = len(model.buffers)
                held = numpy.asarray(values, dtype).tobytes()
                model.buffers.append(schema.BufferT(data=numpy.frombuffer(held, numpy.uint8)))
            made.tensors.append(tensor)
        for name, options, read, written in operators:
            operator = schema.OperatorT(opcodeIndex=len(model.operatorCodes), inputs=list(read), outputs=list(written))
            code = schema.OperatorCodeT(customCode=name.partition(".")[2] or None, version=1)
            code.builtinCode = getattr(schema.BuiltinOperator, name.partition(".")[0])
            code.deprecatedBuiltinCode = min(code.builtinCode, 127)
            model.operatorCodes.append(code)
            if options is not None:
                operator.builtinOptions = options
                operator.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
            made.operators.append(operator)
        model.subgraphs.append(made)
    change(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def trace_of(data: bytes, *inputs: str, signature: str = "") -> Trace:
    """The trace of a file with these bytes and inputs."""
    return trace(read_model(data, "m.tflite", read_inputs(inputs) or None, signature)[0])


def flops(found: Trace, convention: str = "matmul") -> int:
    """The FLOPs of a trace, all of whose work is known under the convention."""
    return sum(BUILT_IN[convention].flops(work_of(op)) * op.calls for op in found.ops)


def unentered(found: Trace) -> list[tuple[str, str]]:
    """The operators that were not entered, and why."""
    return [(op.op, op.attrs[UNENTERED]) for op in found.ops if UNENTERED in op.attrs]


def pick_op(found: Trace, name: str) -> Op:
    """The one operator of this name."""
    (op,) = (op for op in found.ops if op.op == f"tflite.{name}")
    return op


def overwrite(data: bytes, at: int, number: int) -> bytes:
    """The bytes with an offset or a number of 32 bits in them replaced."""
    return data[:at] + struct.pack("<i", number) + data[at + 4 :]


def save_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    """A folder with these files."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder
