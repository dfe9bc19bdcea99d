"""``Product``: the record that registers a product, which adds commands, options of ``run`` and functions to the core.

A product is a folder below ``reconcile/products/`` whose ``__init__`` declares its :class:`Product`, or another package that
registers one with an entry point in the group ``reconcile.products``: ``mine = "my_package:PRODUCT"``. The record imports
nothing: what it names is loaded when it is used (core/registry.py). Without the folder and its row in
``registry.PRODUCT_FOLDERS``, everything else works. A worker beside an older Python imports the record, too, where it imports a
module of the product.

A place is written ``"module:name"``. The module is absolute, or relative to the product's own package with a leading dot.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .counter import Counter
from .errors import UsageError
from .framework import ROOT, Framework


@dataclass(frozen=True)
class Command:
    """A command of ``reconcile``.

    Attributes:
        name: The words that call it: ``"audit"``, or ``"zoo gallery"`` for a command of a group.
        line: What ``--help`` says of it, in one line.
        place: Where its click command is, ``"module:name"``. The place of a group is ``""``.
        heading: The heading of ``--help`` under which it is listed.
        order: Its position under that heading. Commands of equal order keep the order of their products.
        text: The help of a group, whose commands are those whose names begin with its own. ``""`` if it is no group.
    """

    name: str
    line: str
    place: str = ""
    heading: str = "Commands"
    order: int = 100
    text: str = ""


@dataclass(frozen=True)
class RunFormat:
    """A format of the reports of a run.

    Attributes:
        name: The word for ``--format``.
        end: The end of the report's file name.
        render: The place of a function ``(answer, command) -> text``.
        check: The place of a function ``(request)``, called before a run, that raises UsageError if it would have no such report.
    """

    name: str
    end: str
    render: str
    check: str = ""


@dataclass(frozen=True)
class Product:
    """What a product adds. Every field but the first two may be empty.

    Attributes:
        name: The product's name in messages.
        module: The package that declares it, its own ``__name__``.
        commands: Its commands.
        options: Places of tuples of :class:`reconcile.core.option.Option`: what it adds to the options of a run
            (launch/options.py), for the commands that their ``takers`` name.
        model_readers: Places of functions ``(models, given) -> {framework: ModelFile}``: those of the user's models, by
            framework, that are files which it reads. ``given`` has the options of the run that were given, by parameter name.
        run_options: Places of :class:`reconcile.cli.run_options.RunOptions`: what it adds to ``run`` and ``watch``.
        answer_hooks: Places of functions ``(request, collected, answer) -> answer``, called when an answer is settled.
        model_notes: Places of functions ``() -> {pair: note}``: what ``reconcile explain models`` adds to a pair's line.
        functions: What it adds to the Python package: ``("count", "module:name")`` for ``reconcile.count``.
        fixture_functions: What it adds to the pytest fixture: ``("formula", "module:name")`` for ``flops.formula``. The function
            gets the folder of the test before the arguments, and fails the test with an AssertionError.
        check_formats: What it adds to the formats of ``reconcile check``: ``("junit", "module:name")`` for ``--format junit``.
            The function gets the model's name, the outcome (drift/check.py; None where there is no baseline), the convention,
            remarks for the end, and the command that accepts all of it. It returns a text, and lines for the log.
        run_formats: What it adds to the formats of ``reconcile run`` and ``watch``.
        framework_fields: What it adds to the records of frameworks (core/framework.py): (name of a framework, field, value). A
            tuple is appended to the field's, any other value takes its place. A framework that is not there is left out.
        counter_fields: What it adds to the records of counters (core/counter.py), in the same way.
        needs: The parts that it imports, such as ``"products.decode"`` or ``"counters.formulas"``. It is left out where one of
            them is missing.
        uses: The products of which it imports something only where ``registry.products()`` has them.
    """

    name: str
    module: str
    commands: tuple[Command, ...] = ()
    options: tuple[str, ...] = ()
    model_readers: tuple[str, ...] = ()
    run_options: tuple[str, ...] = ()
    answer_hooks: tuple[str, ...] = ()
    model_notes: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] = ()
    fixture_functions: tuple[tuple[str, str], ...] = ()
    check_formats: tuple[tuple[str, str], ...] = ()
    run_formats: tuple[RunFormat, ...] = ()
    framework_fields: tuple[tuple[str, str, Any], ...] = ()
    counter_fields: tuple[tuple[str, str, Any], ...] = ()
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


def load_place(product: Product, place: str) -> Any:
    """Import what a place of the product names. Raises UsageError if another package has the product and it cannot be loaded."""
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module, product.module), name)
    except Exception as error:
        if product.module.startswith(f"{ROOT}."):
            raise
        raise refuse_product(product, f"{place} cannot be loaded ({type(error).__name__}: {error})") from error


def extend_records(known: Mapping[str, Any], products: Iterable[Product], fields: str) -> dict[str, Any]:
    """The records of frameworks with what these products add to them as ``"framework_fields"``, those of counters with their
    ``"counter_fields"``."""
    extended = dict(known)
    for name, field, value in (entry for product in products for entry in getattr(product, fields)):
        if name in extended:
            held = getattr(extended[name], field)
            extended[name] = extended[name]._replace(**{field: held + value if isinstance(held, tuple) else value})
    return extended


def find_wrong_entry(product: Product) -> str:
    """The first of its ``framework_fields`` and ``counter_fields`` that no record can take, as it is written; '' without one."""
    for record, entries in ((Framework, product.framework_fields), (Counter, product.counter_fields)):
        defaults = record._field_defaults
        untyped: tuple[Any, ...] = entries  # of another package: anything
        for entry in untyped:
            if not isinstance(entry, tuple) or len(entry) != 3 or entry[1] not in defaults:
                return repr(entry)
            if not isinstance(entry[2], type(defaults[entry[1]])):
                return repr(entry)
    return ""


def refuse_product(product: Product, why: str) -> UsageError:
    """The exception for a product of another package that cannot be used."""
    return UsageError(
        f"the product {product.name} cannot be used: {why}. Fix or uninstall the package that provides it."
    )
