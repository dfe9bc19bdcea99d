"""Collected data made by hand: a session graph, a loop, a batch; and the committed one."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconcile.core.conventions import BUILT_IN, Convention
from reconcile.core.records import DEAD, FLOP, INITIALIZER, LIVE, Entry, Ledger, Op, Sighting, Tensor, Trace
from reconcile.drift import baselines
from reconcile.engine.settle import Collected
from reconcile.launch.request import RunRequest
from reconcile.products.decode import grammar
from reconcile.products.decode.grammar import Source
from reconcile.products.decode.readings import Candidate
from tests.drift import takes

SAVED = Path(__file__).resolve().parents[3] / "reports/baselines"
Found = tuple[tuple[Candidate, ...], tuple[str, ...]]
"""Candidates, and notes on data that was left out."""

META: dict[str, Any] = {**takes.META, "name": "toy", "params": {"batch": 4}, "layers": [], "frameworks": ["tf"]}


def product(id: str, m: int, k: int, n: int, calls: int = 1, layer: str = "") -> Op:
    """MatMul (m, k) x (k, n)."""
    shapes = [Tensor(shape, "float32") for shape in ((m, k), (k, n), (m, n))]
    return Op(id, "MatMul", layer, tuple(shapes[:2]), (shapes[2],), {}, calls)


def bias(id: str, m: int, n: int, calls: int = 1, layer: str = "") -> Op:
    """BiasAdd on (m, n)."""
    x, b = Tensor((m, n), "float32"), Tensor((n,), "float32")
    return Op(id, "BiasAdd", layer, (x, b), (x,), {}, calls)


def trace(*ops: Op) -> Trace:
    return Trace("tf", {"tensorflow": "1.12.0"}, "graph", ops, (), (), (), ())


SESSION = (
    ("MatMul", "MatMul", 7_200, LIVE),
    ("A/Mul", "Mul", 544, INITIALIZER),
    ("A/Add", "Add", 544, INITIALIZER),
    ("spare", "Sum", 10, DEAD),
)
"""Matmul, two initialisers, and a sum that nothing needs: 7,200 + 1,088 + 10."""


def session(counter: str = "tf.profiler@session", rows: Sequence[tuple[str, str, int, str]] = SESSION) -> Ledger:
    """A ledger of nodes: name, op, value and role."""
    entries = tuple(Entry(id, id.partition("/")[0], op, value, 1) for id, op, value, _ in rows)
    sightings = tuple(Sighting(Op(id, op, "", (), (), {}), id, role) for id, op, _, role in rows)
    return Ledger(
        counter, "tf", FLOP, "graph", {"tensorflow": "1.12.0"}, sum(row[2] for row in rows), entries, sightings, {}, ()
    )


def source(*records: Trace | Ledger, name: str = "old", **params: Any) -> Source:
    traces = tuple(r for r in records if isinstance(r, Trace))
    ledgers = tuple(r for r in records if isinstance(r, Ledger))
    return Source(name, Collected({**META, "params": params or META["params"]}, traces, ledgers))


_load = baselines.load
_load_committed = functools.cache(_load)
_made: dict[object, tuple[Sequence[Source], Found]] = {}


def load(path: Path) -> baselines.Baseline:
    """A baseline; a committed one is read once."""
    path = path.resolve()
    return _load_committed(path) if SAVED in path.parents else _load(path)


def candidates(sources: Sequence[Source], conventions: Mapping[str, Convention] = BUILT_IN) -> Found:
    """The candidates of these sources; of the same data they are made once."""
    key = (*((source.name, id(source.collected), source.remark) for source in sources), conventions is BUILT_IN)
    if conventions is not BUILT_IN or key not in _made:
        _made[key] = sources, grammar.candidates(sources, conventions)
    return _made[key][1]


def saved(model: str) -> tuple[Source, ...]:
    """The committed baselines of a model."""
    return tuple(Source(p.stem, load(p).collected, "saved") for p in sorted((SAVED / model).glob("*.json")))


def request(model: str = "gru_demo", **overrides: str) -> RunRequest:
    return RunRequest(model, overrides)
