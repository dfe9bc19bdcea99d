"""The core's commands, one file each, and ``CORE``, the record that registers them, as products register theirs."""

from ...core.product import Command, Product

COUNT = "Count a model"

CORE = Product(
    name="core",
    module=__name__,
    commands=(
        Command("run", "Run the counters on a model and reconcile them.", ".run:run", COUNT, 10),
        Command("matrix", "Run a model in several environments and compare them.", ".matrix:matrix", COUNT, 40),
        Command("explain", "Explain a name in a report, or list all names.", ".explain:explain", COUNT, 70),
        Command(
            "environments",
            "List the environments that runs have made, or remove some.",
            ".environments:environments",
            COUNT,
            45,
        ),
        Command("check", "Compare a run with a baseline, or two saved files.", ".check:check", "Releases", 10),
        Command(
            "zoo",
            "Run the models of this tool and write their pages.",
            heading="Many models",
            order=20,
            text="Run the models of this tool and write their pages.\n\n"
            "A pair is one model in TensorFlow and PyTorch. `reconcile explain models` lists the pairs, and "
            "`reconcile run --model NAME` runs one.",
        ),
    ),
)
