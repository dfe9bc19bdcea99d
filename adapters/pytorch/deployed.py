"""Reparameterizes a model for inference (fused or deploy form: branches become one convolution), for ``reconcile decode``.

As ``timm.utils.model.reparameterize_model`` does it (timm 1.0.31, timm/models/_manipulate.py): the first of ``METHODS`` that a
module's class has is called, on every module below the root and then on the children of the result. No class is known by name.
"""

from typing import Any

from ..shared.refusal import FactoryError

METHODS = ("fuse", "reparameterize", "switch_to_deploy")
"""Names of a class's method for it: ``fuse`` returns the module to use instead, the others change the module in place."""


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
