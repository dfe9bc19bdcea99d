"""Writes the generated part of docs/: ``make docs``. A test holds what is committed to what this writes.

The pages of causes, conventions and counters come from ``reconcile/pages``, the commands from click, the models from
the zoo. All other pages and the files of conventions are written by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from docs.formulas import formulas
from reconcile.cli import CONTEXT, cli
from reconcile.core.escaping import markdown, prose
from reconcile.model_zoo.loading import pair_path, zoo_names
from reconcile.pages import LETTERS_OF_FORMULAS, Page, pages, short

HERE = Path(__file__).parent
NOTE = "<!-- Written by `make docs`; edit {}, not this. -->"
WIDTH = 100
TITLES = {"causes": "Causes", "conventions": "Conventions", "counters": "Counters"}
ABOUT = {
    "causes": "Why two numbers differ. The order matters: each part of a difference is booked whole to the first "
    "cause that applies.",
    "conventions": "What counts as a FLOP. Your own convention is a table of integer weights (`--convention-file`), such as "
    "[three published formulas for one convolution](naive_convolution.toml).",
    "counters": "What each counter counts, what it does not see, and its rules with their source lines. "
    "[The scorecard](../../reports/scorecard/README.md) shows which layers each of them counts exactly, and "
    "[a table](../../reports/counters.md) what became of each on every model of the zoo.",
}

IN_ORDER = "Which causes take precedence over it: [all in their order](README.md)."
"""In place of the neighbours of a cause, which would change all pages whenever there is another cause."""

NOT_COUNTERS = """
## Figures that are not counters here

**The TFLite converter's estimate** is printed to a log, and nothing that a Python program can call returns it. From 10,000 on it
has three decimals of a million, so it says nothing about the last units, and there is no number per op:

```python
import tensorflow as tf

net = tf.keras.Sequential([tf.keras.Input((100,), batch_size=1), tf.keras.layers.Dense(12345, use_bias=False)])
tf.lite.TFLiteConverter.from_keras_model(net).convert()
```

In TensorFlow 2.21 this logs `Estimated count of arithmetic ops: 2.469 M  ops, equivalently 1.234 M  MACs` for 2 * 100 * 12345 =
2,469,000 ops (`tensorflow/compiler/mlir/lite/flatbuffer_export.cc:4302`); with 49 instead of 12345 units it logs all digits,
9800. `tf.lite.experimental.Analyzer` shows the ops and their shapes, without counts. TensorFlow contains the compiler pass
`tfl-get-arithmetic-count`, which writes the count to each op, but `tf.mlir.experimental.run_pass_pipeline` does not know TFLite's
ops: "operation being parsed with an unregistered dialect". To find out how such a figure was counted, use
[`reconcile decode`](../decode.md) with the digits that you have.
"""
"""Numbers that people quote and that cannot be had to the last unit, each with the reason and what shows it."""

AFTER = {"counters": ("", NOT_COUNTERS.strip())}
"""What follows the table of a kind."""


def texts() -> dict[str, str]:
    """Every generated file by its path in docs/."""
    found = {f"{page.kind}/{page.name}.md": _page(page) for page in pages()}
    for kind, title in TITLES.items():
        rows = [f"| [{p.name}]({p.name}.md) | {prose(p.meaning)} |" for p in pages() if p.kind == kind]
        note = NOTE.format("docs/write.py")
        lines = [
            f"# {title}",
            "",
            note,
            "",
            ABOUT[kind],
            "",
            "| name | what it is |",
            "|:--|:--|",
            *rows,
            *AFTER.get(kind, ()),
        ]
        found[f"{kind}/README.md"] = "\n".join(lines) + "\n"
    found["cli.md"] = "\n".join(_commands())
    found["models.md"] = "\n".join(_models())
    found["ops.md"] = "\n".join(["# Formulas", "", NOTE.format("reconcile/work"), "", *formulas()])
    found["README.md"] = "\n".join(_index())
    return found


def _page(page: Page) -> str:
    lines = [f"# {page.name}", "", NOTE.format(f"reconcile/pages/{page.kind}/{page.name}.md"), ""]
    facts = IN_ORDER if page.kind == "causes" else markdown(page.facts)
    lines += [f"**{prose(page.meaning)}** {facts}", "", page.text.strip()]
    if page.rules:
        lines += [
            "",
            "## What it counts, by operation",
            "",
            LETTERS_OF_FORMULAS,
            "",
            "| operations | formula | versions | source |",
        ]
        lines += ["|:--|:--|:--|:--|"]
        for rule in page.rules:
            ops = ", ".join(f"`{op}`" for op in dict.fromkeys(map(short, rule.ops)))
            lines.append(f"| {ops} | {markdown(rule.formula)} | {markdown(rule.versions)} | {markdown(rule.source)} |")
    return "\n".join(lines).replace("```python slow", "```python").replace("```python there", "```python") + "\n"


def _commands() -> Iterator[str]:
    yield from ("# The command line", "", NOTE.format("the commands' own help"), "")
    group = click.Context(cli, info_name="reconcile", terminal_width=WIDTH, **CONTEXT)
    yield from ("```", *_help(group), "```", "")
    for name, command in cli.walk(group):
        *groups, word = name.split()
        parent = group
        for outer in groups:
            parent = click.Context(cli, info_name=outer, parent=parent, terminal_width=WIDTH)
        context = click.Context(command, info_name=word, parent=parent, terminal_width=WIDTH)
        yield from (f"## reconcile {name}", "", "```", *_help(context), "```", "")


def _help(context: click.Context) -> list[str]:
    return [line.rstrip() for line in context.get_help().splitlines()]


def _models() -> Iterator[str]:
    yield from ("# Models", "", NOTE.format("the pairs' own first lines"), "")
    yield from (
        "The pairs of the zoo, each with its report. Run one with `reconcile run --model NAME`.",
        "",
        "| model | what it is |",
        "|:--|:--|",
    )
    for name in zoo_names():
        about = (ast.get_docstring(ast.parse(Path(pair_path(name)).read_text(encoding="utf-8"))) or "").partition("\n")[
            0
        ]
        yield f"| [{name}](../reports/{name}.md) | {markdown(about)} |"
    yield ""


INDEX = """
## Start

