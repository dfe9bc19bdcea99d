"""``jax_devices_run.py FILE``: write what each device does in the programs of jax_devices.py, for test_jax_devices.py."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"  # before JAX is imported

import json
import sys
from pathlib import Path

from jax_devices import ALONE, PROGRAMS, mapped, mapped_along_one, put, tensor

from reconcile.adapters.counters.xla.capture import capture
from reconcile.adapters.jax import hlo, model, trace
from reconcile.adapters.jax.devices import program as devices
from reconcile.adapters.jax.devices import tags, walk
from reconcile.adapters.jax.devices.rank import RankStep
from reconcile.adapters.shared.refusal import BeyondCounter, FactoryError
from reconcile.core.records import UNENTERED
from reconcile.engine.settle import Collected
from reconcile.launch.request import run_request
from reconcile.products.ranks.plan import Mesh
from reconcile.products.ranks.ranked import Fold, Ranked, _answer
from reconcile.products.ranks.world import Rank, World
from reconcile.products.recompute import recompute
from reconcile.worker.main import EMPTY

LOOP = """HloModule m, num_partitions=4

%%body (p: (f32[4,4])) -> (f32[4,4]) {
  %%p = (f32[4,4]) parameter(0)
  %%x = f32[4,4] get-tuple-element(%%p), index=0
  %%d = f32[4,4] dot(%%x, %%x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/eq2->/dot_general"}
  ROOT %%t = (f32[4,4]) tuple(%%d)
}

%%condition (q: (f32[4,4])) -> pred[] {
  %%q = (f32[4,4]) parameter(0)
  ROOT %%c = pred[] constant(true)
}

ENTRY %%main (a: (f32[4,4])) -> (f32[4,4]) {
  %%a = (f32[4,4]) parameter(0)
  ROOT %%w = (f32[4,4]) while(%%a), condition=%%condition, body=%%body, metadata={op_name="jit(f)/%s"}
}
"""
GROUPS = (
    ({"replica_groups": "{{0,2},{1,3}}"}, 3, 4),
    ({"replica_groups": "{}"}, 1, 3),
    ({"replica_groups": "[2,3]<=[6]"}, 4, 6),
    ({"replica_groups": "[2,3]<=[3,2]T(1,0)"}, 1, 6),
    ({"replica_groups": "mesh['a'=2,'b'=3] {'a'}"}, 4, 6),
    ({"replica_groups": "mesh['a'=2,'b'=3] {'b'}"}, 4, 6),
    ({"replica_groups": "mesh['a'=2,'b'=3] device_ids=([2,3]T(1,0)) {'b'}"}, 4, 6),
    ({"replica_groups": "what is that"}, 0, 4),
    ({"source_target_pairs": "{{0,1},{2,3}}"}, 2, 4),
    ({"source_target_pairs": "{{0,1},{2,3}}"}, 4, 5),
)
"""Forms of groups, a rank, and the number of devices."""


WORLD, LOWERED, COMPILED = 4, "xla@lowered", "xla@compiled"


def rank(ranks, found, ledgers, told, name):
    meta = {**EMPTY, "name": name, "params": {"jax": name}, "frameworks": ["jax"], "context": None}
    return Rank(tuple(ranks), Collected(meta, (found,), tuple(ledgers)), told)


def said(answer, each, convention):
    """The state of each counter, its causes, and those whose evidence has another amount."""
    booked = {}
    (found,) = each.collected.traces
    ops = {f"jax:{op.id}": op for op in found.ops}
    versions = {ledger.counter: ledger.versions for ledger in each.collected.ledgers}
    for statement in answer.statements:
        causes = {cause.value: amount for cause, amount in statement.by_cause().items()}
        others = [
            line.cause.value
            for line in statement.adjustments
            if recompute(line, ops, versions, convention) != line.amount
        ]
        booked[statement.from_] = {
            "state": statement.state.value, "residual": statement.residual, "recomputed": others, **causes
        }  # fmt: skip
    return booked


def plainly(program):
    """What a run without --ranks says of xla@compiled."""
    if program not in (tensor, put, mapped):
        return {}
    function, arguments = program()
    try:
        capture(COMPILED, model.call(function, arguments, {}))
    except BeyondCounter as error:
        return {"plain": str(error)}
    return {"plain": ""}


def withheld(change):
    """Why the products of ``tensor`` are withheld if XLA had cut them so."""
    function, arguments = tensor()
    closed, numbers = tags.tag_equations(trace.program(function, arguments))
    part = devices.compile_program(closed, arguments, WORLD, numbers)
    at = {
        tag: [other for each in pieces for other in (change(each) if each.opcode == "dot" else [each])]
        for tag, pieces in part.at.items()
    }
    found = walk.LocalWalk("", part._replace(at=at), 0)
    found.enter(closed)
    return sorted({problem.reason for problem in found.problems})


def halved(each):
    (left, right), (out,) = each.inputs, each.outputs
    (rows, inner), (_, columns) = left.shape, right.shape
    left, right = left._replace(shape=(rows, inner // 2)), right._replace(shape=(inner // 2, columns))
    return each._replace(inputs=(left, right), outputs=(out,))


def looped(text):
    """Which products stand in a loop that no equation has."""
    found = devices._find_pieces(hlo.parse_module(text), {1: "scan", 2: "dot_general"})
    return [each.looped for pieces in found.values() for each in pieces if each.opcode == "dot"]


def groups(attrs, rank, count):
    return devices.group_of(attrs, rank, count)


def ran(program, single):
    function, arguments = program()
    step = RankStep([], "cpu", "")
    step.told = {"batches": [], "sequences": [], "read": 0, "one_batch": True}
    step._call = model.call(function, arguments, {})._replace(devices=WORLD)
    try:
        step._take_step(0, WORLD)
    except FactoryError as error:
        return {"refused": str(error)}
    unread = step.trace().problems or any(UNENTERED in op.attrs for op in step.trace().ops)
    counters = () if unread else (LOWERED, COMPILED)
    ledgers = [capture(counter, step._call) for counter in counters]
    every = rank(range(WORLD), step.trace(), ledgers, step.told, "m:made")
    one = rank([0], trace.trace(model.call(single, ALONE[single], {})), [], step.told, "m:one")
    world = World(WORLD, Mesh(**step.told["mesh"]), (every,), (0,), one)
    return {"matmul": answered(world, "matmul"), "all": answered(world, "all"), **plainly(program)}


def answered(world, convention):
    (every,), one = world.ranks, world.one
    counters = tuple(ledger.counter for ledger in every.collected.ledgers)
    answers = [
        _answer(run_request(jax="m:made", convention=convention, counters=asked), each)
        for asked, each in ((counters, every), ((), one))
    ]
    found = Ranked(world, (Fold(every.ranks, answers[0]),), answers[1])
    statement = found.statement
    return {
        "each": answers[0].traces[0].totals.get(convention),
        "sum": found.totals.get(convention),
        "one": answers[1].traces[0].totals.get(convention),
        "state": statement.state.value,
        "reason": statement.reason,
        "causes": {cause.value: amount for cause, amount in statement.by_cause().items()},
        "counters": said(answers[0], every, found.convention),
        "ledgers": {ledger.counter: ledger.total for ledger in every.collected.ledgers},
        "passed": [[t.kind, t.line, t.calls, None if t.payload is None else int(t.payload)] for t in found.traffic[0]],
    }


results = {program.__name__: ran(program, single) for single, programs in PROGRAMS.items() for program in programs}
whole = trace.trace(model.call(*mapped_along_one(), {}))
results["withheld"] = {
    "twice": withheld(lambda each: [each, each]),
    "looped": withheld(lambda each: [each._replace(looped=True)]),
    "halved": withheld(lambda each: [halved(each)]),
    "turned": withheld(lambda each: [each._replace(attrs={**each.attrs, "lhs_contracting_dims": "{0}"})]),
    "gone": withheld(lambda each: []),
    "kept": withheld(lambda each: [each]),
}
results["looped"] = [looped(LOOP % tag) for tag in ("eq1->/while", "eq2->/dot_general", "while")]
results["groups"] = [groups(attrs, rank, count) for attrs, rank, count in GROUPS]
results["mapped_along_one"]["whole"] = [op.calls for op in whole.ops if op.op == "lax.dot_general"]
Path(sys.argv[1]).write_text(json.dumps(results))
