"""Entry point of a worker: the ``__main__`` of reconcile.pyz, the packed tool, called as ``python reconcile.pyz REQUEST``.

With a number behind the request, the process forks workers (launch/workers/nursery.py). With the name of a module, such as
``.products.steps.watched_program``, it runs that module's ``main(request)`` (products/steps/foreground.py).

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
    """Run what the command line asks for: a worker, a nursery, or the module that it names. Returns the exit status."""
    tool, request = sys.argv[:2]
    control = sys.argv[2:]
    make_importable(tool)
    sys.argv[:] = ["-c"]  # a user's module that reads its arguments finds none
    if control and control[0].startswith("."):
        return int(importlib.import_module(PRIVATE + control[0]).main(request))
    module = importlib.import_module(PRIVATE + (".launch.workers.nursery" if control else ".worker.main"))
    return int(module.main(request, *control))


if __name__ == "__main__":
    sys.exit(main())
