"""Archives: a kind or one sentence for any of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

from . import mutate, zips
from .harness import Target, Wrong, drawn

NAMES = mutate.words(
    "archive/data.pkl archive/constants.pkl archive/code/a.py archive/models/m.json config.json metadata.json saved_model.pb"
)


def any_archive(rng: Random) -> bytes:
    """A zip archive of names that mean something to some kind of model."""
    members = {name: rng.choice((b"{}", b"", b"x" * 40)) for name in NAMES if rng.random() < 0.5} or {"a": b""}
    data = zips.mutated(rng, members, {rng.choice(NAMES): b"another"})
    return mutate.blob(rng, data, (b"PK\x05\x06", b"PK\x06\x06", b"\xff\xff\xff\xff")) if rng.random() < 0.7 else data


def check_any(data: bytes, folder: Path) -> None:
    """Whatever it is: a kind, or one sentence."""
    from reconcile.core.errors import UsageError
    from reconcile.products.files import kinds

    path = folder / "net.zip"
    path.write_bytes(data)
    for framework in ("torch", "tf", "onnx"):
        try:
            assert kinds.read_model_file(framework, str(path)).kind in kinds.KINDS
        except UsageError as error:
            if "\n" in str(error):
                raise Wrong("its sentence has several lines") from error


TARGETS = (Target("archives", lambda: drawn(any_archive), check_any),)
