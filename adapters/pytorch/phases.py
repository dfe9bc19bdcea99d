"""TrainingRecorder: records every dispatched op of a PyTorch training step with its phase and its module.

* An op of the backward pass belongs to the module in whose forward its autograd node was made (by the node's sequence
  number).
* It is a ``weight-gradient`` if its result flows only into gradients of parameters, or of values computed from
  parameters alone (a transposed weight); an ``input-gradient`` otherwise, also where both need it.
* So is each op of a pass through another pass (``create_graph=True``): nodes that a pass makes are told apart as those of
  the forward pass are. A leaf is an input if its memory is the model's input or was computed from it.
* One call that gives several gradients (``output_mask``, ``ALL_AT_ONCE``) is one record per gradient; ``part`` says which.
  A kernel that computes them all also computes those that are not needed.
* The sum of two gradients belongs to the module that receives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils._python_dispatch import TorchDispatchMode

from ...core.records import (
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    INSIDE,
    LOSS,
    LOSS_LAYER,
    RECOMPUTATION,
    WEIGHT_GRADIENT,
    Op,
)
from ..shared.refusal import CannotCount, FactoryError
from .module_tensors import is_lazy
from .tracing.dispatched_calls import DispatchedCall
from .tracing.followed_calls import is_transformed
from .tracing.higher_order import WRITTEN_OUT, write_out
from .tracing.nodes import (
    INPUT,
    WEIGHT,
    Slot,
    TrainingPath,
    behind,
    is_leaf,
    is_recomputing,
    newest,
)
from .tracing.opened_kernels import OpenedKernel, Part, split_kernel
from .tracing.operator_facts import is_move
from .tracing.recorder import Recorder, is_work
from .tracing.records import storage_of, tensor_record, tensors_in
from .tracing.tensor_memory import weak_reference
from .tracing.wrapped_functions import wrap_function

ENGINE = "_engine_run_backward"
"""The function of torch.autograd that Tensor.backward, torch.autograd.backward and checkpoints with use_reentrant=True call."""
ATTENTION = (
    *(f"aten._scaled_dot_product_{kind}_attention_backward" for kind in ("flash", "efficient", "cudnn")),
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    *(f"aten._{kind}_attention_backward" for kind in ("flash", "efficient", "cudnn")),
    "torch_attn._varlen_attn_backward",
)
"""Kernels that compute the gradients of query, key and value, whichever are needed."""
ALL_AT_ONCE: dict[str, dict[Any, tuple[int, ...]]] = {
    "torchvision._deform_conv2d_backward": {0: (0,), 1: (1,), 2: (2,), 3: (3,), 4: (4,)},
    **{f"aten.{library}_batch_norm_backward": {i: (i,) for i in range(3)} for library in ("cudnn", "miopen")},
    **{kernel: {"scores": (0, 1), "value": (2,), "query": (0,), "key": (1,)} for kernel in ATTENTION},
    # the data; weights and biases; the first states
    "aten.mkldnn_rnn_layer_backward": {"activations": (0, 5, 6), "weights": (1, 2, 3, 4)},
    "aten._cudnn_rnn_backward": {"activations": (0, 1, 2), "weights": (3,)},
}
"""Operators that have no mask and always compute the gradient of each tensor that went in: the parts of their work, and the
outputs that each part is for."""
OF_WEIGHTS = "weights"
"""The part that is for parameters, also where it is not needed."""

NESTED_BACKWARD = (
    "a backward pass inside of the backward pass was begun otherwise than by torch.autograd.backward: it is not "
    "followed"
)


RUNS_FUNCTIONS_OF_ITS_OWN = (
    "The model calls %s, an operator that runs functions of its own: its training step cannot be traced; count the forward "
    "pass, or write its function out."
)


RAN_ON_ANOTHER_THREAD = "it ran on another thread, and a training step is followed on one only"


@dataclass
class Pass:
    """A backward pass that runs.

    Attributes:
        followed: Whether its gradients are followed themselves.
        depth: How many modules ran when it began.
        wrapped: Whether a node's results are wrapped and so not its own, as torch.func has it.
    """

    followed: bool
    depth: int
    wrapped: bool


class Unrecorded(TorchDispatchMode):
    """On a thread that a training step starts: what computes there belongs to no phase that a recorder follows."""

    def __init__(self, path: TrainingPath, layer: str) -> None:
        super().__init__()
        self.path, self.layer = path, layer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if is_work(func) and not is_move(func._schema):
            self.path.unseen.append(self.layer)
        return func(*args, **(kwargs or {}))


class TrainingRecorder(Recorder):
    """Records every dispatched op of a training step with its phase."""

    path: TrainingPath
    unfollowed = RAN_ON_ANOTHER_THREAD

    def __init__(self, path: TrainingPath, module: torch.nn.Module) -> None:
        super().__init__(path)
        self.phase = FORWARD  # of what runs outside of backward passes
        self.owner = ""  # its layer, outside of the forward pass
        self.trains = True  # whether anything requires a gradient
        self._newest = newest()
        self._clean: dict[int, Any] = {}  # storages that no input of the model went into, kept alive
        self._unmade: list[torch.Tensor] = []  # weights of lazy modules, which have no storage yet
        self._of_weights: set[int] = set()  # nodes that no input of the model went into
        self._slots: dict[int, list[Slot]] = {}  # by node
        self._pending: list[Part] = []
        self._arrived: dict[int, Slot] = {}  # results of the node that was done last
        self._done: Any = None
        self._running: list[Pass] = []  # backward passes, outermost first
        self._detached: set[int] = set()  # leaves inside of a checkpoint that are what went into it
        self._data: dict[int, Any] = {}  # storages of inputs and of what was computed from them, with weak references
        self._owners = {id(p): name.rpartition(".")[0] for name, p in module.named_parameters()}
        for tensor in list(module.parameters()) + list(module.buffers()):
            self.add_weight(tensor)

    @contextmanager
    def beside(self, layer: str) -> Iterator[None]:
        """See Recorder: nothing that a thread runs is recorded."""
        with Unrecorded(self.path, layer):
            yield

    def open_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See Recorder."""
        raise FactoryError(RUNS_FUNCTIONS_OF_ITS_OWN % func.name())

    def follow_inside(self, call: DispatchedCall, opened: OpenedKernel) -> None:
        """See Recorder."""
        if opened.has_gradients:
            self.follow(call)

    def place(self, call: DispatchedCall) -> None:
        """See Recorder."""
        node = torch._C._current_autograd_node()
        op = self.record(call, self.where())
        if node is None:
            if self.phase == FORWARD:
                self.follow(call)
            self.add(op._replace(phase=self.phase))
        elif self.is_recomputing():
            self.follow(call)
            self.add(op._replace(phase=RECOMPUTATION))
        else:
            self.follow_gradient(op.layer, call)
            self.add_gradient(node, op, call)

    def where(self) -> str:
        """Layer of what runs now."""
        node = torch._C._current_autograd_node()
        if node is None:
            return self.path.current if self.phase == FORWARD else self.owner
        if is_leaf(node):
            return self._owners.get(id(node.variable), "")
        if self.is_recomputing():
            return self.path.inner
        return self.path.made_in(node._sequence_nr())

    def is_recomputing(self) -> bool:
        """Whether what runs now is recomputed; a pass whose gradients are followed turns gradients on, too."""
        return is_recomputing() and not self.is_followed

    @property
    def is_followed(self) -> bool:
        """Whether a backward pass runs whose gradients are followed themselves."""
        return bool(self._running) and self._running[-1].followed

    def begin(self, phase: str, layer: str) -> None:
        """What follows belongs to this phase and layer."""
        self.phase, self.owner = phase, layer
        if phase == LOSS:
            self.path.mark(layer)

    # Forward: which nodes have nothing to do with the model's inputs.

    def follow(self, call: DispatchedCall) -> None:
        """Note of a call whether what came out was computed from parameters alone."""
        now = newest()
        if self._unmade:
            tensors, self._unmade = self._unmade, []
            for tensor in tensors:
                self.add_weight(tensor)
        clean = self.of_weights(call.inputs)
        if clean and now > self._newest:  # an op's node is made right before it is dispatched
            self._of_weights.add(now - 1)
        self._newest = now
        for tensor in call.outputs:
            self._set_clean(tensor, clean)
        if not clean:
            self.add_data(call.outputs)

    def follow_gradient(self, layer: str, call: DispatchedCall) -> None:
        """Note the same of an op of a backward pass, if that makes nodes: they are made in this layer."""
        now = newest()
        if self.is_followed:
            if now > self._newest:
                self.path.at(layer, now - 1)
            self.follow(call)
        self._newest = now

    def add_data(self, tensors: Iterable[torch.Tensor]) -> None:
        """These are inputs of the model, or computed from them."""
        for key, storage in map(storage_of, tensors):
            if key is not None and key not in self._data:
                self._data[key] = weak_reference(storage)

    def add_weight(self, tensor: torch.Tensor) -> None:
        """This is a parameter or a buffer of the model."""
        if is_lazy(tensor):
            self._unmade.append(tensor)
        else:
            self._set_clean(tensor, True)

    def of_weights(self, tensors: list[torch.Tensor]) -> bool:
        """Whether all of these were computed from parameters alone."""
        return all(storage_of(t)[0] in self._clean for t in tensors)

    def _set_clean(self, tensor: torch.Tensor, clean: bool) -> None:
        key, storage = storage_of(tensor)
        if not clean:
            self._clean.pop(key, None)
        elif key is not None:
            self._clean[key] = storage

    # Backward: what each op's result is needed for.

    @contextmanager
    def follow_passes(self, around: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Iterator[None]:
        """Within this, every backward pass is followed, also one inside of another, and each runs within ``around()``."""

        def follow(run: Callable[..., Any]) -> Callable[..., Any]:
            def run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
                create_graph = args[2] if len(args) > 2 else kwargs.get("create_graph")
                depth = len(self._running)
                self.attempt(self.begin_pass, roots, bool(create_graph))
                held, self._pending, self._done = self._pending, [], None
                try:
                    with around():
                        return run(roots, *args, **kwargs)
                finally:
                    self._pending, self._done = held, None
                    if len(self._running) > depth:
                        self.attempt(self.end_pass, self._running.pop())

            return run_backward

        with wrap_function(torch.autograd, ENGINE, follow), write_out(self.note_written):
            yield

    def note_written(self, name: str) -> None:
        """An operator that runs functions is called as these."""
        self.remarks += [WRITTEN_OUT % name] if WRITTEN_OUT % name not in self.remarks else []

    def begin_pass(self, roots: Any, followed: bool) -> None:
        """A backward pass from these tensors begins: hook every node behind them to report when it is done.

        Ops that are recomputed inside of a node belong to its layer.
        """
        outermost = not self._running
        for node in [n for t in tensors_in(roots) if t.grad_fn is not None for n in behind(t.grad_fn)]:
            number = node._sequence_nr()
            if number in self._slots:
                continue
            if not outermost:
                leaves = [n.variable for n, _ in node.next_functions if n is not None and is_leaf(n)]
                self._detached.update(id(leaf) for leaf in leaves if id(leaf) not in self._owners)
            self._slots[number] = [self._slot(n, node) for n, _ in node.next_functions]
            # the hooks have its number: if they held the node, it would be held by itself
            node.register_hook(partial(self.attempt, self.finish_node, number))
            if isinstance(node, BackwardCFunction):
                node.register_prehook(partial(self.attempt, self._begin_function, number))
        self._running.append(Pass(followed, len(self.path.running_paths), is_transformed()))

    def end_pass(self, ended: Pass) -> None:
        """The innermost backward pass has ended, by an exception perhaps."""
        if ended.followed:
            self.path.mark(self.path.inner)

    def _slot(self, node: Any, source: Any) -> Slot:
        here = self.path.made_in(source._sequence_nr())
        if node is None or is_leaf(node):
            return Slot(WEIGHT if node is None else self._goal_of_leaf(node), here)
        number = node._sequence_nr()
        only_weights = number in self._of_weights and not isinstance(node, BackwardCFunction)
        return Slot(WEIGHT if only_weights else INPUT, self.path.made_in(number))

    def _goal_of_leaf(self, node: Any) -> int:
        leaf = node.variable
        known = id(leaf) in self._owners or isinstance(leaf, torch.nn.Parameter)
        is_data = not known and storage_of(leaf)[0] in self._data
        return INPUT if is_data or id(leaf) in self._detached else WEIGHT

    def add_gradient(self, node: Any, op: Op, call: DispatchedCall) -> None:
        """Add an op of a backward pass, once it is known what its node's results are for."""
        number = node._sequence_nr()
        if is_leaf(node):  # a gradient arrives
            self.add(op._replace(phase=_phase(self._goal_of_leaf(node))))
        elif self.is_untold(node, number):
            self.add(op._replace(phase=BACKWARD))
        elif number == self._done:
            self._add_accumulation(op, call.inputs)
        else:
            self._done, self._arrived = None, {}
            results = list(call.out) if isinstance(call.out, (tuple, list)) else [call.out]
            opened = isinstance(op.attrs.get(INSIDE), list) and op.op not in ALL_AT_ONCE
            inside = call.opened.parts if opened else []
            self._pending += [part._replace(whole=op) for part in inside] or [Part(op, call.inputs, results)]

    def is_untold(self, _node: Any, number: int) -> bool:
        """Whether it cannot be told what the results of the node with this number are for."""
        if number not in self._slots:
            raise CannotCount(NESTED_BACKWARD)
        return False

    def _add_accumulation(self, op: Op, inputs: list[Any]) -> None:
        """What runs between a node's end and the next one's beginning adds its results to those of other nodes."""
        found = [self._arrived[id(t)] for t in inputs if id(t) in self._arrived]
        goal = INPUT if any(s.goal == INPUT for s in found) or not found else WEIGHT
        layer = found[0].layer if found else op.layer
        self.add(op._replace(layer=layer, phase=LOSS if layer == LOSS_LAYER else _phase(goal)))

    def _begin_function(self, node: int, _gradients: Any) -> None:
        """A node of Python code begins, which may recompute: what it makes is made in its own layer."""
        self.path.mark(self.path.made_in(node))

    def finish_node(self, node: int, gradients: tuple[Any, ...], _given: Any) -> None:
        """A node has made its results: settle its ops, the last one first."""
        slots = self._slots[node]
        needs: dict[int, int] = {}
        for slot, gradient in zip(slots, gradients):
            if gradient is not None:
                needs[id(gradient)] = needs.get(id(gradient), 0) | slot.goal
        goals: list[list[int]] = []
        for pending in reversed(self._pending):
            mine = [0 if t is None else needs.get(id(t), 0) for t in pending.outputs]
            goals.append(mine)
            whole = _join(mine)
            for tensor in pending.inputs:
                needs[id(tensor)] = needs.get(id(tensor), 0) | whole
        default = INPUT if any(s.goal == INPUT for s in slots) else WEIGHT
        inside: list[tuple[Op, Op]] = []
        for pending, mine in zip(self._pending, reversed(goals)):
            for op in self._settle(node, pending, mine, default):
                self.add(op) if pending.whole is None else inside.append((pending.whole, op))
        for op in split_kernel(inside):
            self.add(op)
        self._pending = []
        self._done = node
        # ids alone: who holds a gradient makes autograd copy it; the engine keeps those that go anywhere alive
        self._arrived = {id(g): s for g, s in zip(gradients, slots) if g is not None}

    def _settle(self, node: int, pending: Part, goals: list[int], default: int) -> Iterator[Op]:
        """The op with its phase, or one for each part of it."""
        op = pending.op
        mask = op.attrs.get("output_mask")
        if op.op in ALL_AT_ONCE:
            parts = ALL_AT_ONCE[op.op]
        elif mask and len(mask) == len(pending.outputs):
            parts = {part: (part,) for part, wanted in enumerate(mask) if wanted}
        else:
            yield op._replace(phase=self._phase_of(node, _join(goals) or default))
            return
        for part, outputs in parts.items():
            unneeded = WEIGHT if part == OF_WEIGHTS or node in self._of_weights else INPUT
            goal = _join([goals[i] for i in outputs]) or (default if part in outputs else unneeded)
            yield op._replace(
                outputs=tuple(tensor_record(t) for i in outputs for t in tensors_in(pending.outputs[i])),
                attrs=dict(op.attrs, part=part),
                phase=self._phase_of(node, goal),
            )

    def _phase_of(self, node: int, goal: int) -> str:
        if self.path.made_in(node) == LOSS_LAYER:
            return LOSS
        return _phase(WEIGHT if node in self._of_weights and goal != INPUT else goal)


def _join(goals: Iterable[int]) -> int:
    """What a call is for whose results are for these."""
    return reduce(or_, goals, 0)


def _phase(goal: int) -> str:
    return INPUT_GRADIENT if goal & INPUT else WEIGHT_GRADIENT
