"""Records of traces and ledgers, as worker processes send them to the main process ("home"): frozen, and ready for JSON.

This file is imported inside legacy environments, so it keeps to Python 3.6 and the standard library.
A worker writes a :class:`Trace` or a :class:`Ledger`; home reads it back.  Nothing here knows a formula.
"""

from json import dumps, loads
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

SCHEMA = 1

MAC = "MAC"
FLOP = "FLOP"

LIVE = "live"
"""Role of an op that the outputs depend on."""
DEAD = "dead"
"""Role of an op that nothing depends on."""
INITIALIZER = "initializer"
"""Role of an op that makes a weight's first value, or the model's random input."""
DUPLICATE = "duplicate"
"""Role of an op of a second copy of the model in the graph."""
TRACED_ONLY = "traced-only"
"""Role of an op that the model runs only where its code is told that it is traced."""
UNTRACED = "untraced"
"""Role of an op that the model runs only where its code is told that nothing is traced: the counter did not meet it."""
ALIAS = "alias"
"""Role of a module at a second path: the counter adds it again there."""

FORWARD = "forward"
"""Phase of an op that the outputs need."""
BACKWARD = "backward"
"""Phase of an op that only the gradients need."""

LOSS = "loss"
"""Phase of an op of a training step's loss, forward or backward."""
LOSS_LAYER = "(loss)"
"""Layer of such an op, which is not a layer of the model."""
INPUT_GRADIENT = "input-gradient"
"""Phase of an op of the backward pass that a gradient with respect to an activation needs."""
WEIGHT_GRADIENT = "weight-gradient"
"""Phase of an op of the backward pass that only a gradient with respect to a parameter needs."""
RECOMPUTATION = "recomputation"
"""Phase of an op that the backward pass recomputes because its result was not kept (activation checkpointing)."""
INFERENCE = "inference"
"""Phase of an op of a model that is called without gradients, in a step that trains: an evaluation, a teacher, a frozen part."""
OPTIMIZER = "optimizer"
"""Phase of an op of the optimiser's step."""
OTHER = "other"
"""Phase of an op of a program's own step that is none of these, such as clipping gradients; its layer is the function's name."""

TRAINING = "training"
"""The pass that has all of these phases."""
PREFILL = "prefill"
"""The pass of a language model that reads the prompt and fills its cache."""
DECODE = "decode"
"""The pass of a language model that reads one more token of each sequence, with a cache; its context follows the word."""

PHASES = (FORWARD, LOSS, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, RECOMPUTATION, INFERENCE, OPTIMIZER, OTHER)
"""The phases in the order of reports."""

RUN_STATS_TRUNCATED = "the run statistics stopped before the run did"
"""Note of a ledger whose run counts are a lower bound."""

OWN_STEP = "the step of the program itself, as it ran: "
"""Start of the note of a trace of a program's own step; what ran in it follows."""
AS_WITH_THESE = "is counted as it ran with these"
"""The end of a note of a trace whose work other values may change."""
CALLED_WITH = "called with "
"""Start of the note in a trace that lists the inputs of a user's own model."""

CALLED_ONCE = (
    "the model was called once (--quick): values that were computed outside of its operators were not looked for"
)
"""Note of a trace: a second call would have shown them."""
NOT_CALLED_AGAIN = (
    "nothing shows that values from outside of PyTorch are constants: a second call, with other inputs, ended by "
)
"""Start of the note of a trace whose model could not be called a second time; the error follows."""

POINTWISE = "tag:pointwise"
"""Attribute of an op of another library that declares itself pointwise."""

UNNEEDED = "tag:unneeded"
"""Attribute of an op: a kernel computes this gradient with others, and nothing needs it."""

ON_THREAD = "tag:thread"
"""Attribute of an op that ran on a thread that the model started in the call: modes of the caller's thread do not see it."""

TANGENT = "tag:tangent"
"""Attribute of an op that computes a tangent of forward-mode differentiation, inside of the call that gives the value."""

STORED = "tag:stored"
"""Attribute of an op on sparse tensors: for each input the number of its stored values, None for a dense one."""

MEETING = "tag:meeting"
"""Attribute of a product of two sparse matrices: how many pairs of their values are multiplied, and onto how many results."""

PARTS = "tag:parts"
"""Attribute of an op on nested tensors of no common shape: for each input, then each output, its parts' sizes; None of others."""

LENGTHS = "tag:lengths"
"""Attribute of attention on packed sequences: the lengths of the queries and of the keys, values of tensors."""

PACKED = "tag:packed"
"""Attribute of an op that got its weight packed: the weight is the last tensor of the record."""

ELEMENTWISE = "tag:elementwise"
"""Attribute of a contraction that PyTorch runs as a product element by element and a sum, because of its operands' strides."""

TWO_TENSORS = "tag:two_tensors"
"""Attribute of an op that a trace of a graph alone has, or lacks, since one tensor that is given twice is two tensors there."""

IN_PLACE = "tag:in_place"
"""Attribute of a product that is written into the tensor that it is added to (``addmm_``): counters know the other one alone."""

