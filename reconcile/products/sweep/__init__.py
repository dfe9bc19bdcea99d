"""``reconcile sweep``: runs every model of a list or a package, each in a cell: one model in one environment.

``cells`` is what a cell is and what determines its result, ``listing`` and ``listfile`` make them of what a user names,
``cell`` runs one in a process of its own, ``engine`` runs all of them on any ``concurrent.futures.Executor``. ``lists`` has the
models of libraries whose models are functions, ``small_models`` makes small models of those whose models are made from a
configuration: both run beside PyTorch, in a worker.
"""

from ...core.product import Command, Product

PRODUCT = Product(
    name="sweep",
    module=__name__,
    commands=(
        Command("sweep", "Run every model of a package or a list.", ".command:sweep", heading="Many models", order=10),
    ),
    framework_fields=(
        (
            "torch",
            "libraries",
            (
                ("transformers", ".products.sweep.small_models.transformers"),
                ("diffusers", ".products.sweep.small_models.diffusers"),
            ),
        ),
        (
            "torch",
            "functions",
            (
                ("timm", "timm.models", ".products.sweep.lists.timm"),
                ("torchvision", "torchvision.models", ".products.sweep.lists.torchvision"),
            ),
        ),
    ),
    needs=("products.torchvision",),
)
