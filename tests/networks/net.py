"""A network with what its blocks say of its work, and what a run of the tool may say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .block import Cost


class Wrong(Exception):
    """A number is not what ran, or a counter is off for no reason; the first line is the same for alike findings."""


@dataclass(frozen=True)
class Net:
    """``cost`` in multiply-adds; ``training``: a step is counted, otherwise a call; ``plan`` names the blocks; ``doubts`` are
    those of KNOWN that apply."""

    framework: str
    seed: int
    model: Any
    inputs: Any
    cost: Cost
    training: bool
    plan: str
    doubts: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        return self.cost.step if self.training else self.cost.forward

    @property
    def story(self) -> str:
        """What it is and how to see it again."""
        kind = "step" if self.training else "call"
        replay = f"python -m tests.networks {self.framework} --seed {self.seed}"
        return f"(replay: {replay}) {kind} of {self.plan}, {self.cost}"


ASKED = {"jax": ("xla@lowered",)}
"""Counters to run where none of a framework runs unasked."""


def check(net: Net) -> list[str]:
    """Run the default counters; the reasons of counters that gave no number. Raises Wrong."""
    import reconcile
    from reconcile.core.errors import ReconcileError

    how: dict[str, Any] = {"pass_": "training"} if net.training else {}
    if net.framework in ASKED:
        how["counters"] = ASKED[net.framework]
    try:
        run = reconcile.run(**{net.framework: net.model}, inputs=net.inputs, **how)
    except ReconcileError as error:
        raise Wrong(f"refused: {type(error).__name__}\n{net.story}: {error}") from error
    judge(net, run)
    return [f"{ledger.counter}: {ledger.reason}" for ledger in run.result.ledgers if ledger.total is None]


WRAPPER = "a wrapper subclass"
KNOWN = {("fvcore", WRAPPER), ("flop_counter", WRAPPER)}
"""Counters that count another execution than the one that ran, of which the tool reports a residual and publishes nothing: a
wrapper's class takes operators apart; fvcore and flop_counter count the whole one."""

OUTSIDE = "(outside)"
"""The op of a gap that says that values were computed by no operator of PyTorch: of these networks that is never true."""


def judge(net: Net, run: Any) -> None:
    """Hold a run against what the blocks say, and its statements under every convention against 0. Raises Wrong."""
    told = 2 * net.macs
    (trace,) = run.result.traces
    if "matmul" not in trace.totals:
        gaps = [f"{u.op}: {u.reason}" for u in trace.unknown] or [trace.reason]
        alarm = any(u.op == OUTSIDE for u in trace.unknown)
        raise Wrong(f"{'the seal raises an alarm' if alarm else 'the trace is not complete'}\n{net.story}: {gaps}")
    if trace.totals["matmul"] != told:
        raise Wrong(f"the trace is wrong\n{net.story}: {trace.totals['matmul']:,} for {told:,}")
    false = [figure.flops for figure in run.verdict.figures if figure.flops != told]
    if false:
        raise Wrong(f"a number is published that did not run\n{net.story}: {false} for {told:,}")
    for ledger in run.result.ledgers:
        if ledger.total is None and not ledger.reason:
            raise Wrong(f"{ledger.counter} gives no number and no reason\n{net.story}: {ledger.state}")
    for answer in (run.result, *run.result.others):
        published = run.verdict.figures if answer is run.result else ()  # by this convention
        for statement in answer.statements:
            known = [doubt for doubt in net.doubts if (statement.from_, doubt) in KNOWN]
            if statement.residual and known and published:
                raise Wrong(f"a number is published beside a residual\n{net.story}: {known}")
            if statement.residual and not known:
                reasons = [f"{r.layer} {r.amount:,}: {r.reason}" for r in statement.residuals]
                raise Wrong(f"{statement.from_} has a residual\n{net.story}: {statement.residual:,}; {reasons}")


def draw(framework: str, seed: int) -> Net:
    """The network of a seed in a framework."""
    if framework == "torch":
        from .torch_nets import draw as made
    elif framework == "tf":
        from .tf_nets import draw as made
    else:
        from .jax_nets import draw as made
    return made(seed)