IN_HOOK = "tag:in_hook"
"""Attribute of an op of a hook that the model itself put on a module, to run after the module's forward."""

ASIDE = "tag:aside"
"""Attribute of an op that ran while a module was called, but not in the forward that the call runs: (what it ran in, whose)."""

PRE_HOOK, UNLISTED, DIRECT = "pre-hook", "unlisted", "direct"
"""What such an op ran in: a forward pre-hook that the model itself put on the module of this path, the call of a module of this
class that the model does not list as its own, or the forward of a class that was not called as a module."""

WRAPPED = "tag:wrapped"
"""Attribute of a module's record: the tensor subclass of a weight that decomposes operators itself (quantised or sharded)."""

REGISTERED = "tag:registered_flops"
"""Attribute of an op of another library that registered a formula for it with PyTorch's flop_counter: the FLOPs of this call."""

WHOLE = "tag:whole"
"""Attribute of an op on this process's part of tensors that several processes share: the shapes of the whole ``inputs`` and
``outputs``."""

CUT = "tag:cut"
"""Attribute of an op without matrix products whose share on this process is unknown: why. (A matrix product is a Problem.)"""

UNENTERED = "tag:unentered"
"""Attribute of an op that runs others, such as a loop, and that the trace could not enter: why. Its work is what a user gives."""

INSIDE = "tag:inside"
"""Attribute of an op of another library: the ops that ran in its kernel, as data, or why these are not known to be all of its
work."""

REST = "tag:rest"
"""Attribute of an op whose call has a record for each phase of what ran inside: it is not the first, which a formula of the op is
asked for."""

GROUP = "tag:group"
"""Attribute of a collective op: the ``ranks`` that take part, this one's ``place`` among them, and how they ``reduce``, ''
if they do not."""

Shape = Optional[Tuple[Optional[int], ...]]


Paths = Union[str, Sequence[str]]
"""One layer's path in a framework, dots between levels, or several where the framework has several modules for it."""

SUGAR = ("tf", "torch")
"""Frameworks whose paths ``Layer`` takes as positional arguments, in this order."""


class _Layer(NamedTuple):
    name: str
    paths: Dict[str, Paths]


class Layer(_Layer):
    """One row of the per-layer table: the pair's name for it, and its paths in each framework.

    ``Layer("gru", "gru", ("rnn", "act"))`` and ``Layer("gru", tf="gru", torch=("rnn", "act"))`` mean the same; the paths in any
    other framework are given by its name.
    """

    __slots__ = ()

    def __new__(cls: Any, name: str, tf: Paths = (), torch: Paths = (), **others: Paths) -> Any:
        return _Layer.__new__(cls, name, dict(zip(SUGAR, (tf, torch)), **others))

    def to_list(self) -> List[Any]:
        """``[name, tf, torch]``, plus a dict of any others: the form in messages and baselines."""
        others = {name: paths for name, paths in self.paths.items() if name not in SUGAR}
        return [self.name] + [self.paths[name] for name in SUGAR] + ([others] if others else [])

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> Any:
        """Read :meth:`to_list` back."""
        return cls(*data[:3], **(data[3] if len(data) > 3 else {}))


class Tensor(NamedTuple):
    """Static type of one tensor. ``shape`` is None for an unknown rank; a dimension is None if unknown."""

    shape: Shape
    dtype: str


class Op(NamedTuple):
    """One operation (or one module call, for counters that work on modules), with all that a formula needs.

    Attributes:
        id: Its id, by which other records name it; a trace has each once.
        op: The framework's own name: a TensorFlow op type (``MatMul``), an ATen operator (``aten.addmm``) or a module class
            (``torch.nn.modules.rnn.GRU``).
        layer: The framework's path of the layer in which it ran, dots between levels; '' for the model itself.
        inputs: Its tensors, in signature order, and no other argument.
        outputs: The tensors that it returns, in order.
        attrs: Every other argument by its name. A tensor argument that was not given is None here.
        calls: How often it ran: 0 for an op in a loop that ran 0 times.
        phase: The part of the call or of the training step that it belongs to, one of ``PHASES``.
        within: The ids of the enclosing function calls, outermost first; () outside of any.
    """

    id: str
    op: str
    layer: str
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    attrs: Dict[str, Any]
    calls: int = 1
    phase: str = FORWARD
    within: Tuple[str, ...] = ()

    def given(self, argument: str) -> bool:
        """Whether an optional tensor argument (``bias``, ``weight``) was given."""
        return argument not in self.attrs or self.attrs[argument] is not None


class Problem(NamedTuple):
    """Why a trace is incomplete: the op whose work is unknown, and the reason."""

    layer: str
    op: str
    id: str
    reason: str


NOT_KNOWN: Dict[str, int] = {}  # the default of a field; never written to


