"""PyTorch without the parts that a rank needs says so by name, where the program uses them."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.adapters.shared.refusal import FactoryError

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks


def test_stages_of_another_pytorch_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed.pipelining import stage

    from reconcile.products.ranks.pytorch import pipelines

    made: dict[str, Any] = {}
    monkeypatch.delattr(stage.PipelineStage, "_recv_meta")
    pipelines.replace_exchanges(lambda _owner, name, wrapper: made.update({name: wrapper}), lambda: None)
    assert sorted(made) == ["__init__"]
    with pytest.raises(FactoryError, match=r"by functions of PyTorch 2\.13, which PyTorch .* lacks"):
        made["__init__"](None, object())
