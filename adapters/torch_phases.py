"""Records a training step of a PyTorch model: every op that reaches the dispatcher, with its phase and its module.

* An op of the backward pass belongs to the module in whose forward its autograd node was made (by the node's sequence
  number).
* It is a ``weight-gradient`` where its result flows into nothing but gradients of parameters, or of what was computed
  from parameters alone (a transposed weight); an ``input-gradient`` otherwise, also where both need it.
* One call that gives several gradients (``output_mask``) is one record per gradient; ``part`` says which.
* A gradient added to another one belongs to where both arrive.
"""

import bisect
from typing import Any, Dict, List, Set, Tuple

import torch
from torch.autograd.function import BackwardCFunction

from ..records import FORWARD, INPUT_GRADIENT, LOSS, LOSS_LAYER, RECOMPUTATION, WEIGHT_GRADIENT, Op
from .torch_model import ModulePath
from .torch_records import tensor_record, tensors_in
from .trace_torch import Recorder, dispatched, is_work

NESTED = (
    "a backward pass inside of the backward pass is not followed (checkpointing with use_reentrant=True does that: "
    "give use_reentrant=False)"
)
WEIGHT, INPUT = 1, 2
"""What a gradient is taken with respect to; an op may serve both."""


class Slot(object):
    """Where one result of an autograd node goes: to a parameter's gradient or on, and the layer it arrives in."""

    def __init__(self, goal, layer):
        # type: (int, str) -> None
        self.goal = goal
        self.layer = layer


class TrainingPath(ModulePath):
    """Module paths that remember in whose forward each autograd node was made."""

    def __init__(self, root):
        # type: (torch.nn.Module) -> None
        super(TrainingPath, self).__init__(root)
        self._since = [0]
        self._layers = [""]

    def mark(self, layer):
        # type: (str) -> None
        """From here on nodes are made in this layer."""
        self._since.append(torch.autograd._get_sequence_nr())
        self._layers.append(layer)

    def made_in(self, node):
        # type: (int) -> str
        """The layer in which the node of this sequence number was made."""
        return self._layers[bisect.bisect_right(self._since, node) - 1]

    def _push(self, module, inputs):
        # type: (torch.nn.Module, Any) -> None
        super(TrainingPath, self)._push(module, inputs)
        self.mark(self.current)

    def _pop(self, module, inputs, outputs):
        # type: (torch.nn.Module, Any, Any) -> None
        super(TrainingPath, self)._pop(module, inputs, outputs)
        self.mark(self.current)


class Pending(object):
    """A backward op whose phase is known when its node is done."""

    def __init__(self, op, inputs, outputs):
        # type: (Op, List[Any], List[Any]) -> None
        self.op = op
        self.inputs = inputs
        self.outputs = outputs


