"""What a counter states of itself before it runs. Python 3.6: workers beside old frameworks read it as well."""

from typing import NamedTuple


class Counter(NamedTuple):
    """One FLOP counter, as the folder that holds it states it.

    ``name`` is what ``--counter`` takes and what ledgers and reports say; members of a family share what stands before
    its ``@``.  ``module`` is the package that states it, its own ``__name__``: ``capture``, ``rules`` and ``bridge`` are
    modules of that package, under whatever name it was imported.  ``framework`` is the one whose models it counts.
    ``unit`` is what one multiply-add adds to its total: MAC 1, FLOP 2.

    ``package`` is the name under which Python imports the counter, ``distribution`` the name under which pip installs
    it; both are '' where the counter is a part of its framework, which is installed, and missed, as such.
    ``versions_key`` is the key of ``Ledger.versions`` by which the rules go.

    ``summary`` is a line for listings, without its full stop.  ``title`` is what to call the counter in print, '' where
    its name will do.

    ``default`` says whether the counter runs unasked.  What runs unasked is what the README, the committed reports,
    sweeps and baselines show, so a new counter states False: then it changes none of them, and ``--counter`` runs it.
    To state True later is a decision that regenerates all of these, in the same commit.

    ``recipe`` names another way of building the model than the framework's present one; '' where it counts the model as
    it is.  A recipe has a trace of its own, so it runs alone and is never a default.  ``blind`` says why the counter
    cannot count a training step; '' where it can.
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

    @property
    def family(self):
        # type: () -> str
        """The name up to its ``@``: the counters that share one set of rules and one page."""
        return self.name.partition("@")[0]
