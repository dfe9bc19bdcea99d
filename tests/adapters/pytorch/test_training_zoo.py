"""A training step of every network of the zoo in PyTorch: complete, and flop_counter's figure explained to the last unit."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from reconcile.adapters.pytorch import model as torch_model  # noqa: E402
from reconcile.adapters.pytorch import training  # noqa: E402
from reconcile.core.records import INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E402
from reconcile.model_zoo import loading  # noqa: E402
from reconcile.model_zoo import pair as pairs  # noqa: E402
from reconcile.products.gallery.training import settings_of  # noqa: E402
from reconcile.work import work_of  # noqa: E402
from tests.adapters.pytorch.training_models import explained  # noqa: E402

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]

MODELS = [name for name in loading.zoo_names() if loading.load_pair(loading.pair_path(name)).build_torch]


def built(name, optimizer):
    """In the size of its proof; batches of two, since a batch norm in training takes no single value."""
    module = loading.load_pair(loading.pair_path(name))
    small = dict(module.proof, **({"batch": "2"} if "batch" in module.params else {}))
    model = torch_model.TorchModel(module, pairs.Params(loading.resolve(module, small)))
    model.training = optimizer
    return model


@pytest.mark.parametrize("name", MODELS)
def test_step(name):
    model = built(name, "adam")  # tests/zoo/test_steps_fresh.py has the other one
    # in this process nothing may run on the CPU that PyTorch dies of there: the pair says so by its device
    died = ("PyTorch dies of it",) if settings_of(name)[1] == "meta" else ()
    trace = training.trace(model, died)
    model.device = trace.device  # where it needs values, flop_counter does, too
    explained(model)
    known = [(op, work_of(op).mac * op.calls) for op in trace.ops]
    forward = sum(macs for op, macs in known if op.phase == "forward")
    weights, into = (sum(m for op, m in known if op.phase == phase) for phase in (WEIGHT_GRADIENT, INPUT_GRADIENT))
    assert weights + into <= 2 * forward  # both gradients of every product, less those that nothing asks for
    assert (weights > 0) == (forward > 0)
