"""Writes the program of ``reconcile counter reproduce``: the shortest that shows where a counter differs from the work that ran.

It shows one layer of the zoo, and imports nothing of this package. It is derived: the layer's lines come from its brick
(model_zoo/bricks), the call of the counter from the ``PROGRAM`` in ``user_script.py`` beside its ``capture.py``, and its
numbers from a run of the tool on that very layer.

``differences`` lists every layer of the zoo at which the counter differs. ``closed_form`` finds the arithmetic expression that
the program prints as the expected count.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...core.causes import Cause
from ...core.conventions import MATMUL, Conventions
from ...core.counter import Counter
from ...core.errors import UsageError, check_names
from ...core.number_format import number
from ...core.records import MAC, Tensor
from ...core.registry import frameworks, known_counters, title
from ...core.results import Adjustment, TraceRow
from ...engine.answer import Answer
from ...engine.settle import Collected, settle
from ...launch.request import RunRequest, run_request
from ...launch.runner import collect
from ...model_zoo import loading
from ...model_zoo.bricks import one
from ...work import prod
from ..function_call import NoAnswer, call_in_process
from .conform import families

PAIR = str(Path(loading.HERE) / "bricks" / "one.py")
LINES_FUNCTION = "reconcile.model_zoo.bricks.program:lines"
LINES_LIMIT = 120.0
MODEL_MARK = "{model}"
BATCH = 2
WIDTH = 100

Collect = Callable[[RunRequest], Collected]


@dataclass(frozen=True, slots=True)
class Difference:
    """One layer at which a counter differs from the work that ran: both in the counter's unit, and why."""

    case: str
    reported: int
    ran: int
    causes: Mapping[Cause, int]


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer in the counter's and the trace's numbers: the counter, its version, its number and the work in its unit, the
    ops that multiply, and the lines of the statement from one to the other."""

    counter: Counter
    version: str
    reported: int
    ran: int
    rows: tuple[TraceRow, ...]
    lines: tuple[Adjustment, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """How a counter is called: source code with ``{model}`` in it. ``source_by_cause`` are lines of the counter's source by the
    cause that they make, where no rule states them; ``counted_ops_source`` is the line of its list of counted ops. ``batch`` is
    the batch size, for a counter that takes only one. ``after`` maps a word to lines to write after a model whose lines contain
    it."""

    text: str
    counted_ops_source: str
    source_by_cause: Mapping[str, str]
    batch: int = BATCH
    after: Mapping[str, str] = field(default_factory=dict)


def differences(counter: str, models: Sequence[str], take: Collect = collect) -> Iterator[Difference | str]:
    """The layers of these pairs that the counter counts differently from the work that ran, pair by pair; a sentence for a pair
    that it cannot count. Raises UsageError if no layer of the zoo is made in the counter's framework."""
    record = known_counters()[counter]
    check_framework(record)
    for model in models:
        names = {brick.name for brick in one.bricks(model)}
        result = settle(take(run_request(model=model, counters=(counter,))), Conventions(MATMUL))
        (ledger,) = result.ledgers
        if ledger.total is None:
            yield f"{counter} has no number for {model}: {ledger.reason.rstrip('.')}."
        for row in result.layers:
            causes = row.causes.get(counter, {})
            if row.layer in names and causes:
                reported, ran = row.counters[counter], row.work[record.framework]
                scale = 2 if record.unit == MAC else 1
                yield Difference(f"{model}:{row.layer}", reported // scale, ran // scale, causes)


def find_framework(counter: Counter) -> str:
    """The framework in which a layer is made for that counter: its own, or the one whose export its own framework takes."""
    return frameworks()[counter.framework].exports or counter.framework


def check_framework(counter: Counter) -> None:
    """Raise UsageError if no layer of the zoo can be made in the counter's framework."""
    if not hasattr(one, f"build_{find_framework(counter)}"):
        raise UsageError(
            f"{counter.name} counts models of {title(counter.framework)}, and no layer of the zoo is made there."
        )


def program(counter: str, case: str, take: Collect = collect) -> str:
    """The program that shows the difference. Raises UsageError if the case is unknown, or if there is no difference."""
    check_case(case)
    record = known_counters()[counter]
    check_framework(record)
    template = template_of(record)
    shown = run_alone(record, case, take, template.batch)
    if shown.reported == shown.ran:
        raise UsageError(
            f"{counter} counts {case} as it ran, {number(shown.ran)} {record.unit}s: there is nothing to show. "
            f"`reconcile counter reproduce {counter}` lists the cases in which it differs."
        )
    (lines,) = layer_source_lines([case], find_framework(record), template.batch)
    return write_program(case, shown, template, lines)


def run_alone(counter: Counter, case: str, take: Collect = collect, batch: int = BATCH) -> LayerResult:
    """What a run of the layer alone shows. Raises UsageError if the counter has no number for it."""
    settings = {"case": case, "framework": find_framework(counter), "batch": str(batch)}
    result = settle(take(run_request(model=PAIR, overrides=settings, counters=(counter.name,))), Conventions(MATMUL))
    (ledger,) = result.ledgers
    if ledger.total is None:
        raise UsageError(f"{counter.name} has no number for {case}: {ledger.reason.rstrip('.')}.")
    return layer_result(result, counter.name, ledger.total)


def layer_result(result: Answer, counter: str, reported: int, layer: str | None = None) -> LayerResult:
    """What a run shows of a counter: of the whole model, or of one layer. Raises UsageError if the run does not compare them."""
    statement = next((s for s in result.statements if counter in (s.from_, s.to)), None)
    if statement is None or not statement.is_closed:
        reason = statement.reason if statement else "no work was traced"
        raise UsageError(f"{counter} cannot be compared with the work that ran: {reason.rstrip('.')}.")
    record = known_counters()[counter]
    (ledger,) = result.ledgers
    rows = [row for trace in result.traces for row in trace.rows if row.work.mac and layer in (None, row.layer)]
    lines = [line for line in statement.adjustments if line.counter == counter and layer in (None, line.layer)]
    ran = sum(row.work.mac for row in rows) * (1 if record.unit == MAC else 2)
    return LayerResult(record, ledger.versions.get(record.versions_key, ""), reported, ran, tuple(rows), tuple(lines))


def write_program(case: str, shown: LayerResult, template: Template, lines: Sequence[str]) -> str:
    """The program, from the lines that make the layer."""
    also = [line for word, line in template.after.items() if any(word in made for made in lines)]
    body = _fill_template(template.text, [*lines, *also]).rstrip("\n").splitlines()
    ends = ['print("reported", reported)', 'print("expected", expected)', ""]
    return "\n".join([*_head(case, shown, template), *body, "", *_list_expected_work(shown), *ends])


def check_case(case: str) -> None:
    """Raises UsageError for a case that no pair of the zoo has."""
    model, colon, layer = case.partition(":")
    if not colon:
        raise UsageError(f"{case!r} names no layer. Write a pair and one of its layers, such as family_dense:dense.")
    check_names("pair of single layers", (model,), (*families(), one.EXTRA))
    check_names(f"layer of {model}", (layer,), [brick.name for brick in one.bricks(model)])


def template_of(counter: Counter) -> Template:
    """How that counter is called. Raises UsageError if its folder does not say."""
    name = f"{counter.module}.user_script"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise _without_program(counter) from error
    text = module.PROGRAM if isinstance(module.PROGRAM, str) else module.PROGRAM.get(counter.name, "")
    if MODEL_MARK not in text:
        raise _without_program(counter)
    batch = getattr(module, "BATCH", {}).get(counter.name, BATCH)
    source_by_cause, after = getattr(module, "PLACES", {}), getattr(module, "AFTER", {})
    return Template(text, getattr(module, "TABLE", ""), source_by_cause, batch, after)


def _without_program(counter: Counter) -> UsageError:
    return UsageError(
        f"{counter.name} has no program that runs it alone: state one as PROGRAM in user_script.py beside its capture.py, "
        f"with {MODEL_MARK} in place of the lines that make the model."
    )


def _fill_template(text: str, lines: Sequence[str]) -> str:
    """The template with the model's lines; a class stands two lines below the imports."""
    start = "\n" if lines[0].startswith("class ") else ""
    return text.replace(MODEL_MARK, start + "\n".join(lines))


def layer_source_lines(cases: Sequence[str], framework: str, batch: int = BATCH) -> list[list[str]]:
    """The lines that build each layer, from a process that has its framework."""
    try:
        return call_in_process(LINES_FUNCTION, *((case, framework, batch) for case in cases), limit=LINES_LIMIT)
    except NoAnswer as error:
        why = str(error).rpartition("Unspelled: ")[2]
        raise UsageError(f"{cases[0]} cannot be written as a program: {why}.") from error


def _head(case: str, shown: LayerResult, template: Template) -> list[str]:
    """The comment at the top: both numbers, each cause with its amount, and the lines of the counter that cause it."""
    counter = shown.counter
    name = (counter.title or counter.name) + (f" ({counter.versions_key} {shown.version})" if shown.version else "")
    texts = [
        f"{name} reports {number(shown.reported)} {counter.unit}s for this layer; {number(shown.ran)} ran ({case})."
    ]
    for cause, amount in _by_cause(shown.lines).items():
        evidence = [proof for line in shown.lines if line.cause is cause for proof in line.evidence]
        where = {(proof.source or template.counted_ops_source, proof.formula) for proof in evidence}
        texts.append(f"{cause.value}, {amount:+,} FLOPs to the work that ran: {cause.meaning}")
        if cause.value in template.source_by_cause:
            texts.append(f"  {template.source_by_cause[cause.value]}")
        texts += [f"  {source}: {formula}" for source, formula in sorted(where) if source or formula]
    return [line for text in texts for line in _comment(text)]


def _by_cause(lines: Sequence[Adjustment]) -> dict[Cause, int]:
    """What to add to the counter's number for each cause, to arrive at the work that ran."""
    sums: dict[Cause, int] = {}
    for line in lines:
        sums[line.cause] = sums.get(line.cause, 0) + line.amount
    return sums


def _comment(text: str) -> list[str]:
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(), WIDTH, initial_indent=f"# {indent}", subsequent_indent=f"# {indent}  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _list_expected_work(shown: LayerResult) -> list[str]:
    """The work that ran as code: a term per kind of op, each with a comment that says what is multiplied."""
    terms: dict[tuple[str, str], int] = {}
    for row in shown.rows:
        key = closed_form(row)
        terms[key] = terms.get(key, 0) + 1
    factor = "" if shown.counter.unit == MAC else "2 * "
    if not terms:
        return ["expected = 0  # it multiplies nothing with weights: no matrix product, no convolution"]
    lines = ["# The multiply-adds that run" + (", two operations each" if factor else "") + ":"]
    forms = []
    for (form, words), times in terms.items():
        lines += _comment(f"  {form}: {words}" + (f"; {times} such ops" if times > 1 else ""))
        forms.append(f"{times} * {form}" if times > 1 else form)
    whole = forms[0] if len(forms) == 1 else f"({' + '.join(forms)})" if factor else " + ".join(forms)
    return [*lines, f"expected = {factor}{whole}"]


def closed_form(row: TraceRow) -> tuple[str, str]:
    """An expression of literal sizes whose value is the multiply-adds of all calls of an op, and what it multiplies."""
    calls = row.calls
    form, words = _form(row, row.work.mac // calls)
    return (f"{calls} * {form}", f"{row.op} runs {calls} times; {words}") if calls > 1 else (form, f"{row.op}: {words}")


def _form(row: TraceRow, macs: int) -> tuple[str, str]:
    outputs, inputs = _known_shapes(row.outputs[:1]), _known_shapes(row.inputs)
    for shape, name in [(size, "output") for size in outputs] + [(size, "input") for size in inputs[:1]]:
        for factor in (1, 2):
            for sizes in _slices(inputs):
                if factor * prod(shape) * prod(sizes) == macs:
                    form = _product((*([] if factor == 1 else [factor]), *shape, *sizes))
                    each = f"{prod(sizes):,} multiply-adds each" + (", in two products" if factor == 2 else "")
                    return form, f"{prod(shape):,} elements of the {name} {shape}, {each}"
    matrices = [shape for shape in inputs[1:] if len(shape) == 2 and shape != inputs[0]]
    if matrices:
        steps = inputs[0][:-1]
        if prod(steps) * sum(prod(shape) for shape in matrices) == macs:
            form = f"{_product(steps)} * ({' + '.join(map(_product, matrices))})"
            each = f"each with every element of the weights {', '.join(map(str, matrices))}"
            return form, f"{prod(steps):,} steps of all samples, {each}"
    if outputs and prod(outputs[0]) and macs % prod(outputs[0]) == 0:
        each = f"{macs // prod(outputs[0]):,} multiply-adds each"
        form = _product((*outputs[0], macs // prod(outputs[0])))
        return form, f"{prod(outputs[0]):,} elements of the output {outputs[0]}, {each}"
    return str(macs), f"inputs {inputs}, outputs {outputs}"


def _known_shapes(tensors: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """The shapes that are known."""
    shapes = [tuple(size for size in t.shape or () if size is not None) for t in tensors]
    return [shape for shape, t in zip(shapes, tensors, strict=True) if t.shape and len(shape) == len(t.shape)]


def _slices(shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Sizes that a product may sum over: of each input the ends and the whole but its first axis, then single axes."""
    for shape in reversed(shapes):
        yield from (shape[1:], shape[2:], shape[-1:], shape[:-1], shape[-2:-1], shape[:1])


def _product(sizes: Sequence[int]) -> str:
    return " * ".join(map(str, sizes)) or "1"
