"""Runs fvcore's FlopCountAnalysis and returns its ledger, one entry per module and operator; ``graph_ledger`` serves its forks.

fvcore counts the nodes of a TorchScript trace, one by one.  That graph is kept, so every node's shapes are known as fvcore saw
them, and what fvcore's handle returns for a node is recorded with the node's module.  fvcore knows the modules that
``named_modules`` lists; the layers that Keras holds in lists are in the trace as well, under scopes that are hidden from fvcore.
Python 3.8, torch 1.x and later.
"""

from contextlib import contextmanager
from numbers import Number
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ....core.records import DEAD, MAC, TRACED_ONLY, TWO_TENSORS, UNTRACED, Entry, Ledger, Op, Sighting
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.module_path import ModulePath
from ...shared.distribution import version_of
from ...shared.refusal import CannotCount
from ..limits import explain_limits
from .graph_nodes import dropped_ops, is_seen, iterate_made, node_record
from .is_tracing import TracingQuestions, find_differences, give_one_tensor, has_twice
from .limits import limits

BOOKED_ON_MODEL = (
    "%s itself books what Keras' layers do on the model around them, since named_modules does not list them; here it "
    "stands by layer"
)


OURS = "layer:"
"""Prefix of the scopes that reconcile opens, which fvcore does not see."""