class TrainingRecorder(Recorder):
    """Records every dispatched op of a training step with its phase."""

    def __init__(self, path, module):
        # type: (TrainingPath, torch.nn.Module) -> None
        super(TrainingRecorder, self).__init__(path)
        self.path = path  # type: TrainingPath
        self.phase = FORWARD
        self.owner = ""
        self._newest = torch.autograd._get_sequence_nr()
        self._clean = {}  # type: Dict[int, Any]  # storages that no input of the model went into, kept alive
        self._of_weights = set()  # type: Set[int]  # nodes that no input of the model went into
        self._loss_from = None  # type: Any
        self._slots = {}  # type: Dict[int, List[Slot]]
        self._pending = []  # type: List[Pending]
        self._arrived = {}  # type: Dict[int, Slot]  # results of the node that was done last
        self._done = None  # type: Any
        self._owners = {id(p): name.rpartition(".")[0] for name, p in module.named_parameters()}
        for tensor in list(module.parameters()) + list(module.buffers()):
            self._set_clean(tensor, True)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # type: (Any, Any, Any, Any) -> Any
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if self.paused or not is_work(func):
            return out
        node = torch._C._current_autograd_node()
        op = dispatched(func, args, kwargs, out, self.next_id(), self.where())
        if node is None:
            if self.phase == FORWARD:
                self._follow(func, args, kwargs, out)
            self.add(op._replace(phase=self.phase))
        elif torch.is_grad_enabled():  # only what is recomputed for the backward pass turns gradients on
            self.add(op._replace(phase=RECOMPUTATION, layer=self.path.current or op.layer))
        elif _is_leaf(node):  # a gradient arrives
            self.add(op._replace(phase=WEIGHT_GRADIENT))
        else:
            self._backward(node._sequence_nr(), op, tensors_in([*args, *kwargs.values()]), out)
        return out

    def where(self):
        # type: () -> str
        """Layer of what runs now."""
        node = torch._C._current_autograd_node()
        if node is not None and _is_leaf(node):
            return self._owners.get(id(node.variable), "")
        if node is not None:
            return self.path.made_in(node._sequence_nr())
        return self.path.current if self.phase == FORWARD else self.owner

    def begin(self, phase, layer):
        # type: (str, str) -> None
        """What follows belongs to this phase and layer."""
        self.phase, self.owner = phase, layer
        if phase == LOSS and self._loss_from is None:
            self._loss_from = torch.autograd._get_sequence_nr()
            self.path.mark(layer)

    # Forward: which nodes have nothing to do with the model's inputs.

    def _follow(self, func, args, kwargs, out):
        # type: (Any, Any, Any, Any) -> None
        now = torch.autograd._get_sequence_nr()
        clean = all(self._is_clean(t) for t in tensors_in([*args, *kwargs.values()]))
        if clean and now > self._newest:  # an op's node is made right before it is dispatched
            self._of_weights.add(now - 1)
        self._newest = now
        for tensor in tensors_in(out):
            self._set_clean(tensor, clean)

    def _is_clean(self, tensor):
        # type: (torch.Tensor) -> bool
        return _storage(tensor)[0] in self._clean

    def _set_clean(self, tensor, clean):
        # type: (torch.Tensor, bool) -> None
        key, storage = _storage(tensor)
        if not clean:
            self._clean.pop(key, None)
        elif key is not None:
            self._clean[key] = storage

    # Backward: what each op's result is needed for.

    def watch(self, root):
        # type: (Any) -> None
        """Ask every node behind this one to say when it is done."""
        seen = {root}
        stack = [root]
        while stack:
            node = stack.pop()
            behind = [n for n, _ in node.next_functions]
            self._slots[node._sequence_nr()] = [self._slot(n, node) for n in behind]
            node.register_hook(_Done(self, node._sequence_nr()))
            for other in behind:
                if other is not None and other not in seen and not _is_leaf(other):
                    seen.add(other)
                    stack.append(other)

    def _slot(self, node, source):
        # type: (Any, Any) -> Slot
        here = self.path.made_in(source._sequence_nr())
        if node is None or _is_leaf(node):
            return Slot(WEIGHT, here)
        goal = WEIGHT if self._only_weights(node._sequence_nr(), node) else INPUT
        return Slot(goal, self.path.made_in(node._sequence_nr()))

    def _only_weights(self, number, node):
        # type: (int, Any) -> bool
        return number in self._of_weights and not isinstance(node, BackwardCFunction)

    def _backward(self, node, op, inputs, out):
        # type: (int, Op, List[Any], Any) -> None
        if node == self._done:
            self._accumulated(op, inputs)
            return
        if node not in self._slots:
            raise RuntimeError(NESTED)
        self._done, self._arrived = None, {}
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        self._pending.append(Pending(op, inputs, results))

    def _accumulated(self, op, inputs):
        # type: (Op, List[Any]) -> None
        """What runs between a node's end and the next one's beginning adds its results to those of other nodes."""
        found = [self._arrived[id(t)] for t in inputs if id(t) in self._arrived]
        goal = INPUT if any(s.goal == INPUT for s in found) or not found else WEIGHT
        layer = found[0].layer if found else op.layer
        self.add(op._replace(layer=layer, phase=LOSS if layer == LOSS_LAYER else _phase(goal)))

    def done(self, node, gradients):
        # type: (int, Tuple[Any, ...]) -> None
        """A node has made its results: settle its ops, the last one first."""
        slots = self._slots[node]
        needs = {}  # type: Dict[int, int]
        for slot, gradient in zip(slots, gradients):
            if gradient is not None:
                needs[id(gradient)] = needs.get(id(gradient), 0) | slot.goal
        goals = []  # type: List[List[int]]
        for pending in reversed(self._pending):
            mine = [0 if t is None else needs.get(id(t), 0) for t in pending.outputs]
            goals.append(mine)
            whole = 0
            for goal in mine:
                whole |= goal
            for tensor in pending.inputs:
                needs[id(tensor)] = needs.get(id(tensor), 0) | whole
        default = INPUT if any(s.goal == INPUT for s in slots) else WEIGHT
        for pending, mine in zip(self._pending, reversed(goals)):
            self._settle(node, pending, mine, default)
        self._pending = []
        self._done = node
        # ids alone: who holds a gradient makes autograd copy it; the engine keeps those that go anywhere alive
        self._arrived = {id(g): s for g, s in zip(gradients, slots) if g is not None}

    def _settle(self, node, pending, goals, default):
        # type: (int, Pending, List[int], int) -> None
        op, mask = pending.op, pending.op.attrs.get("output_mask")
        if not mask or len(mask) != len(pending.outputs):
            whole = 0
            for goal in goals:
                whole |= goal
            self.add(op._replace(phase=self._phase_of(node, whole or default)))
            return
        for part, wanted in enumerate(mask):
            if wanted:
                self.add(
                    op._replace(
                        id=self.next_id(),
                        outputs=tuple(tensor_record(t) for t in tensors_in(pending.outputs[part])),
                        attrs=dict(op.attrs, part=part),
                        phase=self._phase_of(node, goals[part] or default),
                    )
                )

    def _phase_of(self, node, goal):
        # type: (int, int) -> str
        if self._loss_from is not None and node >= self._loss_from:
            return LOSS
        return _phase(WEIGHT if node in self._of_weights and goal != INPUT else goal)


class _Done(object):
    """Hook of one node; it holds no node, so that none is held by itself."""

    def __init__(self, recorder, node):
        # type: (TrainingRecorder, int) -> None
        self.recorder, self.node = recorder, node

    def __call__(self, gradients, _given):
        # type: (Any, Any) -> None
        self.recorder.done(self.node, gradients)


def _phase(goal):
    # type: (int) -> str
    return INPUT_GRADIENT if goal & INPUT else WEIGHT_GRADIENT


def _is_leaf(node):
    # type: (Any) -> bool
    return hasattr(node, "variable")  # AccumulateGrad


def _storage(tensor):
    # type: (torch.Tensor) -> Tuple[Any, Any]
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and wrapped tensors have none
        return None, None
    return storage._cdata, storage
