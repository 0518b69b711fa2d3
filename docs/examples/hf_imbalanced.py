"""Imbalanced classes under the Hugging Face Trainer: each class is read equally often.

    python docs/examples/hf_imbalanced.py --max-steps 30
    torchrun --nproc-per-node 2 docs/examples/hf_imbalanced.py

The second run resumes from the first one's checkpoint, on two ranks instead of one.
"""

import argparse
from pathlib import Path

import torch
import transformers
from torch import nn
from torch.nn.functional import cross_entropy
from transformers.trainer_utils import get_last_checkpoint

import indexplan as ip
from indexplan_torch.transformers import use_plan

SIZES = (900, 90, 10)  # samples of each class


class Classifier(nn.Module):
    """A small model that counts the classes it is trained on; yours takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(3, dtype=torch.int64))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss and the scores of a batch."""
        if self.training:
            self.seen += torch.bincount(labels, minlength=3)
        scores = self.line(x)
        return {"loss": cross_entropy(scores, labels), "logits": scores}


def main() -> None:
    """Train, from the last checkpoint if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()

    torch.manual_seed(0)
    labels = torch.arange(3).repeat_interleave(torch.tensor(SIZES)).tolist()
    dataset = [{"x": torch.randn(4) + label, "labels": label} for label in labels]  # yours
    arguments = transformers.TrainingArguments(
        output_dir="out",
        num_train_epochs=2,
        max_steps=options.max_steps,
        save_steps=10,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(Classifier(), arguments, train_dataset=dataset)
    plan = ip.Plan(ip.ClassBalanced(labels, seed=0), batch_size=12)
    use_plan(trainer, plan)
    last = get_last_checkpoint("out") if Path("out").exists() else None
    trainer.train(resume_from_checkpoint=last)
    if trainer.is_world_process_zero():
        seen = trainer.model.seen.tolist()
        print(f"{trainer.state.global_step} steps, {seen} of each class on this rank")
    trainer.accelerator.end_training()  # or a rank may abort as it ends, after its last step


if __name__ == "__main__":
    main()
