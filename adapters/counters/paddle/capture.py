"""Converts a PyTorch model with X2Paddle, runs paddle.flops and returns its ledger; extra hooks read each layer's number."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch

from ....core.records import LIVE, MAC, Entry, Ledger, Op, Sighting, Tensor
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.module_path import module_paths
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from .. import add_rest
from ..limits import OF_MACHINE, SHOWN

MAKES_ONE_FLOAT_INPUT = (
    "paddle.flops makes one input of random floats (paddle/hapi/dynamic_flops.py:133), and this model takes %s"
)
NAMED = 5
"""Operators that X2Paddle does not know, of which a reason gives the names."""


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of the converted model. Raises BeyondCounter for what X2Paddle or paddle.flops does not take."""
    import paddle
    import x2paddle

    if model.device != "cpu":
        raise BeyondCounter(
            f"X2Paddle copies values of weights, and {model.device} is not the CPU: run it with --device cpu"
        )
    module, inputs = model.build("cpu"), list(model.example("cpu"))
    if not any(tensor.is_floating_point() for tensor in inputs):
        raise BeyondCounter(MAKES_ONE_FLOAT_INPUT % "no floats")
    with capture_output() as said:
        net, paths, taken = _stop_at_error(
            "X2Paddle cannot convert this model", said, lambda: convert_module(module, inputs)
        )
        if len(taken) != 1:
            raise BeyondCounter(MAKES_ONE_FLOAT_INPUT % f"{len(taken)} tensors")
        ((shape, dtype),) = taken
        if not dtype.startswith("float"):
            raise BeyondCounter(MAKES_ONE_FLOAT_INPUT % f"one of {dtype}")
        total, calls = _stop_at_error(
            "paddle.flops stops on the converted model", said, lambda: count_layers(net, shape)
        )
    entries, sightings = _records(calls, paths)
    add_rest(entries, total)
    packages = {"paddlepaddle": version_of("paddlepaddle", paddle), "x2paddle": version_of("x2paddle", x2paddle)}
    numbers = {**versions(module), **packages}
    return Ledger(counter, "torch", MAC, model.device, numbers, total, tuple(entries), tuple(sightings))


@contextlib.contextmanager
def capture_output() -> Any:
    """Within it, what X2Paddle and paddle print goes into the text that it gives, and log lines of INFO are dropped."""
    said, level = io.StringIO(), logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with contextlib.redirect_stdout(said):
            yield said
    finally:
        logging.disable(level)


def _stop_at_error(what: str, said: io.StringIO, run: Callable[[], Any]) -> Any:
    """What ``run`` returns. Raises BeyondCounter with its error; X2Paddle prints operators that it does not know, and exits where
    torch.jit.trace stops (x2paddle/decoder/pytorch_decoder.py:83)."""
    try:
        return run()
    except OF_MACHINE:
        raise
    except (Exception, SystemExit) as error:
        if list(walk_tb(error.__traceback__))[-1][0].f_code.co_filename == __file__:
            raise  # ours
        lines = [line.strip() for line in said.getvalue().splitlines()]
        unknown = sorted(line.strip("= ") for line in lines if line.startswith("========== ") and "::" in line)
        text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        if unknown:
            more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
            text = f"it knows no {', '.join(unknown[:NAMED])}{more}"
        elif isinstance(error, SystemExit) and lines:
            text = f"torch.jit.trace: {next(line for line in lines if line)}"
        raise BeyondCounter(f"{what} ({text[:SHOWN].rstrip('.:; ')})") from error


