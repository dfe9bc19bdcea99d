"""The form that a model's own code makes of it for inference: branches that are added become one convolution.

As ``timm.utils.model.reparameterize_model`` does it (timm 1.0.31, timm/models/_manipulate.py): every module below the root whose
class has one of ``METHODS`` is asked, by the first of them, and then the children of what is there now. No class is known here.
"""

from typing import Any

from ..shared.refusal import FactoryError

METHODS = ("fuse", "reparameterize", "switch_to_deploy")
"""What a class calls it: ``fuse`` returns the module that takes its place, the others change it where it is."""


def fuse_modules(model: Any) -> Any:
    """The model, whose modules were fused where they are. Raises FactoryError if none of them can be."""
    if not _fuse(model):
        raise FactoryError(f"no module of this model has a method {', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    return model


def _fuse(module: Any) -> int:
    """Fuse what is below this module; returns how many modules were."""
    done = 0
    for name, child in list(module.named_children()):
        method = next((method for method in METHODS if callable(getattr(child, method, None))), "")
        if method:
            made = getattr(child, method)()
            if method == METHODS[0]:
                setattr(module, name, made)
                child = made
            done += 1
        done += _fuse(child)
    return done
