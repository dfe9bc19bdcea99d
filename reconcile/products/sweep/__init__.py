"""Every model of a list at once: cells, which are one model in one environment each, and what runs them.

``cells`` is what a cell is and what determines its result, ``listing`` and ``listfile`` make them of what a user names,
``cell`` runs one in a process of its own, ``engine`` runs all of them on any ``concurrent.futures.Executor``.
"""

from ...core.product import Command, Product

PRODUCT = Product(
    name="sweep",
    module=__name__,
    commands=(
        Command("sweep", "Run every model of a package or a list.", ".command:sweep", heading="Many models", order=10),
    ),
)
