"""Turns torch.compile off: models and functions that it compiled run eagerly, as they are written, in traces and counters.

A trace has the ops of the model, not the kernels that a compiler fuses them into; thop and fvcore cannot run compiled models.
Functions need PyTorch 2.6 or later for this; modules work in every version.  Kernels of TorchScript cannot be turned off and
are reported (``kind_of_kernel``).  Python 3.8, torch 1.x and later.
"""

import sys
from contextlib import ExitStack, contextmanager
from types import FunctionType, MethodType
from typing import Any, Dict, Iterator, List
from weakref import WeakKeyDictionary

import torch

COUNTED_AS_WRITTEN = (
    "torch.compile: what the model compiles is run as it is written, so this is the work before a compiler fuses any of "
    "it"
)
"""Note of the trace of such a model."""

OPERATORS = ("torch._higher_order_ops.", "torch.nn.attention.")
"""PyTorch's own modules that compile what they run, whether or not the model's author does."""

COMPILER = "torch._dynamo.eval_frame"

SCRIPT = "(TorchScript)"
TORCHSCRIPT_RUNS_KERNELS = (
    "TorchScript runs %s here, which PyTorch's dispatcher does not meet, and nothing of it is recorded: give the module before "
    "torch.jit.optimize_for_inference, or before it was called with a fuser"
)
"""Problem of a trace."""


def unwrap_module(module: Any) -> Any:
    """The module without what torch.compile has wrapped around it and its parts, and whether there was any; in place."""
    root = _inner(module)
    compiled = root is not module
    seen: List[Any] = []
    pending = [root]
    while pending:
        part = pending.pop()
        if part in seen or isinstance(part, torch.jit.ScriptModule):
            continue
        seen.append(part)
        if part.__dict__.get("_compiled_call_impl") is not None:  # by Module.compile()
            part._compiled_call_impl, compiled = None, True
        for name, function in _compiled_methods(type(part)).items():
            part.__dict__[name], compiled = MethodType(function, part), True
        for name, child in list(part._modules.items()):
            if child is not None:
                part._modules[name] = _inner(child)
                compiled = compiled or part._modules[name] is not child
                pending.append(part._modules[name])
    return root, compiled


CONVOLUTION = "mkldnn_convolution"
_dispatched: Any = WeakKeyDictionary()
"""By module, the function that runs in place of its forward."""


def dispatch_convolutions(root: Any) -> None:
    """Let convolutions of oneDNN in frozen modules (torch.jit.optimize_for_inference) reach the dispatcher, in place: a node of
    TorchScript's own becomes a call of the operator, which runs the same kernel on the same tensors."""
    for module in root.modules():
        if not isinstance(module, torch.jit.ScriptModule) or not hasattr(module, "forward"):
            continue
        graph = module._c._get_method("forward").inlined_graph
        nodes = graph.findAllNodes("prim::" + CONVOLUTION, True)
        if not nodes or next(iter(graph.inputs())).uses():  # it has none, or reads what the module holds
            continue
        for node in nodes:
            x, weight, bias, stride, padding, dilation, groups = node.inputs()
            made = graph.create("aten::" + CONVOLUTION, [x, weight, bias, padding, stride, dilation, groups], 1)
            made.insertBefore(node)
            node.output().replaceAllUsesWith(made.output())
            node.destroy()
        graph.eraseInput(0)
        module.forward = _dispatched[module] = torch._C._create_function_from_graph("forward", graph)


def kind_of_kernel(module: Any) -> str:
    """A kernel of TorchScript's own or of a compiler's by which it runs this module; '' if it runs operators alone.

    What a module runs stands in its graph, and what was made of that in the plans of its calls.
    """
    return next((kind for graph in _graphs(module) for kind in _kinds(graph) if _is_kernel(kind)), "")


def _graphs(module: Any) -> Iterator[Any]:
    replaced = _dispatched.get(module)
    forward = replaced or module._c._get_method("forward")  # the module's own may be another one here (CallAdapter)
    yield forward.inlined_graph
    try:
        yield from [plan.graph for plan in (replaced or module._c).get_debug_state().execution_plans.values()]
    except RuntimeError:  # it was not called by itself, or without a plan
        return


def _kinds(graph: Any) -> Iterator[str]:
    for node in graph.nodes():
        yield node.kind()
        for block in node.blocks():
            yield from _kinds(block)


def _is_kernel(kind: str) -> bool:
    """``prim::mkldnn_convolution``, ``prim::MKLDNNLayerNorm``, ``prim::TensorExprGroup``, ``prim::oneDNNFusionGroup`` and
    their like (torch/csrc/jit/passes/frozen_ops_to_mkldnn.cpp, tensorexpr_fuser.cpp, codegen/onednn)."""
    name = kind.partition("prim::")[2]
    return name.startswith(("mkldnn", "MKLDNN")) or name.endswith("Group")


def still_compiled(module: Any, copy: Any) -> Any:
    """The copy of a module, with the same parts compiled as Module.compile() has compiled in the module, which copies none."""
    for part, twin in zip(module.modules(), copy.modules()):
        if part.__dict__.get("_compiled_call_impl") is not None:
            twin._compiled_call_impl = part._compiled_call_impl
    return copy


def _inner(module: Any) -> Any:
    while type(module).__name__ == "OptimizedModule" and type(module).__module__ == COMPILER:
        module = module._orig_mod
    return module


def _compiled_methods(cls: type) -> Dict[str, Any]:
    """Name -> the function as it was written, of the methods that torch.compile decorates."""
    methods: Dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("torch."):
            methods.update(vars(base))
    return {
        name: method._torchdynamo_orig_callable
        for name, method in methods.items()
        if isinstance(method, FunctionType)
        and hasattr(method, "_torchdynamo_orig_callable")
        and not getattr(method, "_torchdynamo_disable", False)
    }


class Eager:
    """Whether a compiled function of the model's was called; and what makes such functions run as they are written."""

    def __init__(self, stack: ExitStack) -> None:
        self.called = False
        self._stack = stack
        self._asked = False

    def ask(self) -> None:
        """Ask the compiler, which is imported by now, to compile nothing from here on."""
        compiler: Any = sys.modules.get(COMPILER)
        if self._asked or not hasattr(compiler, "_callback_from_stance"):
            return
        self._asked = True
        self._stack.enter_context(torch.compiler.set_stance("force_eager"))
        chosen = compiler._callback_from_stance

        def watch_callback(callback: Any) -> Any:
            if callback not in (None, False):
                self._note(sys._getframe(2))
            return chosen(callback)

        self._replace(compiler, "_callback_from_stance", watch_callback)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._stack.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    def watch(self) -> None:
        """Let torch.compile return the functions that it is given: fvcore cannot trace what it would make of them."""
        original = torch.compile

        def compile(model: Any = None, **options: Any) -> Any:
            if model is None:
                return lambda function: compile(function, **options)
            if isinstance(model, torch.nn.Module):
                made = original(model, **options)  # which imports the compiler
                self.ask()
                return made
            self._note(sys._getframe(1))
            return model

        self._replace(torch, "compile", compile)

    def _note(self, caller: Any) -> None:
        self.called = self.called or not str(caller.f_globals.get("__name__", "")).startswith(OPERATORS)


@contextmanager
def eagerly() -> Iterator[Eager]:
    """Within this, functions that torch.compile has compiled run as they are written (PyTorch 2.6 and later)."""
    with ExitStack() as stack:
        eager = Eager(stack)
        eager.ask()
        if hasattr(torch, "compile"):  # PyTorch 2.0
            eager.watch()
        yield eager
