"""Tables of claims out of what a library publishes about itself."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from ..core.errors import UsageError
from ..core.table import written
from ..launch.environments import Environment
from ..launch.interpreters import EnvironmentError_, clean_environ
from ..launch.provision import ensure
from .claims import COLUMNS

LIMIT = 300.0
"""Seconds that importing the library may take."""
TORCHVISION = """
import importlib.util, json, os, sys
sys.path.insert(0, sys.argv[1])
from reconcile.adapters.pytorch import torchvision as operators
operators.watch()
import torch, torchvision
from torchvision import models
rows = []
def takes_size(name, size):
    try:
        with torch.device("meta"):
            models.get_model_builder(name)(image_size=size)
    except (TypeError, ValueError):
        return False
    return True
for name in sorted(models.list_models(module=models)):
    for weights in models.get_model_weights(name):
        size = weights.transforms.keywords.get("crop_size")
        if "_ops" in weights.meta and size:
            model = name
            if size != 224 and weights.meta.get("min_size") == (size, size) and takes_size(name, size):
                model += "(image_size=%d)" % size
            rows.append([model, size, repr(weights.meta["_ops"]), str(weights)])
sys.stdout.write("\\n" + json.dumps([torchvision.__version__, rows]))
"""
"""Prints the models that classify pictures, with the size of a picture, the figure and the weights that state it. A model that
takes nothing but pictures of one size is made for that size, as it is when these weights are loaded into it."""


def torchvision(environment: Environment) -> str:
    """The figures that torchvision's weights state for models that classify pictures, as the text of a table of claims.

    They are labelled GFLOPS on the pages that are made of them. Raises UsageError where the environment has no torchvision.
    """
    root = str(Path(__file__).resolve().parents[2])
    try:
        command = [str(ensure(environment)), "-c", TORCHVISION, root]
        with tempfile.TemporaryDirectory(prefix="reconcile-") as folder:
            done = subprocess.run(
                command, cwd=folder, env=clean_environ(), stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False,
            )  # fmt: skip
    except (EnvironmentError_, subprocess.TimeoutExpired) as error:
        raise UsageError(f"torchvision's figures cannot be read: {error}.") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["its process ended"])[-1]
        raise UsageError(f"torchvision's figures cannot be read: {last[:300].rstrip('.')}.")
    version, rows = json.loads(done.stdout.strip().splitlines()[-1])
    source = f"torchvision {version.partition('+')[0]}"
    claims = [
        (f"torchvision:{name}", f"1,3,{size},{size}", figure, "GFLOPS", f"{source}, {weights}", "", environment.name)
        for name, size, figure, weights in rows
    ]
    return written([COLUMNS, *claims])
