"""PyTorch's framework record (package, environments, options); the modules in this folder trace and count its models."""

from typing import List

from ...core.framework import Framework

LAUNCHES_COUNTED_BY: List[str] = []
"""The modules that count the products of launches (Framework.launches), of the record that an adapter was made of."""
FRAMEWORK = Framework(
    name="torch",
    title="PyTorch",
    package="torch",
    adapter=".adapters.pytorch.adapter",
    formulas=".work.aten",
    model="torch.nn.Module",
    help="PyTorch model: a function that returns it.",
    extra="torch",
    distributions=("torch",),
    newest_python=(3, 14),
    around=("torchvision", "thop", "fvcore", "torchinfo", "ptflops"),
    # thop imports numpy and distutils, which setuptools brings, and names neither. PyTorch 1 imports pkg_resources.packaging,
    # which setuptools 70 dropped; before 2.3 it was built for numpy 1.
    beside=("numpy", "setuptools"),
    bounds=(("<2", ("setuptools<70",)), ("<2.3", ("numpy<2",))),
    trains=True,
    optimizers=(
        "sgd",
        "adadelta",
        "adafactor",
        "adagrad",
        "adam",
        "adamax",
        "adamw",
        "asgd",
        "lbfgs",
        "muon",
        "nadam",
        "radam",
        "rmsprop",
        "rprop",
        "sparseadam",
    ),
    decodes=True,
    retraced=True,
    backend="torch",
    forks=True,
    placed=True,
    order=1,
)
