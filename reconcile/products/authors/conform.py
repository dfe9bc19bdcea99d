"""The conformance kit of a counter: the checks that every counter of this tool passes on the layers of the zoo's families.

A counter conforms if each of these holds for every case, at the case's own batch and at twice that, in a call of the model and
in a training step:

* it reports, and its entries add up to its total; or it says in one sentence that it cannot count the model;
* its ledger has the version that its ``versions_key`` names, which selects the rules;
* its statement closes with residual 0 under every convention: every entry is covered by a rule and is what the rule says;
* adding a number to any entry changes no explanation, and is the residual at that entry's layer;
* every amount follows from its evidence (engine/recompute.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...core.conventions import BUILT_IN, MATMUL, Conventions
from ...core.errors import describe_error
from ...core.records import Ledger, Trace
from ...core.registry import frameworks, known_counters
from ...engine.answer import Answer
from ...engine.booking import flops_per_unit
from ...engine.ledger import reconcile_ledger
from ...engine.reconcile import Missing
from ...engine.settle import Collected, settle
from ...launch.request import PASSES, RunRequest, run_request
from ...launch.runner import collect
from ...model_zoo.loading import load_pair, pair_path, zoo_names
from ..recompute import recompute

ADDED = 1_000_003
"""The number that is added to an entry: a prime that no formula gives by chance."""
ENTRIES = 12
"""How many entries of a ledger get it added."""


NETWORKS = ("conv1x1", "conv_only", "gru_demo")
"""Networks of one input, for a counter that can be given no family: a layer there takes several."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check, passed or failed.

    ``problem`` says what is wrong and where, '' if nothing is. ``skipped`` is the counter's sentence if it cannot count it.
    ``counted`` is true of the check of a ledger that has a number other than 0.
    """

    case: str
    name: str
    problem: str = ""
    skipped: str = ""
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of the zoo with its settings, in one pass."""

    model: str
    overrides: tuple[tuple[str, str], ...]
    pass_: str

    @property
    def title(self) -> str:
        """``family_dense[batch=4] training``."""
        settings = ", ".join(f"{name}={value}" for name, value in self.overrides)
        return self.model + (f"[{settings}]" if settings else "") + (" training" if self.pass_ == "training" else "")


def families(counter: str = "") -> tuple[str, ...]:
    """The pairs of the zoo that hold one kind of layer in many settings; those that have a model for this counter, if given."""
    found = [name for name in zoo_names() if name.startswith("family_")]
    if counter:
        record = frameworks()[known_counters()[counter].framework]
        sides = [framework for framework in (record.name, record.exports) if framework]
        found = [name for name in found if any(map(load_pair(pair_path(name)).builder, sides))]
    return tuple(found)


def cases(models: Sequence[str], passes: Sequence[str] = PASSES) -> Iterator[Case]:
    """Every model at its own batch and at twice that, in each pass."""
    for model in models:
        batch = load_pair(pair_path(model)).params.get("batch")
        doubled = [(("batch", str(2 * batch)),)] if isinstance(batch, int) else []
        for overrides in ((), *doubled):
            for pass_ in passes:
                yield Case(model, overrides, pass_)


def checks(
    counter: str, cases: Sequence[Case], take: Callable[[RunRequest], Collected] = collect, elsewhere: bool = False
) -> Iterator[tuple[Case, list[Check]]]:
    """The checks of each case, as they are done. A counter that sees no training step has one check for all steps.

    ``elsewhere`` says that ``take`` runs in another environment, whose frameworks may lack a layer of a case.
    """
    blind = known_counters()[counter].blind
    for case in cases:
        if case.pass_ == "training" and blind:
            yield case, [Check(case.title, "counts a training step", skipped=f"it {blind}")]
            continue
        settings = {"model": case.model, "overrides": dict(case.overrides), "counters": (counter,), "pass_": case.pass_}
        request = run_request(**settings)
        yield case, list(_check_case(case.title, take(request), elsewhere))


def explain_nothing_counted(counter: str, checks: Sequence[Check], chosen: bool) -> str:
    """Why these checks, of which none failed, show nothing about the counter; '' if it reported a number in any case.

    ``chosen`` says that a user chose the cases; the counter may count none of them.
    """
    if any(check.counted for check in checks):
        return ""
    if not chosen:
        return f"{counter} counted nothing in any case, so it does not conform."
    refuses = [check for check in checks if check.skipped]
    why = "It cannot count some of them, and counts 0 in the others"
    if not refuses:
        why = "Its numbers are all 0 there"
    elif len(refuses) == len(checks):
        why = "The reasons are above"
    return (
        f"{counter} counted nothing in these cases, so they cannot show whether it conforms. {why}: choose other cases."
    )