class Trace(NamedTuple):
    """The work that ran: every live op of one model in one framework.

    Attributes:
        framework: The framework's name in the registry, such as ``"torch"``.
        versions: Versions of the framework and of what else decides what ran, by package.
        device: Where it ran, as its adapter says: ``"cpu"``, ``"meta"``, or ``"graph"`` where a graph was read.
        ops: The ops that ran, and those of a loop that ran 0 times.
        problems: What makes it incomplete beside ops without a formula; empty if nothing does.
        untaken: Ids of ops of branches that did not run. Empty where only what runs is recorded, as in PyTorch.
        layers: The paths of the layers that have an op, in order of execution.
        notes: What a reader has to know of how it was taken, a sentence each.
        parameters: The elements of the parameters that each layer owns, a shared one's under its first path; empty if unknown.
    """

    framework: str
    versions: Dict[str, str]
    device: str
    ops: Tuple[Op, ...]
    problems: Tuple[Problem, ...]
    untaken: Tuple[str, ...]
    layers: Tuple[str, ...]
    notes: Tuple[str, ...]
    parameters: Dict[str, int] = NOT_KNOWN


class Entry(NamedTuple):
    """One amount a counter reported, in the counter's own unit and at its own granularity."""

    id: str
    layer: str
    op: str
    value: int
    calls: int


class Sighting(NamedTuple):
    """An op that a counter saw, with shapes and run count *as that counter saw them*.

    ``entry`` is the id of the entry that it contributes to, whether or not the counter made one; ``role`` is the op's role
    in the graph that the counter was given; ``copies`` is how many times the counter added one execution (a
    module under two parents is hooked twice).
    """

    op: Op
    entry: str
    role: str = LIVE
    copies: int = 1


NO_COUNTS: Dict[str, int] = {}  # the default of a field; never written to


class Ledger(NamedTuple):
    """What one counter reported, and the ops that it saw.

    Attributes:
        counter: The counter's name in the registry.
        framework: The framework of the model that it counted.
        unit: The unit of ``total`` and of the entries, MAC or FLOP.
        device: Where the model ran for it, as in a trace.
        versions: Versions by package, those that select the counter's rules among them.
        total: What the counter reports for the model, in its unit.
        entries: What it reported by module, op or node.
        sightings: The ops that it met, whether or not it counts anything of them.
        unsupported: How often it met each kind of op or module that it has no number for. Empty if it has no such list.
        notes: What a reader has to know of how it was counted, a sentence each.
    """

    counter: str
    framework: str
    unit: str
    device: str
    versions: Dict[str, str]
    total: int
    entries: Tuple[Entry, ...]
    sightings: Tuple[Sighting, ...]
    unsupported: Dict[str, int] = NO_COUNTS
    notes: Tuple[str, ...] = ()


def _tensors_from(data: List[Any]) -> Tuple[Tensor, ...]:
    return tuple(Tensor(None if shape is None else tuple(shape), dtype) for shape, dtype in data)


def op_from(data: Dict[str, Any]) -> Op:
    """Read one op record back from JSON data."""
    return Op(
        data["id"],
        data["op"],
        data["layer"],
        _tensors_from(data["inputs"]),
        _tensors_from(data["outputs"]),
        data["attrs"],
        data["calls"],
        data["phase"],
        tuple(data["within"]),
    )


def to_json(record: Any) -> str:
    """Serialise a trace or a ledger, with the schema version.

    This looks at the fields, not at the class: an outside adapter may use records from another copy of this module.
    """
    data = dict(record._asdict())
    if "sightings" not in data:
        data["kind"] = "trace"
        data["ops"] = [op._asdict() for op in record.ops]
        data["problems"] = [dict(p._asdict()) for p in record.problems]
    else:
        data["kind"] = "ledger"
        data["entries"] = [dict(e._asdict()) for e in record.entries]
        data["sightings"] = [dict(s._asdict(), op=s.op._asdict()) for s in record.sightings]
    data["schema"] = SCHEMA
    return dumps(data)


READERS: Dict[str, Callable[[Any], Any]] = {
    "ops": lambda ops: tuple(map(op_from, ops)),
    "problems": lambda problems: tuple(Problem(**p) for p in problems),
    "untaken": tuple,
    "layers": tuple,
    "notes": tuple,
    "entries": lambda entries: tuple(Entry(**e) for e in entries),
    "sightings": lambda seen: tuple(Sighting(op_from(s["op"]), s["entry"], s["role"], s["copies"]) for s in seen),
}
"""What makes the fields of a trace or a ledger that JSON has as lists."""


def from_json(text: str) -> Any:
    """Read a trace or ledger back. Raises ValueError for another schema version or kind."""
    data = loads(text)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        schema = data.get("schema") if isinstance(data, dict) else None
        raise ValueError(f"record has schema {schema!r}, this version reads {SCHEMA}")
    kinds: Dict[Any, Any] = {"trace": Trace, "ledger": Ledger}
    kind = kinds.get(str(data.get("kind")))  # which may be anything, also what no key can be
    if kind is None:
        raise ValueError(f"record is neither a trace nor a ledger: {data.get('kind')!r}")
    data.setdefault("parameters", {})
    return kind(*(READERS.get(name, lambda value: value)(data[name]) for name in kind._fields))
