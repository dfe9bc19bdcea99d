"""Entry point of a worker: the ``__main__`` of reconcile.pyz, the packed tool, called as ``python reconcile.pyz REQUEST``.

With the name of a module behind the request, such as ``.products.steps.watched_program``, it runs that module's ``main``, with
the request and the further arguments (products/steps/foreground.py, products/forked_workers.py).

The package has a private name there: beside user code, ``reconcile`` may be one of the user's modules, or another version of
this package.  Python 3.6 and standard library only.
"""

import importlib
import importlib.machinery
import importlib.util
import sys

PRIVATE = "_reconcile_worker"


def make_importable(tool: str, name: str = PRIVATE) -> None:
    """Make the package inside the file ``tool`` importable under that name."""
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    assert spec.submodule_search_locations is not None
    spec.submodule_search_locations.append(tool + "/reconcile")
    sys.modules[name] = importlib.util.module_from_spec(spec)


def main() -> int:
    """Run what the command line asks for: a worker, or the module that it names. Returns the exit status."""
    tool, request = sys.argv[:2]
    module, *arguments = sys.argv[2:] or [".worker.main"]
    make_importable(tool)
    sys.argv[:] = ["-c"]  # a user's module that reads its arguments finds none
    return int(importlib.import_module(PRIVATE + module).main(request, *arguments))


if __name__ == "__main__":
    sys.exit(main())