- [Install it](../README.md), for Linux, macOS and Windows, and see a first result.
- [Commands by task](usage.md): what to type for what you want to do.
- [Reading a report](reports.md): the tables, the number to publish, the files, the HTML page.
- [Environments](environments.md): where your model runs, and what your code sees there.

## Tasks

- [Your own step](steps.md): what a step of your own loop costs, phase by phase (`reconcile.count`, `reconcile watch`).
- [Callbacks](callbacks.md): what a training run costs, in transformers, Lightning and Keras.
- [The pytest plugin](pytest.md) and [pull requests](pull-requests.md): a test or a comment when your FLOPs change.
- [decode](decode.md), [audit](audit.md): how a published number, or each number of a table, was counted.
- [llm](llm.md), [mfu](mfu.md): which formula fits a language model, and why two utilisations differ.
- [Alignment](alignment.md): how the layers of two models are matched, and how you correct that.
- [Symbolic counts](formula.md): the counts as exact polynomials of a model's sizes.
- [Sweeps](sweep.md): every model of a package or a list, on one machine or a cluster.
- [Many ranks](ranks.md), [large models](large.md): several processes that share a model, models that do not fit into memory.
- [Cards and disclosures](cards.md): the number in a model card, and in a statement of training compute.

## Reference

- [The command line](cli.md), [Python](api.md) and [a notebook](example.ipynb): every command, option and function.
- [Ways to run a PyTorch model](ways.md), [JAX](jax.md), [files](files.md): what can be counted, and what is refused.
- [Causes](causes/README.md), [conventions](conventions/README.md), [counters](counters/README.md), [formulas](ops.md).
- [Models](models.md) of the zoo; [the gallery](../reports/README.md) has their numbers.
- [Moved modules](moved.md): where what your package imports stands now.

## Evidence

- [The log of the math libraries](witness.md), [kernels of a GPU](kernels.md): counts that are independent of all counters.
- [Bugs on record](bugs.md): programs that show each with the bare counter.
- [Corrections](corrections.md) of 2026, and [OlmoEarth's](olmoearth.md) model by model: figures decoded and confirmed.
"""


def _index() -> Iterator[str]:
    yield from ("# Documentation", "", NOTE.format("docs/write.py"), INDEX)


def main() -> None:
    """Write what has changed, and take away pages of what is gone."""
    wanted = texts()
    for kind in TITLES:
        for path in (HERE / kind).glob("*.md"):
            if f"{kind}/{path.name}" not in wanted:
                path.unlink()
    for name, text in wanted.items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
