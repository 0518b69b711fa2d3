"""GRPOTrainer with TRL's sampler and with use_plan, on a tiny model; Trainer's own checkpoints.

A sample is a prompt, from which two completions are generated.

Beside row.py it needs `pip install torch tokenizers datasets transformers trl==1.16.0`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", ACCELERATE_USE_CPU="true")

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from tests.runs.row import Leg, Steps

ENDLESS = True  # by max_steps
COPIES = 2
SIZES: dict[str, Any] = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
}


def ours(leg: Leg) -> Steps:
    """Read the prompts by a plan."""
    import indexplan as ip
    from indexplan_torch.transformers import use_plan

    def planned(trainer: GRPOTrainer) -> None:
        order = ip.Repeat(ip.Shuffle(leg.samples, seed=1), copies=COPIES)
        size = trainer.args.generation_batch_size
        use_plan(trainer, ip.Plan(order, global_batch_size=size, remainder="carry"))

    return trained(leg, planned)


def theirs(leg: Leg) -> Steps:
    """Read them as TRL's RepeatSampler does, which begins with epoch 0's order after a resume."""
    return trained(leg, lambda _: None)


class Noting(GRPOTrainer):  # type: ignore[misc, unused-ignore]
    """TRL's trainer, which notes the prompts of each step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.read: Steps = []

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Train on completions of some prompts."""
        self.read.append([row["number"] for row in inputs[::COPIES]])
        return super().training_step(model, inputs, *args, **kwargs)


def trained(leg: Leg, use: Callable[[GRPOTrainer], None]) -> Steps:
    """Train a leg; return what was read of its epoch, before which earlier ones are trained."""
    checkpoint = next(leg.checkpoint.glob("checkpoint-*")) if leg.checkpoint else None
    done = int(checkpoint.name.partition("-")[2]) if checkpoint else leg.before
    arguments = GRPOConfig(
        str(leg.save or leg.checkpoint or tempfile.gettempdir()),
        num_generations=COPIES,
        per_device_train_batch_size=leg.global_batch * COPIES // leg.world_size,
        steps_per_generation=1,
        gradient_accumulation_steps=1,
        max_completion_length=1,
        max_steps=done + (leg.steps or 0),
        save_strategy="steps" if leg.save else "no",
        save_steps=done + (leg.steps or 0),
        logging_strategy="no",
        use_cpu=True,
        bf16=False,
        report_to="none",
        disable_tqdm=True,
    )
    made = Tokenizer(models.WordLevel({"<end>": 0, "word": 1}, unk_token="<end>"))  # noqa: S106
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"eos_token": "<end>", "pad_token": "<end>"}
    trainer = Noting(
        model=LlamaForCausalLM(LlamaConfig(vocab_size=2, **SIZES)),
        reward_funcs=lambda completions, **_: [float(len(each)) for each in completions],
        args=arguments,
        train_dataset=Dataset.from_list(
            [{"prompt": "word", "number": number} for number in range(leg.samples)]
        ),
        processing_class=PreTrainedTokenizerFast(tokenizer_object=made, **special),
    )
    use(trainer)
    trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
    return trainer.read[leg.before :]
