"""``reconcile.llm``: compares FLOP formulas of a language model, published ones and your own, with the work of its step.

It returns a LanguageModel, the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.escaping import escape_line
from ...launch.keywords import speaks_python

if TYPE_CHECKING:
    import pandas

    from ...launch.workers.supervisor import Event
    from .comparison import Comparison


@dataclass(frozen=True, slots=True, repr=False)
class LanguageModel:
    """The result of ``reconcile.llm``: ``result`` is the whole record (a Comparison), the rest are views of it.

    Counts are Python integers, FLOPs of one step of ``result.tokens`` tokens.
    """

    result: Comparison

    @property
    def exit_code(self) -> int:
        """0 every number is explained, 1 something is not."""
        return self.result.exit_code

    @property
    def exact(self) -> tuple[str, ...]:
        """The formulas that give exactly the products that ran, without recomputed activations."""
        return self.result.exact

    @property
    def mfu_flops(self) -> int:
        """FLOPs of the training step without recomputation: the numerator of MFU. Raises NotInResult for a forward pass."""
        return self._of_step("MFU", self.result.ran_once)

    @property
    def hfu_flops(self) -> int:
        """FLOPs of the training step with recomputation: the numerator of HFU. Raises as ``mfu_flops``."""
        return self._of_step("HFU", self.result.ran)

    def _of_step(self, name: str, flops: int) -> int:
        from ...core.errors import NotInResult

        if not self.result.training:
            raise NotInResult(f'{name} is of a training step: leave pass_="forward" out.')
        return flops

    @property
    def table(self) -> pandas.DataFrame:
        """A row per formula, the nearest first: ``FLOP`` per step, ``of what ran`` (a Fraction), ``residual``, and ``why``.

        ``why`` spells the causes with what each adds to arrive at what ran, or why the formula has no number; None stands there
        for a number.
        """
        from ...report.frames import make_frame
        from .report import why

        ran = self.result.ran_once
        rows = (
            [q.name, q.step, None if q.step is None else Fraction(q.step, ran), q.residual, why(q)]
            for q in self.result.quotes
        )
        return make_frame(rows, ["formula", "FLOP", "of what ran", "residual", "why"], index=True)

    def cite(self) -> str:
        """The sentence to publish: FLOPs per token, the step, the convention and the versions."""
        from .report import cite

        return escape_line(cite(self.result))

    def write(self, folder: str | Path, formats: Sequence[str] = ("md", "json"), name: str = "") -> list[Path]:
        """Write the page as ``<name>.<format>`` ("md", "json" or "text"), by default named like the model. Returns the files.

        Raises UsageError for a format that is none, and for a folder that cannot be written to.
        """
        from ...core import atomic
        from ...core.errors import check_names
        from ...report.reports import stem
        from .report import FORMATS

        check_names("format", formats, FORMATS)
        atomic.prepare(Path(folder))
        made = {format_: FORMATS[format_](self.result) for format_ in formats}
        return atomic.write(Path(folder), name or stem(self.result.model, training=self.result.training), made)

    def __str__(self) -> str:
        from .report import to_text

        return to_text(self.result).rstrip("\n")

    def __repr__(self) -> str:
        from .report import choice

        return f"<reconcile.{type(self).__name__} {escape_line(self.result.model)}: {escape_line(choice(self.result))}>"

    def _repr_markdown_(self) -> str:
        from .report import to_markdown

        return to_markdown(self.result)


@speaks_python()
def llm(
    model: Any,
    *,
    seq: int | None = None,
    lengths: Sequence[int] = (),
    batch: int | None = None,
    lora: int | str = "",
    images: int | None = None,
    image_size: Sequence[int] = (),
    inputs: Any = None,
    pass_: str = "training",
    formulas: Sequence[Any] = (),
    per: str = "step",
    progress: Callable[[Event], None] | None = None,
) -> LanguageModel:
    """Compare the published formulas of a language model with what its step takes, as ``reconcile llm`` does.

    ``model`` is the path of a HuggingFace config.json or of its folder, what stands in one (a dict, or a configuration of
    transformers), a function's name (``"net:make"``), a pair's, a PyTorch model, or a function that returns ``(model, inputs)``.
    A configuration is made on the meta device and called with ``batch`` sequences of ``seq`` tokens, 1 of 2,048 unless given, or
    of packed documents with these ``lengths``, in which a token sees its own document alone; ``lora=16``, or
    ``"16:q_proj,v_proj"`` with the modules, freezes its weights and trains adapters of this rank; ``images`` of
    them stand in each sequence of a model that reads images as well, of ``image_size`` pixels, (height, width), where the
    configuration states none. Every other model has ``inputs`` of its own, as in ``reconcile.run``. A named model runs in a
    worker process.
    ``pass_="forward"`` counts a call in place of a training step; ``progress`` is called with every Event. ``formulas`` are
    functions of your own to explain beside the published ones: each takes (config, batch, seq), or says by the names of its
    parameters what it takes, and returns FLOPs of a step, or of a token with ``per="token"``.

    Raises UsageError, with one sentence, for what cannot be used, and NotInResult if what ran is not known.
    """
    from ...launch import importable_models
    from .request import make_comparison, read_functions, read_request

    tell, paths = progress or (lambda _event: None), importable_models.paths()
    sizes: dict[str, Any] = {"seq": seq, "lengths": lengths, "batch": batch, "lora": str(lora or "")}
    sizes.update(images=images, image_size=image_size)
    others = (lengths, lora, images, image_size)
    functions = read_functions(model, formulas, batch=batch, seq=seq, pass_=pass_, per=per, others=others)
    request = read_request(model, **sizes, pass_=pass_, inputs=inputs, paths=paths)
    return LanguageModel(make_comparison(*request, tell, functions))
