"""``Counter``: the record in which a counter's folder states its name, unit, package and framework, read before it runs.

Python 3.6 syntax: workers beside old frameworks import it as well.
"""

from typing import NamedTuple, Tuple


class Counter(NamedTuple):
    """One FLOP counter, as its folder declares it.

    Attributes:
        name: The value of ``--counter`` and the name in ledgers and reports. Members of a family share the part before the ``@``.
        module: The package that declares it, its own ``__name__``: ``capture``, ``rules`` and ``bridge`` are modules of that
            package, whatever name it was imported under.
        framework: The one whose models it counts.
        unit: How much one multiply-add adds to its total: MAC 1, FLOP 2.
        package: The name under which Python imports the counter; '' if it is part of its framework.
        distribution: The name under which pip installs it; '' if it is part of its framework.
        versions_key: The key of ``Ledger.versions`` that selects the rules.
        summary: A line for listings, without a full stop.
        default: Whether it runs without being asked for. The README, the committed reports, sweeps and baselines show the default
            counters, so a new counter starts with False: it changes none of them, and ``--counter`` runs it. Changing that to
            True means regenerating all of them in the same commit.
        blind: Why it cannot count a training step; '' if it can.
        recipe: A way of building the model other than the framework's current one; '' if the counter takes the model as it is. A
            recipe has its own trace, so it runs alone and is never a default.
        title: Its name in print; '' if ``name`` will do.
        requirements: What pip installs, without dependencies and over the running interpreter's own packages, for a counter that
            cannot be installed beside the others: ``--environment`` and the name of its family run it there.
        folder: The folder that holds its top-level package if another package registered it (core/registry.py): a worker imports
            it from there. '' otherwise.
        quoted: Whether it is a formula that people quote, and runs nothing: ``--counter all`` leaves it out, and ``all`` of its
            family names it.
        rare: Whether, of those with ``requirements``, it takes few models: it runs there only if ``--counter`` names it.
        checked: The oldest and the newest release of ``versions_key`` that the rules were held to, '' for an end that was not
            looked for.
        leads: Whose statement a report shows first, of its framework's counters: of a ``"call"``, the one that people mean by the
            framework's counter; of a training ``"step"``, the one that sees gradients best. A ``"witness"`` is what ``--witness``
            adds.
        nested: The module whose ``nested`` makes what counts a program's own step beside the trace, in one execution: absolute,
            or relative to this package with a leading dot. '' if it counts no such step.
        variables: Those of the environment that have to be set before its framework is imported: it runs in a process of its own,
            which has them.
    """

    name: str
    module: str
    framework: str
    unit: str
    package: str
    distribution: str
    versions_key: str
    summary: str
    default: bool
    blind: str
    recipe: str = ""
    title: str = ""
    requirements: Tuple[str, ...] = ()
    folder: str = ""
    quoted: bool = False
    rare: bool = False
    checked: Tuple[str, str] = ("", "")
    leads: Tuple[str, ...] = ()
    nested: str = ""
    variables: Tuple[Tuple[str, str], ...] = ()

    @property
    def family(self) -> str:
        """The name up to its ``@`` or ``:``: the counters that share one set of rules and one page."""
        return self.name.partition("@")[0].partition(":")[0]