def _check_case(title: str, collected: Collected, elsewhere: bool) -> Iterator[Check]:
    (ledger,) = collected.ledgers
    (trace,) = (t for t in collected.traces if t.framework == ledger.framework)
    if isinstance(trace, Missing):
        if (
            elsewhere and isinstance(ledger, Missing) and ledger.reason == trace.reason
        ):  # the model fails without a counter
            yield Check(title, "is made", skipped=f"the environment cannot make {title}: {trace.reason}")
            return
        yield Check(title, "is traced", trace.reason)
        return
    if isinstance(ledger, Missing):
        says = ledger.state.value == "not_comparable"
        yield Check(title, "reports", "" if says else ledger.reason, ledger.reason if says else "")
        return
    key, versions = known_counters()[ledger.counter].versions_key, ledger.versions
    lacks = f"versions_key is {key!r}, and its ledger has the versions of {', '.join(versions) or 'nothing'}"
    yield Check(title, "names the release that selects its rules", "" if key in versions else lacks)
    whole = sum(entry.value for entry in ledger.entries)
    differs = f"its entries add up to {whole:,}, and its total is {ledger.total:,}" if whole != ledger.total else ""
    counted = any(entry.value for entry in ledger.entries)
    yield Check(title, "entries add up to the total", differs, counted=counted)
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        yield Check(title, f"residual 0 ({convention.name})", _describe_unexplained(result))
        yield Check(
            title, f"amounts follow from evidence ({convention.name})", _find_unfounded_amount(result, collected)
        )
    yield Check(title, "a number added to an entry is the residual there", _find_fitted_entry(collected, ledger, trace))


def _describe_unexplained(result: Answer) -> str:
    """What is not explained of the ledger, the first of it; '' if all is."""
    (ledger,) = result.ledgers
    if ledger.mismatches:
        first = ledger.mismatches[0]
        return (
            f"{len(ledger.mismatches)} entries are not what the rules say; {first.entry}: {first.rule} expects "
            f"{first.expected:,} {ledger.unit}, reported {first.reported:,}"
        )
    if ledger.unchecked:
        reason = next((r.reason for statement in result.statements for r in statement.residuals), "no rule")
        rules = known_counters()[ledger.counter].module
        return f"{ledger.unchecked} of its entries have no rule; add one to {rules}.rules: {reason}"
    statement = next((s for s in result.statements if s.residual != 0), None)
    if statement is None:
        return ""
    if statement.residual is None:
        return statement.reason
    where = statement.residuals[0]
    return f"residual {statement.residual:+,}; at {where.layer or 'the root'}: {where.reason}"


def _find_unfounded_amount(result: Answer, collected: Collected) -> str:
    """The first amount that does not follow from its evidence; '' if all do."""
    traces = [t for t in collected.traces if isinstance(t, Trace)]
    ledgers = [x for x in collected.ledgers if isinstance(x, Ledger)]
    ops = {f"{t.framework}:{op.id}": op for t in traces for op in t.ops}
    versions = {x.counter: x.versions for x in ledgers}
    for line in (line for statement in result.statements for line in statement.adjustments):
        where = f"{line.cause.value} {line.amount:+,} at {line.layer or 'the root'} ({line.op})"
        try:
            amount = recompute(line, ops, versions, result.convention)
        except Exception as error:
            return f"{where} cannot be computed again: {describe_error(error)}"
        if amount != line.amount:
            return f"{where} is {amount:+,} by its evidence"
    return ""


def _find_fitted_entry(collected: Collected, ledger: Ledger, trace: Trace) -> str:
    """The first entry whose reported number an explanation depends on; '' if there is none."""
    align = collected.declared_layers
    before = reconcile_ledger(ledger, trace, align, MATMUL)
    step = max(1, len(ledger.entries) // ENTRIES)
    for index in range(0, len(ledger.entries), step):
        entry = ledger.entries[index]
        changed = [*ledger.entries]
        changed[index] = entry._replace(value=entry.value + ADDED)
        more = ledger._replace(entries=tuple(changed), total=ledger.total + ADDED)
        after = reconcile_ledger(more, trace, align, MATMUL)
        if after.adjustments != before.adjustments:
            return f"{ADDED:,} more at {entry.id} changes an explanation: the bridge depends on what was reported"
        extra = Counter[str]()
        for sign, residuals in ((1, after.residuals), (-1, before.residuals)):
            for residual in residuals:
                extra[residual.layer] += sign * residual.amount
        layer = align.layer(ledger.framework, entry.layer)
        if extra != Counter({layer: -ADDED * flops_per_unit(ledger.unit)}):
            return f"{ADDED:,} more at {entry.id} is not the residual at {layer}"
    return ""
