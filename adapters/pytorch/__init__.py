"""PyTorch: its record here, its models, traces and training steps in the modules beside it."""

from ...core.framework import Framework

FRAMEWORK = Framework(
    name="torch",
    title="PyTorch",
    package="torch",
    adapter=".adapters.pytorch.adapter",
    formulas=".work.aten",
    model="torch.nn.Module",
    help="PyTorch model: a function that returns it, or a .pt2 or TorchScript file.",
    metavar="MODULE:FUNCTION|FILE",
    extra="torch",
    distributions=("torch", "torchvision", "thop", "fvcore", "torchinfo", "ptflops"),
    # thop imports numpy and distutils, which setuptools brings, and names neither. PyTorch 1 imports pkg_resources.packaging,
    # which setuptools 70 dropped; before 2.3 it was built for numpy 1.
    beside=("numpy", "setuptools"),
    bounds=(("<2", ("setuptools<70",)), ("<2.3", ("numpy<2",))),
    files=(("exported_program", "a torch.export archive"), ("torchscript", "a TorchScript archive")),
    trains=True,
    decodes=True,
    retraced=True,
    backend="torch",
    forks=True,
    placed=True,
    steps=True,
    watched=("torch", "PyTorch"),
    libraries=(
        ("transformers", ".adapters.pytorch.libraries.transformers"),
        ("diffusers", ".adapters.pytorch.libraries.diffusers"),
    ),
    functions=(
        ("timm", "timm.models", ".adapters.pytorch.lists.timm"),
        ("torchvision", "torchvision.models", ".adapters.pytorch.lists.torchvision"),
    ),
    order=1,
)