def convert_module(module: torch.nn.Module, inputs: list[Any]) -> tuple[Any, dict[str, str], list[Any]]:
    """The paddle.nn.Layer, the path of the PyTorch module by the name of each layer in it, and shape and dtype of each input that
    it uses.

    These are the steps of pytorch2paddle (x2paddle/convert.py:395 to :408) up to the code that it writes, which names the layers
    by their kind; the graph that it is made of has the scope of each. No export of a static model follows.
    """
    import paddle
    from x2paddle.decoder.pytorch_decoder import TraceDecoder
    from x2paddle.op_mapper.pytorch2paddle.pytorch_op_mapper import PyTorchOpMapper
    from x2paddle.optimizer.optimizer import GraphOptimizer

    graph = PyTorchOpMapper(TraceDecoder(module, inputs)).paddle_graph
    graph.build()
    GraphOptimizer(source_frame="pytorch", jit_type="trace").optimize(graph)
    known = set(module_paths(module).values())
    paths = {
        layer.outputs[0]: _path(layer.scope_name, known)
        for layer in graph.get_global_layers().values()
        if layer.kernel.startswith("paddle.nn.") and "functional" not in layer.kernel
    }
    with tempfile.TemporaryDirectory() as folder:
        graph.gen_code(folder)
        graph.dump_parameter(folder)
        spec = importlib.util.spec_from_file_location("x2paddle_code", Path(folder) / "x2paddle_code.py")
        assert spec is not None
        assert spec.loader is not None
        code = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(code)
        net = getattr(code, graph.name)()
        net.set_dict(paddle.load(str(Path(folder) / "model.pdparams")), use_structured_name=True)
    return net, paths, [graph.inputs_info[name] for name in graph.inputs]


def _path(scope: str, known: set[str]) -> str:
    """``layers/0__1`` is the module ``layers.0``, which X2Paddle met once more (pytorch_op_mapper.py:321)."""
    parts = scope.split("/") if scope else []
    for path in (".".join(parts), ".".join(part.rpartition("__")[0] or part for part in parts)):
        if path in known:
            return path
    raise BeyondCounter(f"X2Paddle names the scope {scope}, which is no module of this model")


Call = tuple[str, Any, tuple[Tensor, ...], tuple[Tensor, ...]]
"""A layer's name in the converted model, the layer, and its inputs and outputs."""


def count_layers(net: Any, input_size: list[int]) -> tuple[int, list[tuple[Call, int]]]:
    """The total, and each layer's call with its number. A hook of the whole model reads them before paddle.flops does."""
    import paddle

    calls: list[Call] = []
    values: dict[str, int] = {}

    def note(name: str) -> Callable[[Any, Any, Any], None]:
        return lambda layer, inputs, outputs: calls.append((name, layer, _tensors(inputs), _tensors(outputs)))

    def read_layers(_net: Any, _inputs: Any, _outputs: Any) -> None:
        for name, layer in net.named_sublayers():
            if "total_ops" in layer._buffers:
                values[name] = int(layer.total_ops)

    for name, layer in net.named_sublayers():
        layer.register_forward_post_hook(note(name))
    net.register_forward_post_hook(read_layers)
    total = int(paddle.flops(net, input_size))
    found: list[tuple[Call, int]] = []
    for call in calls:
        found.append((call, values.pop(call[0], 0)))  # a layer's number stands at its first call
    return total, found


def _tensors(values: Any) -> tuple[Tensor, ...]:
    """The tensors among these arguments."""
    import paddle

    listed = values if isinstance(values, tuple | list) else (values,)
    return tuple(
        Tensor(tuple(int(size) for size in value.shape), str(value.dtype).replace("paddle.", ""))
        for value in listed
        if isinstance(value, paddle.Tensor)
    )


def _records(found: list[tuple[Call, int]], paths: dict[str, str]) -> tuple[list[Entry], list[Sighting]]:
    """An entry and a sighting for all calls that are alike; the entry has the name of the first layer."""
    alike: dict[Any, list[tuple[str, int]]] = {}
    made: dict[Any, Op] = {}
    for (name, layer, inputs, outputs), value in found:
        attrs = _settings(layer)
        path = paths.get(name.partition(".")[0], "")
        key = (path, type(layer).__name__, inputs, outputs, repr(attrs))
        made.setdefault(key, Op(name, f"paddle.nn.{type(layer).__name__}", path, inputs, outputs, attrs))
        alike.setdefault(key, []).append((name, value))
    entries, sightings = [], []
    for key, op in made.items():
        value = sum(number for _, number in alike[key])
        if value:
            entries.append(Entry(op.id, op.layer, op.op, value, len(alike[key])))
        sightings.append(Sighting(op._replace(calls=len(alike[key])), op.id, LIVE))
    return entries, sightings


def _settings(layer: Any) -> dict[str, Any]:
    """What the formulas read of a layer: its weight's shape, its groups, whether it has a bias."""
    attrs: dict[str, Any] = {}
    for name in ("weight", "bias"):
        held = layer._parameters.get(name)
        attrs[name] = None if held is None else [int(size) for size in held.shape]
    if hasattr(layer, "_groups"):
        attrs["groups"] = int(layer._groups)
    return attrs