class Scopes(ModulePath):
    """Opens a scope of its own in the trace for every module that fvcore does not know of."""

    def __init__(self, root: torch.nn.Module) -> None:
        super().__init__(root)
        self.known = {name: self._names[module] for name, module in root.named_modules()}
        self.hidden = set(self._names) - set(root.modules())
        self.made: List[Tuple[str, Op]] = []  # every node of the trace with its scopes, also what PyTorch drops later

    def layer_of(self, scope: str, analysis: Any) -> str:
        """The layer of a node, of which fvcore's analysis knows the names of scopes."""
        innermost = scope.split("/")[-1]
        ours = innermost.startswith(OURS)
        return innermost[len(OURS) :] if ours else self.known[analysis.canonical_module_name(innermost)]

    def _push(self, module: torch.nn.Module, inputs: Any) -> None:
        super()._push(module, inputs)
        if module in self.hidden and torch._C._get_tracing_state():
            torch._C._get_tracing_state().push_scope(OURS + self.current)

    def _pop(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        super()._pop(module, inputs, outputs)
        state = torch._C._get_tracing_state()
        if module in self.hidden and state:
            state.pop_scope()
        if module is self.root and hasattr(state, "graph"):
            self.made = [(node.scopeName(), node_record(node, "", "")) for node in iterate_made(state.graph())]


class NodeInOwnScopes:
    """A node of the trace as fvcore sees it, without the scopes that are not its own."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def scopeName(self) -> str:
        """Its scopes, from the outermost to the innermost."""
        return "/".join(part for part in self._node.scopeName().split("/") if not part.startswith(OURS))


class WalkedGraph:
    """The trace as fvcore walks it, node by node; ``at`` is the current node."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.at: Any = None

    def nodes(self) -> Iterator[NodeInOwnScopes]:
        """Its nodes, in order."""
        for node in self.graph.nodes():
            self.at = node
            yield NodeInOwnScopes(node)


@contextmanager
def _keep_graphs(jit_analysis: Any, scopes: Scopes) -> Iterator[List[WalkedGraph]]:
    """Within it, the graphs that fvcore makes are kept, with a scope for every module."""
    walked: List[WalkedGraph] = []
    original = jit_analysis._get_scoped_trace_graph

    def make_graph(*args: Any) -> WalkedGraph:
        with scopes:
            walked.append(WalkedGraph(original(*args)))
        return walked[-1]

    jit_analysis._get_scoped_trace_graph = make_graph
    try:
        yield walked
    finally:
        jit_analysis._get_scoped_trace_graph = original


def _quiet(analysis: Any) -> Any:
    return analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")


def _whole(counter: str, amount: Any) -> int:
    if amount != int(amount):
        raise CannotCount(f"{counter} reports {amount!r}, which is not a whole number")
    return int(amount)


@contextmanager
def traceable_on(device: str) -> Iterator[None]:
    """Within it, torch.jit.trace works on that device; on meta, the kernel of convolutions is replaced."""
    if device != "meta":
        yield
        return
    from ...pytorch.tracing.meta_kernels import traceable

    with traceable():
        yield


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run FlopCountAnalysis on a fresh module (eval, no_grad) on ``model.device``."""
    from fvcore.nn import FlopCountAnalysis, jit_analysis

    return graph_ledger(counter, model, FlopCountAnalysis, jit_analysis)


def graph_ledger(counter: str, model: TorchModel, analyze: Any, jit_analysis: Any) -> Ledger:
    """The ledger of a counter with fvcore's interface, on a fresh module on ``model.device``.

    ``analyze`` is its class, and ``jit_analysis`` its module that makes the graph; the distribution has the counter's name.
    """
    number = version_of(counter, jit_analysis)
    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    scopes = Scopes(module)

    def layer_of(scope: str) -> str:
        return scopes.layer_of(scope, analysis)

    values: Dict[Tuple[str, str], int] = {}

    def note_handle(kind: str, handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def run_handle(*values_of: Any) -> Any:
            counts = handle(*values_of)
            for name, amount in ({entry_op(kind): counts} if isinstance(counts, Number) else counts).items():
                key = (layer_of(walked[-1].at.scopeName()), name)
                values[key] = values.get(key, 0) + _whole(counter, amount)
            return counts

        return run_handle

    smallest = analyze(torch.nn.Linear(1, 1), (torch.zeros(1, 1),))
    with _keep_graphs(jit_analysis, scopes) as walked, torch.no_grad(), explain_limits(
        limits(counter), smallest.total
    ), traceable_on(model.device), TracingQuestions() as asked:
        analysis = _quiet(analyze(module, inputs))
        analysis.set_op_handle(**{kind: note_handle(kind, handle) for kind, handle in analysis._op_handles.items()})
        total = _whole(counter, analysis.total())
    calls: Dict[Tuple[str, str], int] = {}
    sightings: List[Sighting] = []
    for node in walked[0].graph.nodes():
        if not is_seen(node):
            continue
        layer = layer_of(node.scopeName())
        op = node_record(node, f"node{len(sightings)}", layer)
        key = (layer, entry_op(node.kind()))
        calls[key] = calls.get(key, 0) + 1
        sightings.append(Sighting(op, "{}|{}".format(*key)))
    asked_then = TracingQuestions()
    if has_twice(inputs):
        sightings = compare_untold(sightings, _untold(model, analyze, jit_analysis, asked_then), {TWO_TENSORS: True})
    if asked.times or asked_then.times:
        sightings = compare_untold(sightings, _untold(model, analyze, jit_analysis, TracingQuestions(False)))
    all_made = [op._replace(layer=layer_of(scope)) for scope, op in scopes.made]
    for op in dropped_ops(all_made, [s.op for s in sightings if s.role != UNTRACED]):
        op = op._replace(id=f"node{len(sightings)}")
        sightings.append(Sighting(op, f"{op.layer}|{op.op}|{DEAD}", DEAD))
    entries = [Entry("{}|{}".format(*key), *key, value, calls.get(key, 0)) for key, value in values.items() if value]
    whole = sum(entry.value for entry in entries)
    if whole != total:
        raise CannotCount(f"the entries of {counter} add up to {whole}, its total is {total}")
    numbers = dict(versions(module), **{counter: number})
    unsupported = dict(analysis.unsupported_ops())
    notes = (BOOKED_ON_MODEL % counter,) if scopes.hidden else ()
    return Ledger(
        counter, "torch", MAC, model.device, numbers, total, tuple(entries), tuple(sightings), unsupported, notes
    )


def compare_untold(
    sightings: List[Sighting], untold: Optional[List[Op]], tags: Optional[Dict[str, Any]] = None
) -> List[Sighting]:
    """What the counter met, with the roles of what it met because the model's code knew of the trace, and of what it missed.

    ``tags`` are attributes that say how the code knew. ``sightings`` may be what another way of knowing left.
    """
    if untold is None:
        return sightings
    told = [s for s in sightings if s.role != TRACED_ONLY]
    others, missed = find_differences([s.op for s in told], untold)
    ids = {told[at].op.id for at in others}

    def mark(op: Op) -> Op:
        return op._replace(attrs=dict(op.attrs, **tags or {}))

    compared = [
        s._replace(op=mark(s.op), role=TRACED_ONLY) if s.op.id in ids and s.role != UNTRACED else s
        for s in sightings
        if s.op.id not in ids or s.role != UNTRACED
    ]
    found = enumerate(missed, len(sightings))
    return compared + [Sighting(mark(op)._replace(id=f"untold{at}"), "", UNTRACED) for at, op in found]


def _untold(model: TorchModel, analyze: Any, jit_analysis: Any, asked: TracingQuestions) -> Optional[List[Op]]:
    """The nodes of the graph of a fresh module that gets one tensor wherever it is given one; None where there is none then."""
    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    scopes: Scopes = Scopes(module)
    give_one_tensor(module, inputs)
    try:
        with _keep_graphs(jit_analysis, scopes) as walked, torch.no_grad(), traceable_on(model.device), asked:
            analysis = _quiet(analyze(module, inputs))
            analysis.total()
    except Exception:  # their code may know why it asks
        return None
    nodes = [node for node in walked[0].graph.nodes() if is_seen(node)]
    return [node_record(node, "", scopes.layer_of(node.scopeName(), analysis)) for node in nodes]


def entry_op(kind: str) -> str:
    """The name under which fvcore books a node: without namespace, ``conv`` for _convolution (jit_handles.py:170)."""
    name = kind.split("::")[-1]
    return "conv" if name == "_convolution" else name
