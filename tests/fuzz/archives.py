"""Archives: a kind or one sentence for any of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from random import Random

from . import mutate
from .harness import Target, Wrong, drawn

NAMES = mutate.words(
    "archive/data.pkl archive/constants.pkl archive/code/a.py archive/models/m.json config.json metadata.json saved_model.pb"
)


def any_archive(rng: Random) -> bytes:
    """A zip archive of names that mean something to some kind of model, with bytes of it changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in rng.sample(NAMES, rng.randint(1, len(NAMES))):
            archive.writestr(name, rng.choice((b"{}", b"", b"x" * 40)))
    return mutate.blob(rng, made.getvalue(), (b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"\xff\xff\xff\xff"))


def check_any(data: bytes, folder: Path) -> None:
    """Whatever it is: a kind, or one sentence."""
    from reconcile.core.errors import UsageError
    from reconcile.products.files import kinds

    path = folder / "net.zip"
    path.write_bytes(data)
    for framework in ("torch", "tf", "onnx", "tflite"):
        try:
            assert kinds.read_model_file(framework, str(path)).kind in kinds.KINDS
        except UsageError as error:
            if "\n" in str(error):
                raise Wrong("its sentence has several lines") from error


TARGETS = (Target("archives", lambda: drawn(any_archive), check_any),)
