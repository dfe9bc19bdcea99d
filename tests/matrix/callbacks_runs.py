"""Training runs with reconcile's callbacks, in the environment of callbacks.toml: prints what they counted as JSON.

Each run states its numbers; test_callbacks.py has their closed forms.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from typing import Any

import torch

LAYERS, WIDTH, WORDS, RANK = 2, 32, 101, 4
"""Of the language model; its feed-forward is four times as wide."""
INPUTS, HIDDEN, RESULTS = 8, 16, 4
"""Of the perceptron."""


def kinds(callback: Any) -> list[tuple[int, int | None]]:
    return [(kind.calls, kind.metrics and kind.metrics["flops"]) for kind in callback.running.kinds]


def told(callback: Any, model: torch.nn.Module, **more: Any) -> dict[str, Any]:
    hooks = sum(len(m._forward_pre_hooks) for m in model.modules())
    return {"flops": callback.flops, "metrics": callback.metrics(), "kinds": kinds(callback), "hooks": hooks, **more}


def trainer(lengths: list[int], lora: bool = False, **arguments: Any) -> dict[str, Any]:
    """Hugging Face's Trainer on GPT-2, a batch for each of these lengths."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    from reconcile.transformers import FlopsCallback

    class Logger(TrainerCallback):
        def __init__(self) -> None:
            self.seen: list[int] = []

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            self.seen.append(logs.get("flops"))

    model = GPT2LMHeadModel(GPT2Config(n_layer=LAYERS, n_embd=WIDTH, n_head=4, vocab_size=WORDS, n_positions=32))
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=RANK, target_modules=["c_attn"], fan_in_fan_out=True))
    data = [{"input_ids": torch.arange(n), "labels": torch.arange(n)} for n in lengths]
    callback, logger = FlopsCallback(), Logger()
    with tempfile.TemporaryDirectory() as folder:
        given = TrainingArguments(
            folder,
            per_device_train_batch_size=1,
            num_train_epochs=1,
            logging_steps=1,
            train_sampling_strategy="sequential",
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            **arguments,
        )
        made = Trainer(model, given, train_dataset=data, callbacks=[callback, logger])
        made.train()
    return told(callback, model, logged=logger.seen, history=made.state.log_history[-1]["flops"])


def lightning(package: str, batches: list[int], **arguments: Any) -> dict[str, Any]:
    """Lightning's Trainer on a perceptron, one epoch of batches of these sizes; with a validation that is not counted."""
    from importlib import import_module

    from reconcile.lightning import Flops

    library = import_module(package)

    class Module(library.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            layers = [torch.nn.Linear(INPUTS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, RESULTS)]
            self.net = torch.nn.Sequential(*layers)

        def training_step(self, batch: Any, _index: int) -> Any:
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, _index: int) -> None:
            self.net(batch[0])

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    data = [(torch.ones(n, INPUTS), torch.zeros(n, dtype=torch.int64)) for n in batches]
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    callback, module = Flops(), Module()
    fitted = library.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback],
        **arguments,
    )
    fitted.fit(module, loader, loader)
    return told(callback, module, logged=float(fitted.callback_metrics["flops"]))


def main() -> None:
    lengths, batches = [8, 8, 8, 6, 8, 8, 8, 8, 8], [4, 4, 4, 2, 4]
    warnings.simplefilter("ignore")
    os.environ["HF_HUB_OFFLINE"] = "1"
    found = {
        "plain": trainer([8, 6, 8, 8]),
        "checkpoints": trainer(lengths, gradient_accumulation_steps=4, activation_checkpointing=True),
        "lora": trainer([8] * 4, lora=True, gradient_accumulation_steps=2),
        "lightning": lightning("lightning.pytorch", batches),
        "accumulated": lightning("pytorch_lightning", batches, accumulate_grad_batches=2, gradient_clip_val=1.0),
    }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
